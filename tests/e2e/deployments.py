"""Deployments in the background, what they wait for, and what a test does to the local AWS meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.project import Project
from tritonstack_local.aws import LocalAws

LONGEST_SECONDS = 300.0


class InBackground:
    """Work in a thread of its own."""

    def __init__(self, work: Callable[[], str]) -> None:
        """Starts ``work``, which returns what was printed."""
        self._printed = ""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], str]) -> None:
        try:
            self._printed = work()
        except BaseException as error:  # noqa: BLE001  (raised again in the test's own thread)
            self._error = error

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def ended(self) -> str:
        """What it printed, once it has ended as expected."""
        self._thread.join(timeout=LONGEST_SECONDS)
        assert not self.running, "it does not end"
        if self._error is not None:
            raise self._error
        return self._printed

    def until(self, look: Callable[[], Any], *, seconds: float = LONGEST_SECONDS) -> Any:
        """What ``look`` finds, as soon as it is anything; the work must go on until then."""

        def look_while_running() -> Any:
            found = look()
            if not found and not self.running:
                raise AssertionError(f"it ended too early: {self.ended()}")
            return found

        return eventually(look_while_running, seconds=seconds)


def eventually(look: Callable[[], Any], *, seconds: float = LONGEST_SECONDS) -> Any:
    """What ``look`` finds, as soon as it is anything."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
    return found


def advance(aws: LocalAws, seconds: int) -> None:
    _send(aws, "clock", {"advance_seconds": seconds})


def clock_ahead(aws: LocalAws) -> float:
    """How many seconds the clock of the local AWS is ahead of the system's."""
    now: float = aws.own_route("clock")["now"]
    return now - time.time()


def metric_sum(aws: LocalAws, metric: str, *, endpoint: str, variant: str) -> float:
    """The sum of a variant's metric over the last hour, as the runtime has sent it until now."""
    now = datetime.now(tz=UTC)
    dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]
    points = aws.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker", MetricName=metric, Dimensions=dimensions, Statistics=["Sum"], Period=60,
        StartTime=now - timedelta(hours=1), EndTime=now + timedelta(minutes=5),
    )["Datapoints"]  # fmt: skip
    return float(sum(point["Sum"] for point in points))


@contextmanager
def aws_fails(aws: LocalAws, *faults: dict[str, Any]) -> Iterator[None]:
    """Faults while the block runs; the fields are those of ``emulator.gateway.Fault``."""
    try:
        for fault in faults:
            _send(aws, "faults", fault)
        yield
    finally:
        _send(aws, "faults", None, method="DELETE")


def faults_left(aws: LocalAws) -> int:
    """How many further requests would get a fault."""
    return sum(fault["times"] for fault in aws.own_route("faults")["faults"])


def _send(aws: LocalAws, route: str, body: dict[str, Any] | None, *, method: str = "POST") -> None:
    aws.own_route(route, body, method=method)


SHARE_ENOUGH = 20
"""Requests that each fleet must have answered while both take calls."""


class Deployment(InBackground):
    """``tritonstack local deploy`` in the background."""

    def __init__(self, project: Project, environment: str, *, expect: int) -> None:
        def deploy() -> str:
            result = project.run("local", "deploy", "-e", environment, expect=expect)
            return result.stdout + result.stderr

        super().__init__(deploy)


@dataclass(frozen=True)
class Updated:
    """An endpoint while it is updated."""

    aws: LocalAws
    environment: str
    endpoint: str

    @property
    def name(self) -> str:
        return f"{self.environment}-{self.endpoint}"

    def described(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.aws.client("sagemaker").describe_endpoint(EndpointName=self.name)
        return answer

    @property
    def config(self) -> str:
        return str(self.described()["EndpointConfigName"])

    @property
    def pending(self) -> str | None:
        found: str | None = self.described().get("PendingDeploymentSummary", {}).get("EndpointConfigName")
        return found

    def baking(self, instances: int) -> bool:
        """Whether the alarms are watched while so many of the new fleet's instances take calls."""
        [variant] = self.described().get("PendingDeploymentSummary", {}).get("ProductionVariants", [{}])
        stages = [status["Status"] for status in variant.get("VariantStatus", [])]
        return stages == ["Baking"] and variant["CurrentInstanceCount"] == instances

    def fleets(self, *, by: str = "endpoint_config") -> dict[str, dict[str, Any]]:
        """Its fleets, by config or by another of their fields."""
        found = [one for one in self.aws.runtime_status()["endpoints"] if one["name"] == self.name]
        return {fleet[by]: fleet for one in found for fleet in one["fleets"]}

    def one_fleet(self, key: str, *, by: str = "endpoint_config") -> None:
        """Wait until this fleet alone is there, with every call."""

        def alone() -> bool:
            found = self.fleets(by=by)
            return found.keys() == {key} and found[key]["share"] == 1.0

        eventually(alone, seconds=30)

    def advance(self, seconds: int) -> None:
        advance(self.aws, seconds)
