"""Resource types of SageMaker, Application Auto Scaling and EC2 that MiniStack lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tritonstack_local.emulator.autoscaling.api import ScalableTargets
from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.cloudformation.stack_operations import CancelledError, cancel_requested
from tritonstack_local.emulator.ministack_adapter import cloudformation
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.components import Components
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.pools import models_of
from tritonstack_local.emulator.sagemaker.records import (
    COMPONENT,
    ENDPOINT,
    ENDPOINT_CONFIG,
    MODEL,
    Record,
    RecordKind,
    Records,
)
from tritonstack_local.emulator.sagemaker.state import SageMakerState
from tritonstack_local.emulator.services import JsonService, call

# --- SageMaker: Model, EndpointConfig and Endpoint ---

_LONGEST_NAME = 63
# These properties of the endpoint go to UpdateEndpoint only, by their documentation.
_OF_UPDATES = ("RetainAllVariantProperties", "ExcludeRetainedVariantProperties", "RetainDeploymentConfig")


@dataclass(kw_only=True)
class NamedResource:
    """A type whose create and delete are one call each, and of which nothing but tags changes in place."""

    kind: RecordKind
    records: Records[Any]  # those of ``kind``
    service: JsonService

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
        """Delete the resources that still exist."""
        record = self.records.by_arn(arn)
        if record is not None:
            self.service.call(f"Delete{self.kind.noun}", {self.kind.name_member: record.name})

    def existing(self, arn: str) -> Record:
        """The record; raises ``RefusedError`` where it was deleted outside of the stack."""
        record: Record | None = self.records.by_arn(arn)
        if record is None:
            raise RefusedError("ResourceNotFound", f"{arn} does not exist", source="CloudFormation, NotFound")
        return record


@dataclass(kw_only=True)
class EndpointResource(NamedResource):
    """An endpoint: done when it is InService, failed with the runtime's reason, bounded in time."""

    endpoints: Endpoints
    wait_seconds: float  # bounds one deployment

    def request(self, properties: Properties) -> dict[str, Any]:
        """Without what CreateEndpoint does not take."""
        return {name: value for name, value in properties.items() if name not in _OF_UPDATES}

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        """Create and wait. A failed endpoint is deleted, as the rollback of a stack does at AWS."""
        arn, attributes = super().create(logical_id, properties, stack_name)
        record = self.endpoints.wait(arn, seconds=self.wait_seconds)
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
        record = self.endpoints.wait(arn, seconds=self.wait_seconds)
        if record is None:
            raise _failed(arn, "it was deleted meanwhile")
        if record.failure_reason is not None and record.config_name == settings["EndpointConfigName"]:
            return provisioned  # SageMaker has rolled back by itself, and this is the stack's own rollback
        self.service.call_from_template("UpdateEndpoint", {**settings, "EndpointName": record.name})
        after = self.endpoints.wait(arn, seconds=self.wait_seconds, cancelled=lambda: cancel_requested(stack_name))
        if after is not None and not after.settled:
            raise CancelledError(creating=False)
        if after is None or after.failure_reason is not None or after.status != "InService":
            raise _failed(record.name, after.failure_reason if after else "it was deleted meanwhile")
        return provisioned

    def delete(self, arn: str, properties: Properties) -> None:
        """Delete, once no deployment is in progress."""
        self.endpoints.wait(arn, seconds=self.wait_seconds)
        super().delete(arn, properties)


_OF_COMPONENTS_CREATION = ("InferenceComponentName", "EndpointName", "VariantName")


@dataclass(kw_only=True)
class ComponentResource(NamedResource):
    """An inference component: done when it is InService, failed with its FailureReason, bounded in time."""

    components: Components
    wait_seconds: float  # bounds one change

    def request(self, properties: Properties) -> dict[str, Any]:
        """Without what CreateInferenceComponent does not take."""
        return {name: value for name, value in properties.items() if name != "DeploymentConfig"}

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        """Create and wait. A failed component is deleted, as the rollback of a stack does at AWS."""
        arn, attributes = super().create(logical_id, properties, stack_name)
        record = self.components.wait(arn, seconds=self.wait_seconds)
        if record is None or record.status != "InService":
            reason = record.failure_reason if record else "it was deleted meanwhile"
            self.delete(arn, properties)
            raise _failed(attributes["InferenceComponentName"], reason, noun="Inference component")
        return arn, attributes

    def update(self, arn: str, old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """UpdateInferenceComponent with everything that the template has, the number of copies too.

        Whether CloudFormation sends the number again is UNVERIFIED; its handler may call both operations, so that it is
        taken for so. The API has no update of the names, and the schema has "no interruption" for them: refused here.
        """
        found = self.existing(arn)
        fixed = [each for each in _OF_COMPONENTS_CREATION if new.get(each) not in (None, found.request.get(each))]
        if fixed:
            sentence = f"{' and '.join(fixed)} of an inference component cannot be changed in place (UNVERIFIED at AWS)"
            raise RefusedError("InvalidRequest", sentence, source="API reference, UpdateInferenceComponent (derived)")
        provisioned = super().update(arn, old, new, stack_name)
        changing = ("Specification", "RuntimeConfig", "DeploymentConfig")
        if all(old.get(each) == new.get(each) for each in changing):
            return provisioned
        record = self.components.wait(arn, seconds=self.wait_seconds)
        if record is None:
            raise _failed(arn, "it was deleted meanwhile", noun="Inference component")
        wanted = {each: new[each] for each in changing if each in new}
        self.service.call_from_template("UpdateInferenceComponent", {"InferenceComponentName": record.name, **wanted})
        after = self.components.wait(arn, seconds=self.wait_seconds, cancelled=lambda: cancel_requested(stack_name))
        if after is not None and not after.settled:
            raise CancelledError(creating=False)
        if after is None or after.failure_reason is not None:
            reason = after.failure_reason if after else "it was deleted meanwhile"
            raise _failed(record.name, reason, noun="Inference component")
        return provisioned

    def delete(self, arn: str, properties: Properties) -> None:
        """Delete, once no change is in progress."""
        self.components.wait(arn, seconds=self.wait_seconds)
        super().delete(arn, properties)


def _failed(name: str, reason: str | None, *, noun: str = "Endpoint") -> RefusedError:
    return RefusedError("NotStabilized", f"{noun} {name} failed. Reason: {reason}", source="SageMaker, FailureReason")


# --- Application Auto Scaling: ScalableTarget and ScalingPolicy ---

_TARGET = ("ResourceId", "ScalableDimension", "ServiceNamespace")


class ScalableTargetResource:
    """AWS::ApplicationAutoScaling::ScalableTarget. CloudFormation's physical id is resource|dimension|namespace."""

    def __init__(self, service: JsonService) -> None:
        self._service = service

    def create(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        """RegisterScalableTarget; stack tags arrive as a list and this API takes a map."""
        request = {name: value for name, value in properties.items() if name != "ScheduledActions"}
        if isinstance(request.get("Tags"), list):
            request["Tags"] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        self._service.call_from_template("RegisterScalableTarget", request)
        for action in properties.get("ScheduledActions", []):
            self._service.call_from_template(
                "PutScheduledAction", {**{name: properties[name] for name in _TARGET}, **action}
            )
        physical = "|".join(properties[name] for name in _TARGET)
        return physical, {"Id": physical}

    def update(self, physical: str, old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """Registering again changes the target; one that was deregistered meanwhile is not found."""
        target = _target(physical)
        target["ResourceIds"] = [target.pop("ResourceId")]
        if not self._service.call("DescribeScalableTargets", target)["ScalableTargets"]:
            raise _not_found(physical)
        names = [{action["ScheduledActionName"] for action in each.get("ScheduledActions", [])} for each in (old, new)]
        for name in sorted(names[0] - names[1]):
            _unless_gone(self._service, "DeleteScheduledAction", {**_target(physical), "ScheduledActionName": name})
        return self.create("", new, stack_name)

    def delete(self, physical: str, _properties: Properties) -> None:
        """DeregisterScalableTarget; a missing target counts as deleted."""
        _unless_gone(self._service, "DeregisterScalableTarget", _target(physical))


class ScalingPolicyResource:
    """AWS::ApplicationAutoScaling::ScalingPolicy, whose physical id is its ARN."""

    def __init__(self, service: JsonService, targets: ScalableTargets) -> None:
        """Calls ``service``, and finds policies by their ARNs in ``targets``."""
        self._service, self._targets = service, targets

    def create(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        """PutScalingPolicy, of the target named by its parts or by its id."""
        target = properties.get("ScalingTargetId")
        request = {name: value for name, value in properties.items() if name != "ScalingTargetId"}
        request |= _target(target) if target else {}
        arn = self._service.call_from_template("PutScalingPolicy", request)["PolicyARN"]
        return arn, {"Arn": arn}

    def update(self, physical: str, _old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """PutScalingPolicy changes the policy. Its ARN identifies it: deleted and put again, it has another."""
        if self._targets.policy_by_arn(physical) is None:
            raise _not_found(physical)
        return self.create("", new, stack_name)

    def delete(self, physical: str, _properties: Properties) -> None:
        """DeleteScalingPolicy of the policy with that ARN; a missing policy counts as deleted."""
        policy = self._targets.policy_by_arn(physical)
        if policy is not None:
            self._service.call("DeleteScalingPolicy", {name: policy[name] for name in ("PolicyName", *_TARGET)})


def _not_found(physical: str) -> RefusedError:
    return RefusedError("NotFound", f"{physical} does not exist", source="CloudFormation, resource type handlers")


def _unless_gone(service: JsonService, operation: str, request: dict[str, Any]) -> None:
    """Treat deleting a missing resource as done (CloudFormation, resource type handler contract)."""
    try:
        service.call(operation, request)
    except RefusedError as refusal:
        if refusal.code != "ObjectNotFoundException":
            raise


def _target(physical: str) -> dict[str, Any]:
    return dict(zip(_TARGET, physical.split("|"), strict=True))


# --- EC2: FlowLog, EIP, NatGateway and SecurityGroupEgress ---

_TO_GROUP = {"DestinationSecurityGroupId": "GroupId", "Description": "Description"}


def _tags(properties: Properties, resource_type: str) -> list[dict[str, Any]]:
    kept = [tag for tag in properties.get("Tags", []) if not tag["Key"].startswith("aws:")]
    return [{"ResourceType": resource_type, "Tags": kept}] if kept else []


def _create_flow_log(_logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
    request = {name: value for name, value in properties.items() if name not in ("ResourceId", "Tags")}
    answer = call("ec2", "CreateFlowLogs", {**request, "ResourceIds": [properties["ResourceId"]]})
    [made] = answer["FlowLogIds"]
    for specification in _tags(properties, "vpc-flow-log"):  # MiniStack's CreateFlowLogs drops them
        call("ec2", "CreateTags", {"Resources": [made], "Tags": specification["Tags"]})
    return made, {"Id": made}


def _create_address(_logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
    answer = call(
        "ec2",
        "AllocateAddress",
        {"Domain": properties.get("Domain", "vpc"), "TagSpecifications": _tags(properties, "elastic-ip")},
    )
    return answer["PublicIp"], {"PublicIp": answer["PublicIp"], "AllocationId": answer["AllocationId"]}


def _delete_address(physical_id: str, _properties: Properties) -> None:
    for address in call("ec2", "DescribeAddresses", {})["Addresses"]:
        if address["PublicIp"] == physical_id:
            call("ec2", "ReleaseAddress", {"AllocationId": address["AllocationId"]})


def _create_nat(_logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
    request: dict[str, Any] = {name: properties[name] for name in ("SubnetId", "AllocationId") if name in properties}
    answer = call("ec2", "CreateNatGateway", {**request, "TagSpecifications": _tags(properties, "natgateway")})
    made = answer["NatGateway"]["NatGatewayId"]
    return made, {"NatGatewayId": made}


def _egress(properties: Properties) -> dict[str, Any]:
    """A rule to another group as the API takes it; what else a template names is refused as unknown."""
    rule = {name: value for name, value in properties.items() if name not in ("GroupId", *_TO_GROUP)}
    pair = {api: properties[name] for name, api in _TO_GROUP.items() if name in properties}
    return {"GroupId": properties["GroupId"], "IpPermissions": [{**rule, "UserIdGroupPairs": [pair]}]}


def _create_egress(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    call("ec2", "AuthorizeSecurityGroupEgress", _egress(properties))
    made = f"{stack_name}-{logical_id}"
    return made, {"Id": made}


# --- Registration ---


def install(
    sagemaker: JsonService,
    state: SageMakerState,
    endpoints: Endpoints,
    components: Components,
    *,
    autoscaling: JsonService,
    targets: ScalableTargets,
    wait_seconds: float,
) -> None:
    """Register the types. ``wait_seconds`` bounds one deployment of an endpoint."""
    resources: dict[str, object] = {
        "AWS::SageMaker::Model": NamedResource(kind=MODEL, records=state.models, service=sagemaker),
        "AWS::SageMaker::EndpointConfig": NamedResource(
            kind=ENDPOINT_CONFIG, records=state.endpoint_configs, service=sagemaker
        ),
        "AWS::SageMaker::Endpoint": EndpointResource(
            kind=ENDPOINT, records=state.endpoints, service=sagemaker, endpoints=endpoints, wait_seconds=wait_seconds
        ),
        "AWS::SageMaker::InferenceComponent": ComponentResource(
            kind=COMPONENT,
            records=state.components,
            service=sagemaker,
            components=components,
            wait_seconds=wait_seconds,
        ),
        "AWS::ApplicationAutoScaling::ScalableTarget": ScalableTargetResource(autoscaling),
        "AWS::ApplicationAutoScaling::ScalingPolicy": ScalingPolicyResource(autoscaling, targets),
        # A change of any of their properties but tags replaces these, by their schemas.
        "AWS::EC2::FlowLog": SimpleNamespace(
            create=_create_flow_log, delete=lambda made, _: call("ec2", "DeleteFlowLogs", {"FlowLogIds": [made]})
        ),
        "AWS::EC2::EIP": SimpleNamespace(create=_create_address, delete=_delete_address),
        "AWS::EC2::NatGateway": SimpleNamespace(
            create=_create_nat, delete=lambda made, _: call("ec2", "DeleteNatGateway", {"NatGatewayId": made})
        ),
        "AWS::EC2::SecurityGroupEgress": SimpleNamespace(
            create=_create_egress, delete=lambda _, rule: call("ec2", "RevokeSecurityGroupEgress", _egress(rule))
        ),
    }
    for kind, resource in resources.items():
        register(kind, resource)
    sends_back = cloudformation.sends_back_failed_update.current
    # MiniStack takes a failed update for one that changed nothing; a cancelled one of these goes on.
    going_on = ("AWS::SageMaker::Endpoint", "AWS::SageMaker::InferenceComponent")
    cloudformation.sends_back_failed_update.replace(lambda kind: kind in going_on or sends_back(kind))
    for kind, (member, noun) in MEMBERS.items():
        handler = cloudformation.resource_handlers()[kind]
        handler["delete"] = _guarded(handler["delete"], state=state, member=member, noun=noun)


# --- Deletion of a subnet or security group in use ---
# SageMaker puts network interfaces into the subnets of a Model's VpcConfig (developer guide: "Give SageMaker AI Hosted
# Endpoints Access to Resources in Your Amazon VPC"), and EC2 refuses to delete what has dependents (EC2 API reference,
# error codes: DependencyViolation). CloudFormation then leaves the resource where it was, and goes on.

MEMBERS = {"AWS::EC2::Subnet": ("Subnets", "subnet"), "AWS::EC2::SecurityGroup": ("SecurityGroupIds", "security group")}
"""Type → the member of VpcConfig that names it, and what EC2 calls it."""


def _guarded(delete: Callable[..., Any], *, state: SageMakerState, member: str, noun: str) -> Callable[..., Any]:
    def guarded(physical_id: str, properties: dict[str, Any]) -> Any:
        users = endpoints_in(state, member=member, physical_id=physical_id)
        if users:
            raise RefusedError(
                "DependencyViolation",
                f"The {noun} '{physical_id}' has dependencies and cannot be deleted: endpoint {', '.join(users)}.",
                source="EC2 API reference, error codes",
            )
        return delete(physical_id, properties)

    return guarded


def endpoints_in(state: SageMakerState, *, member: str, physical_id: str) -> list[str]:
    """The names of the endpoints whose fleets, serving or to come, are in a subnet or a security group."""
    with state.changed:
        models = {
            model.name.lower()
            for model in state.models
            if physical_id in model.request.get("VpcConfig", {}).get(member, ())
        }
        configs = {
            config.name.lower()
            for config in state.endpoint_configs
            if any(
                model.lower() in models for each in config.request["ProductionVariants"] for model in models_of(each)
            )
        }
        return sorted(endpoint.name for endpoint in state.endpoints if endpoint.configs_in_use & configs)
