"""VPC resource types, and the check of the subnets and security groups that a network setting joins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services.cloudformation import provisioners

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, register
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.state import SageMakerState
from tritonstack_local.emulator.services import call

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


def _delete_flow_log(physical_id: str, _properties: Properties) -> None:
    call("ec2", "DeleteFlowLogs", {"FlowLogIds": [physical_id]})


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


def _delete_nat(physical_id: str, _properties: Properties) -> None:
    call("ec2", "DeleteNatGateway", {"NatGatewayId": physical_id})


def _egress(properties: Properties) -> dict[str, Any]:
    """A rule to another group as the API takes it; what else a template names is refused as unknown."""
    rule = {name: value for name, value in properties.items() if name not in ("GroupId", *_TO_GROUP)}
    pair = {api: properties[name] for name, api in _TO_GROUP.items() if name in properties}
    return {"GroupId": properties["GroupId"], "IpPermissions": [{**rule, "UserIdGroupPairs": [pair]}]}


def _create_egress(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    call("ec2", "AuthorizeSecurityGroupEgress", _egress(properties))
    made = f"{stack_name}-{logical_id}"
    return made, {"Id": made}


def _delete_egress(_physical_id: str, properties: Properties) -> None:
    call("ec2", "RevokeSecurityGroupEgress", _egress(properties))


def install() -> None:
    """Register the types; a change of any of their properties but tags replaces them, by their schemas."""
    register("AWS::EC2::FlowLog", create=_create_flow_log, delete=_delete_flow_log)
    register("AWS::EC2::EIP", create=_create_address, delete=_delete_address)
    register("AWS::EC2::NatGateway", create=_create_nat, delete=_delete_nat)
    register("AWS::EC2::SecurityGroupEgress", create=_create_egress, delete=_delete_egress)


# --- Deletion of a subnet or security group in use ---
# SageMaker puts network interfaces into the subnets of a Model's VpcConfig (developer guide: "Give SageMaker AI Hosted
# Endpoints Access to Resources in Your Amazon VPC"), and EC2 refuses to delete what has dependents (EC2 API reference,
# error codes: DependencyViolation). CloudFormation then leaves the resource where it was, and goes on.

MEMBERS = {"AWS::EC2::Subnet": ("Subnets", "subnet"), "AWS::EC2::SecurityGroup": ("SecurityGroupIds", "security group")}
"""Type → the member of VpcConfig that names it, and what EC2 calls it."""


def install_joined_networks(state: SageMakerState) -> None:
    """Have the deletion of such a resource by a stack refused."""
    for kind, (member, noun) in MEMBERS.items():
        handler = provisioners._RESOURCE_HANDLERS[kind]
        handler["delete"] = _guarded(handler["delete"], state=state, member=member, noun=noun)


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
            if any(each.get("ModelName", "").lower() in models for each in config.request["ProductionVariants"])
        }
        return sorted(endpoint.name for endpoint in state.endpoints if endpoint.configs_in_use & configs)
