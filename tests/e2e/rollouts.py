"""An update of an endpoint that is watched: the deployment in the background, the fleets, the clock."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.project import Project
from tritonstack_local.aws import LocalAws

SHARE_ENOUGH = 20
"""Requests that each fleet must have answered while both take calls."""


class Deployment:
    """``tritonstack local deploy`` in the background."""

    def __init__(self, project: Project, environment: str, *, expect: int) -> None:
        """``expect`` is the exit code."""
        self.printed = ""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(project, environment, expect), daemon=True)
        self._thread.start()

    def _run(self, project: Project, environment: str, expect: int) -> None:
        try:
            result = project.run("local", "deploy", environment, expect=expect)
            self.printed = result.stdout + result.stderr
        except BaseException as error:  # noqa: BLE001  (raised again in the test's own thread)
            self._error = error

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def ended(self) -> str:
        """What it printed, once it has ended as expected."""
        self._thread.join(timeout=120)
        assert not self.running, "the deployment does not end"
        if self._error is not None:
            raise self._error
        return self.printed

    def until(self, look: Callable[[], Any], *, seconds: float = 120.0) -> Any:
        """What ``look`` finds, as soon as it is anything; the deployment must go on until then."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if not self.running:
                raise AssertionError(f"the deployment ended too early: {self.ended()}")
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.05)
        return found


@dataclass(frozen=True)
class Updated:
    """An endpoint while it is updated."""

    aws: LocalAws
    environment: str
    endpoint: str

    @property
    def name(self) -> str:
        """Its name at SageMaker."""
        return f"{self.environment}-{self.endpoint}"

    def described(self) -> dict[str, Any]:
        """DescribeEndpoint."""
        answer: dict[str, Any] = self.aws.client("sagemaker").describe_endpoint(EndpointName=self.name)
        return answer

    @property
    def config(self) -> str:
        """The config that it runs."""
        return str(self.described()["EndpointConfigName"])

    @property
    def pending(self) -> str | None:
        """The config that it is moved to."""
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
        deadline = time.monotonic() + 30
        while (found := self.fleets(by=by)).keys() != {key} or found[key]["share"] != 1.0:
            assert time.monotonic() < deadline, found.keys()
            time.sleep(0.1)

    def advance(self, seconds: int) -> None:
        """Move the clock of the local AWS."""
        body = json.dumps({"advance_seconds": seconds}).encode()
        url = f"{self.aws.emulator_url}/_tritonstack/clock"
        request = urllib.request.Request(url, data=body, method="POST")  # noqa: S310  (on loopback)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  (on loopback)
            assert answer.status == 200
