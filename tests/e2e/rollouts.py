"""An update of an endpoint that is watched: the deployment in the background, the fleets, the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.deployments import InBackground, advance, eventually
from tests.e2e.project import Project
from tritonstack_local.aws import LocalAws

SHARE_ENOUGH = 20
"""Requests that each fleet must have answered while both take calls."""


class Deployment(InBackground):
    """``tritonstack local deploy`` in the background."""

    def __init__(self, project: Project, environment: str, *, expect: int) -> None:
        """``expect`` is the exit code."""

        def deploy() -> str:
            result = project.run("local", "deploy", environment, expect=expect)
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

        def alone() -> bool:
            found = self.fleets(by=by)
            return found.keys() == {key} and found[key]["share"] == 1.0

        eventually(alone, seconds=30)

    def advance(self, seconds: int) -> None:
        """Move the clock of the local AWS."""
        advance(self.aws, seconds)
