"""AWS::SageMaker::Model, EndpointConfig and Endpoint."""

from __future__ import annotations

from typing import Any

from ministack.services.cloudformation import stacks

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.cloudformation.stack_operations import CancelledError, cancel_requested
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.records import ENDPOINT, ENDPOINT_CONFIG, MODEL, Kind, Record, Records
from tritonstack_local.emulator.sagemaker.state import SageMakerState
from tritonstack_local.emulator.services import JsonService

_LONGEST_NAME = 63
# Of the endpoint's properties these go to UpdateEndpoint only (their documentation says so).
_OF_UPDATES = ("RetainAllVariantProperties", "ExcludeRetainedVariantProperties", "RetainDeploymentConfig")


class NamedResource:
    """A type whose create and delete are one call each, and of which nothing but tags changes in place."""

    def __init__(self, kind: Kind, records: Records[Any], service: JsonService, state: SageMakerState) -> None:
        """``records`` are those of ``kind``."""
        self.kind = kind
        self.records = records
        self.service = service
        self.state = state

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        """Create under the given name or a generated one."""
        request = self.request(properties)
        request.setdefault(self.kind.name_member, physical_name(stack_name, logical_id, longest=_LONGEST_NAME))
        answer = self.service.call_from_template(f"Create{self.kind.noun}", request)
        return answer[f"{self.kind.noun}Arn"], {
            self.kind.name_member: request[self.kind.name_member],
            f"{self.kind.noun}Arn": answer[f"{self.kind.noun}Arn"],
        }

    def request(self, properties: Properties) -> dict[str, Any]:
        """The properties as the API spells them."""
        return dict(properties)

    def update(self, arn: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
        """Tags."""
        record = self.existing(arn)
        dropped = {t["Key"] for t in old.get("Tags", [])} - {t["Key"] for t in new.get("Tags", [])}
        if dropped:
            self.service.call("DeleteTags", {"ResourceArn": arn, "TagKeys": sorted(dropped)})
        if new.get("Tags"):
            self.service.call_from_template("AddTags", {"ResourceArn": arn, "Tags": new["Tags"]})
        return arn, {self.kind.name_member: record.name, f"{self.kind.noun}Arn": arn}

    def delete(self, arn: str, _properties: Properties) -> None:
        """Delete what is still there."""
        record = self.records.by_arn(arn)
        if record is not None:
            self.service.call(f"Delete{self.kind.noun}", {self.kind.name_member: record.name})

    def existing(self, arn: str) -> Record:
        """The record; raises ``RefusedError`` where somebody deleted it behind the stack's back."""
        record: Record | None = self.records.by_arn(arn)
        if record is None:
            raise RefusedError("ResourceNotFound", f"{arn} does not exist", source="CloudFormation, NotFound")
        return record


class EndpointResource(NamedResource):
    """An endpoint: done when it is InService, failed with the runtime's reason, bounded in time."""

    def __init__(
        self, service: JsonService, state: SageMakerState, endpoints: Endpoints, *, wait_seconds: float
    ) -> None:
        """``wait_seconds`` bounds one deployment."""
        super().__init__(ENDPOINT, state.endpoints, service, state)
        self._endpoints = endpoints
        self._wait_seconds = wait_seconds

    def request(self, properties: Properties) -> dict[str, Any]:
        """Without what CreateEndpoint does not take."""
        return {name: value for name, value in properties.items() if name not in _OF_UPDATES}

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        """Create and wait. A failed endpoint is deleted, as the rollback of a stack does at AWS."""
        arn, attributes = super().create(logical_id, properties, stack_name)
        record = self._endpoints.wait(arn, seconds=self._wait_seconds)
        if record is None or record.status != "InService":
            reason = record.failure_reason if record else "it was deleted meanwhile"
            self.delete(arn, properties)
            raise _failed(attributes["EndpointName"], reason)
        return arn, attributes

    def update(self, arn: str, old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """Move to the new config and wait; where that fails, the endpoint stays on the old config.

        A cancelled update ends the wait, not the deployment: SageMaker has no call for that. The rollback waits for
        its end, and moves the endpoint back.
        """
        provisioned = super().update(arn, old, new, stack_name)
        settings = {name: value for name, value in new.items() if name != "Tags"}
        if settings == {name: value for name, value in old.items() if name != "Tags"}:
            return provisioned
        record = self._endpoints.wait(arn, seconds=self._wait_seconds)
        if record is None:
            raise _failed(arn, "it was deleted meanwhile")
        if record.failure_reason is not None and record.config_name == settings["EndpointConfigName"]:
            return provisioned  # SageMaker has rolled back by itself, and this is the stack's own rollback
        self.service.call_from_template("UpdateEndpoint", {**settings, "EndpointName": record.name})
        after = self._endpoints.wait(arn, seconds=self._wait_seconds, cancelled=lambda: cancel_requested(stack_name))
        if after is not None and not after.settled:
            raise CancelledError(creating=False)
        if after is None or after.failure_reason is not None or after.status != "InService":
            raise _failed(record.name, after.failure_reason if after else "it was deleted meanwhile")
        return provisioned

    def delete(self, arn: str, properties: Properties) -> None:
        """Delete, once no deployment is in progress."""
        self._endpoints.wait(arn, seconds=self._wait_seconds)
        super().delete(arn, properties)


def install(service: JsonService, state: SageMakerState, endpoints: Endpoints, *, wait_seconds: float) -> None:
    """Register the three types."""
    resources: tuple[NamedResource, ...] = (
        NamedResource(MODEL, state.models, service, state),
        NamedResource(ENDPOINT_CONFIG, state.endpoint_configs, service, state),
        EndpointResource(service, state, endpoints, wait_seconds=wait_seconds),
    )
    for resource in resources:
        register(
            f"AWS::SageMaker::{resource.kind.noun}",
            create=resource.create,
            update=resource.update,
            delete=resource.delete,
        )
    sends_back = stacks._sends_back_failed_update
    # MiniStack takes a failed update for one that changed nothing; a cancelled one of an endpoint goes on.
    stacks._sends_back_failed_update = lambda kind: kind == "AWS::SageMaker::Endpoint" or sends_back(kind)


def _failed(name: str, reason: str | None) -> RefusedError:
    return RefusedError("NotStabilized", f"Endpoint {name} failed. Reason: {reason}", source="SageMaker, FailureReason")
