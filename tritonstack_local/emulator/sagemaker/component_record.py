"""An inference component as SageMaker keeps it, and the change of it that is in progress."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from tritonstack_local.emulator.sagemaker.records import Record

Change = Literal["CREATE", "UPDATE", "UPDATE_RC"]


@dataclass(kw_only=True)
class ComponentRecord(Record):
    """An inference component."""

    endpoint: str
    variant: str
    specification: dict[str, Any]  # what serves; of a first creation what will
    desired: int  # copies that are wanted
    current: int = 0  # copies that respond
    status: str = "Creating"  # an ``InferenceComponentStatus``
    change: Change | None = "CREATE"  # what is in progress, as SageMaker's sentences name it
    version: int = 1  # counts the specifications that served: copies of two are two things that have a place
    pending: dict[str, Any] | None = None  # the specification that an update moves to, until it serves
    pending_copies: int | None = None  # and the copies that it asks for
    failure_reason: str | None = None  # of the last change, None where it succeeded
    deployment_config: dict[str, Any] | None = None  # the one of the last update
    generation: int = 1  # counts the changes; a report of the runtime names it

    @property
    def settled(self) -> bool:
        """Whether no change is in progress."""
        return self.change is None

    @property
    def wanted(self) -> int:
        """Copies that should run: of the change in progress, else those that are desired."""
        return self.desired if self.pending_copies is None else self.pending_copies

    def begin(self, change: Change, *, copies: int, specification: dict[str, Any] | None = None) -> None:
        """Start a change."""
        self.change, self.status = change, "Updating"
        self.pending, self.pending_copies = specification, copies
        self.generation += 1
        self.modified = time.time()

    def succeed(self, *, copies: int) -> None:
        """The change is done, with so many copies up."""
        if self.pending is not None:
            self.specification, self.version = self.pending, self.version + 1
        self.desired, self.current = self.wanted, copies
        self._end("InService", None)

    def fail(self, reason: str) -> None:
        """The change is not possible. A first creation leaves a failed component, an update what served before."""
        self._end("Failed" if self.change == "CREATE" else "InService", reason)

    def _end(self, status: str, reason: str | None) -> None:
        self.status, self.failure_reason = status, reason
        self.change = self.pending = self.pending_copies = None
        self.modified = time.time()

    def describe(self, *, endpoint_arn: str, image: str) -> dict[str, Any]:
        """DescribeInferenceComponent's response."""
        shown = {name: value for name, value in self.specification.items() if name != "Container"}
        deployed = {"DeployedImage": {"SpecifiedImage": image, "ResolvedImage": image}}
        answer: dict[str, Any] = {
            "InferenceComponentName": self.name,
            "InferenceComponentArn": self.arn,
            "EndpointName": self.endpoint,
            "EndpointArn": endpoint_arn,
            "VariantName": self.variant,
            "Specification": {**shown, "Container": deployed},
            "RuntimeConfig": {"DesiredCopyCount": self.desired, "CurrentCopyCount": self.current},
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
            "InferenceComponentStatus": self.status,
        }
        if self.failure_reason is not None:
            answer["FailureReason"] = self.failure_reason
        if self.deployment_config is not None:
            answer["LastDeploymentConfig"] = self.deployment_config
        return answer
