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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks.invoke_overhead import ENDPOINT, ENVIRONMENT, MODEL, has_label, label_of
from benchmarks.load_client import (
    Target,
    WrongAnswerError,
    connect_loopback,
    http_request,
    latencies,
    open_connections,
    throughput,
)
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


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round: the median latency in ms and the answers a second of each way."""

    boto3_ms: float
    proxy_ms: float
    boto3_rate: float
    proxy_rate: float


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

    def latencies(self, *, calls: int) -> list[float]:
        """Milliseconds of each of so many calls, one after the other."""
        times = []
        for _ in range(calls):
            started = time.perf_counter()
            self.call()
            times.append((time.perf_counter() - started) * 1000)
        return times

    def throughput(self, *, callers: int, seconds: float) -> float:
        """Answers a second with so many threads, each calling again as soon as it is answered."""
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
            request=http_request(f"/v2/models/{MODEL}/infer", body, {"Content-Type": "application/json"}),
            right=functools.partial(has_label, label=label),
        )
        rounds = measure(Direct(aws, body=body, label=label), through)
    return tell("proxy-overhead", figures(rounds), machine=stated)


def measure(direct: Direct, through: Target) -> list[Round]:
    """All rounds, the two ways in turns; which one comes first changes from round to round."""
    direct.call()
    rounds = []
    for number in range(ROUNDS):
        found: dict[str, tuple[float, float]] = {}
        ways = {
            "boto3": lambda: (
                statistics.median(direct.latencies(calls=CALLS)),
                direct.throughput(callers=CALLERS, seconds=SECONDS),
            ),
            "proxy": lambda: uvloop.run(_through(through)),
        }
        for name in sorted(ways, reverse=number % 2 == 1):
            found[name] = ways[name]()
        rounds.append(
            Round(
                boto3_ms=found["boto3"][0],
                proxy_ms=found["proxy"][0],
                boto3_rate=found["boto3"][1],
                proxy_rate=found["proxy"][1],
            )
        )
    return rounds


async def _through(target: Target) -> tuple[float, float]:
    """The median latency of one caller, and the throughput of several."""
    connections = await open_connections(target, CALLERS)
    median = statistics.median(await latencies(target, connections[0], calls=CALLS))
    rate = await throughput(target, connections, seconds=SECONDS)
    for connection in connections:
        connection.close()
    return median, rate


def figures(rounds: list[Round]) -> list[Figure]:
    """The medians over the rounds of each round's ratios."""
    slower = statistics.median(one.proxy_ms / one.boto3_ms for one in rounds)
    kept = statistics.median(one.proxy_rate / one.boto3_rate for one in rounds)
    return [
        Figure(what="median call by boto3", value=statistics.median(one.boto3_ms for one in rounds), unit="ms"),
        Figure(
            what="median call through the proxy", value=statistics.median(one.proxy_ms for one in rounds), unit="ms"
        ),
        Figure(what="a call through the proxy, times one by boto3", value=slower, unit="times", bound=LATENCY_RATIO),
        Figure(
            what=f"by boto3, {CALLERS} threads", value=statistics.median(one.boto3_rate for one in rounds), unit="/s"
        ),
        Figure(
            what=f"through the proxy, {CALLERS} callers",
            value=statistics.median(one.proxy_rate for one in rounds),
            unit="/s",
        ),
        Figure(what="throughput kept, times boto3's", value=kept, unit="times", bound=KEPT, at_least=True),
    ]


@contextmanager
def running_proxy() -> Iterator[int]:
    """``tritonstack proxy`` as a process of its own; gives its port. Raises WorkFailedError."""
    command = [sys.executable, "-m", "tritonstack", "proxy", ENVIRONMENT, "--endpoint", ENDPOINT, "--port", "0"]
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


if __name__ == "__main__":
    sys.exit(main())
