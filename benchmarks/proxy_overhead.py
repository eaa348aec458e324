"""What ``tritonstack proxy`` adds to a call: ``digits-onnx`` by boto3 itself, and by KServe through the proxy.

Each call through the proxy is one of boto3's too, made by the proxy's process; the caller is a small HTTP client. Both
end in the same real Triton. One caller tells the latency that is added; several tell how much of boto3's throughput, in
a process with as many threads, is kept.
"""

from __future__ import annotations

import functools
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

from benchmarks.invoke_overhead import ENDPOINT, ENVIRONMENT, MODEL, has_label, label_of
from benchmarks.load_client import Round, Target, WrongAnswerError, connect_loopback, http_request, in_turns, measured
from benchmarks.local_stack import local_stack
from benchmarks.results import Figure, machine, tell
from tritonstack.client.model_client import READ_TIMEOUT_SECONDS
from tritonstack.client.releases import ModelReference, ReleaseRecords
from tritonstack.errors import WorkFailedError
from tritonstack.naming import endpoint_name
from tritonstack.paths import REPOSITORY
from tritonstack_local.aws import LocalAws

ROUNDS = 7
CALLS = 300
CALLERS = 16
SECONDS = 2.0
LATENCY_RATIO = 2.0
"""A call through the proxy takes at most so many times one by boto3."""
KEPT = 0.6
"""Of boto3's throughput."""
START_SECONDS = 30.0


class Direct:
    """boto3 itself, as a program calls InvokeEndpoint: one client for all threads."""

    def __init__(self, aws: LocalAws, *, body: bytes, label: int) -> None:
        """``label``: the digit of a right answer."""
        from botocore.config import Config  # noqa: PLC0415  (beside its use)

        self._client = aws.client(
            "sagemaker-runtime",
            config=Config(
                retries={"total_max_attempts": 1}, read_timeout=READ_TIMEOUT_SECONDS, max_pool_connections=CALLERS
            ),
        )
        ssm = aws.client("ssm")
        records = ReleaseRecords(environment=ENVIRONMENT, ssm=lambda: ssm, now=time.monotonic)
        release = records.resolve(ModelReference(endpoint=ENDPOINT, model=MODEL))
        self._request: dict[str, Any] = {
            "EndpointName": endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT),
            "TargetModel": str(release.archive),
            "ContentType": "application/json",
            "Body": body,
        }
        self._label = label

    def call(self) -> None:
        """One call. Raises WrongAnswerError."""
        answer = self._client.invoke_endpoint(**self._request)["Body"].read()
        if not has_label(answer, label=self._label):
            raise WrongAnswerError(f"boto3 was answered {answer[:300]!r}")

    def measured(self) -> tuple[float, float]:
        """The median latency of one caller in ms, and the answers a second of several threads."""
        times = []
        for _ in range(CALLS):
            started = time.perf_counter()
            self.call()
            times.append((time.perf_counter() - started) * 1000)
        return statistics.median(times), self._throughput(callers=CALLERS, seconds=SECONDS)

    def _throughput(self, *, callers: int, seconds: float) -> float:
        """Each caller calls again as soon as it is answered."""
        counts = [0] * callers
        failures: list[Exception] = []
        started = time.perf_counter()

        def caller(number: int) -> None:
            try:
                while time.perf_counter() - started < seconds:
                    self.call()
                    counts[number] += 1
            except WrongAnswerError as error:
                failures.append(error)

        threads = [threading.Thread(target=caller, args=(number,)) for number in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return sum(counts) / (time.perf_counter() - started)


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where it could not run."""
    stated = machine()
    body = (REPOSITORY / "model_repos" / MODEL / "sample" / "request.json").read_bytes()
    label = label_of((REPOSITORY / "model_repos" / MODEL / "sample" / "answer.json").read_bytes())
    with local_stack() as aws, running_proxy() as port:
        through = Target(
            name="the proxy",
            connect=lambda: connect_loopback(port),
            request=http_request(f"/v2/models/{ENDPOINT}/{MODEL}/infer", body, {"Content-Type": "application/json"}),
            right=functools.partial(has_label, label=label),
        )
        direct = Direct(aws, body=body, label=label)
        direct.call()
        rounds = in_turns(
            direct.measured,
            lambda: uvloop.run(measured(through, callers=CALLERS, calls=CALLS, seconds=SECONDS)),
            rounds=ROUNDS,
        )
    return tell("proxy-overhead", figures(rounds), machine=stated)


def figures(rounds: list[Round]) -> list[Figure]:
    """The medians over the rounds of each round's ratios."""

    def median(of: Callable[[Round], float]) -> float:
        return statistics.median(map(of, rounds))

    slower = median(lambda one: one.through_ms / one.direct_ms)
    kept = median(lambda one: one.through_rate / one.direct_rate)
    return [
        Figure("median call by boto3", median(lambda one: one.direct_ms), "ms"),
        Figure("median call through the proxy", median(lambda one: one.through_ms), "ms"),
        Figure("a call through the proxy, times one by boto3", slower, "times", LATENCY_RATIO),
        Figure(f"by boto3, {CALLERS} threads", median(lambda one: one.direct_rate), "/s"),
        Figure(f"through the proxy, {CALLERS} callers", median(lambda one: one.through_rate), "/s"),
        Figure("throughput kept, times boto3's", kept, "times", KEPT, at_least=True),
    ]


@contextmanager
def running_proxy() -> Iterator[int]:
    """``tritonstack proxy`` as a process of its own; gives its port. Raises WorkFailedError."""
    command = [sys.executable, "-m", "tritonstack", "proxy", ENVIRONMENT, "--port", "0"]
    variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            _, found, rest = line.partition("http://127.0.0.1:")
            if not found:
                raise WorkFailedError(f"the proxy did not start: {line!r}")
            yield int(rest.split()[0])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=START_SECONDS)
