"""Calls that the end-to-end tests make, and callers that call all the while something changes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.config import Config

from tritonstack.naming import ArchiveName, release_parameter
from tritonstack_local.aws import LocalAws


def target_model(aws: LocalAws, *, endpoint: str, model: str, environment: str = "local") -> str:
    """The TargetModel that the release record of a model names."""
    name = release_parameter(environment=environment, endpoint=endpoint, model=model)
    digest: str = aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    return str(ArchiveName(model=model, digest=digest))


def body(value: float) -> bytes:
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [value]}]}).encode()


def invoke(client: Any, *, endpoint: str, target: str, value: float, environment: str = "local") -> float:
    """Call one of the tests' own models; its one output value."""
    answer = client.invoke_endpoint(
        EndpointName=f"{environment}-{endpoint}",
        TargetModel=target,
        ContentType="application/json",
        Body=body(value),
    )
    output = json.loads(answer["Body"].read())["outputs"][0]["data"][0]
    return float(output)


PAUSE_SECONDS = 0.005
"""Between two calls of one caller: enough for a deployment to go on on few cores."""


class Callers:
    """Threads that call until they are stopped.

    Attributes:
        answered: calls with the right answer.
        failures: what was raised, an answer that is wrong included.
    """

    def __init__(self, calls: list[Callable[[], None]]) -> None:
        """One thread for each of ``calls``."""
        self.answered = 0
        self.failures: list[Exception] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(call,), daemon=True) for call in calls]

    def _run(self, call: Callable[[], None]) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            try:
                call()
            except Exception as error:  # noqa: BLE001  (every failure counts, and is shown)
                # Without its frames: each holds a request and a response, and a bad release fails by the thousand.
                error.__cause__ = error.__context__ = None
                self.failures.append(error.with_traceback(None))
            else:
                self.answered += 1

    def check(self, *, more: int = 100, seconds: float = 240.0) -> None:
        """Wait for so many further answers; no call may have failed."""
        goal, until = self.answered + more, time.monotonic() + seconds
        while self.answered < goal and not self.failures and time.monotonic() < until:
            time.sleep(0.02)
        assert not self.failures, f"{len(self.failures)} requests failed, {self.answered} did not: {self.failures[0]!r}"
        assert self.answered >= goal, f"{self.answered} answers, {goal} were expected"

    @contextmanager
    def calling(self) -> Iterator[Callers]:
        """Call while the block runs, and demand that no call failed."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
            self.check(more=1)
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(timeout=90)


def digits_by_target(aws: LocalAws, *, endpoint: str, target: str | None, model: Path) -> Callable[[], None]:
    """One call of digits-onnx through boto3, by TargetModel unless it is the only model; the label is compared."""
    client = aws.client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))
    request, expected = (model / "sample/request.json").read_bytes(), label(model)
    named = {} if target is None else {"TargetModel": target}

    def call() -> None:
        answer = client.invoke_endpoint(EndpointName=endpoint, ContentType="application/json", Body=request, **named)
        outputs = json.loads(answer["Body"].read())["outputs"]
        assert [one["data"] for one in outputs if one["name"] == "label"] == [[expected]]

    return call


def label(model: Path) -> int:
    outputs = json.loads((model / "sample/answer.json").read_text())["outputs"]
    return int(next(one["data"][0] for one in outputs if one["name"] == "label"))
