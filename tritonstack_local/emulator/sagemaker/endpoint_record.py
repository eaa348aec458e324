"""An endpoint: its life cycle, its fleet's config, the deployment in progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.sagemaker.deployment import Deployment
from tritonstack_local.emulator.sagemaker.records import Record

_SETTLED = ("InService", "Failed")


@dataclass(kw_only=True)
class EndpointRecord(Record):
    """An endpoint.

    Attributes:
        config_name: the config of the fleet that serves (of the fleet being created, while there is none).
        variants: that fleet's variants, as DescribeEndpoint shows them.
        status: an ``EndpointStatus``.
        pending: the deployment in progress, None where there is none.
        failure_reason: of the last deployment, None where it succeeded.
        deployment_config: the guardrails of the last deployment.
    """

    config_name: str
    variants: tuple[dict[str, Any], ...] = ()
    status: str = "Creating"
    pending: Deployment | None = None
    failure_reason: str | None = None
    deployment_config: dict[str, Any] | None = None

    @property
    def settled(self) -> bool:
        """Whether no deployment is in progress."""
        return self.status in _SETTLED

    @property
    def configs_in_use(self) -> set[str]:
        """The configs, in lower case, that the endpoint serves from or is being moved to."""
        pending = {self.pending.config_name.lower()} if self.pending else set()
        serving = set() if self.status == "Failed" else {self.config_name.lower()}
        return serving | pending

    def begin(self, deployment: Deployment, *, status: str) -> None:
        """Start a deployment (``Creating`` or ``Updating``)."""
        self.pending = deployment
        self.status = status
        self.modified = clock.now()

    def succeed(self) -> None:
        """The new fleet answers: it is the endpoint's from now on."""
        if self.pending is None:
            raise ValueError(f"{self.name}: no deployment in progress")
        self.config_name = self.pending.config_name
        self.variants = self.pending.variants
        self.deployment_config = self.pending.deployment_config
        self.pending = None
        self.status = "InService"
        self.failure_reason = None
        self.modified = clock.now()

    def fail(self, reason: str | None) -> None:
        """The new fleet could not be started: a first one leaves nothing, a later one leaves the old fleet serving.

        Without a ``reason`` nobody is told of it.
        """
        self.status = "Failed" if self.status == "Creating" else "InService"
        self.pending = None
        self.failure_reason = reason
        self.modified = clock.now()

    def _shown(self, variant: dict[str, Any]) -> dict[str, Any]:
        """A variant with the instances that a rolling update has left of it."""
        if self.pending is None:
            return variant
        return {**variant, "CurrentInstanceCount": self.pending.old_instances(variant["CurrentInstanceCount"])}

    def describe(self) -> dict[str, Any]:
        """DescribeEndpoint's answer."""
        answer: dict[str, Any] = {
            "EndpointName": self.name,
            "EndpointArn": self.arn,
            "EndpointConfigName": self.config_name,
            "EndpointStatus": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }
        if self.variants:
            answer["ProductionVariants"] = [self._shown(variant) for variant in self.variants]
        if self.failure_reason is not None:
            answer["FailureReason"] = self.failure_reason
        if self.deployment_config is not None:
            answer["LastDeploymentConfig"] = self.deployment_config
        if self.pending is not None:
            answer["PendingDeploymentSummary"] = self.pending.summary()
        return answer
