"""EC2 resource types that MiniStack's CloudFormation lacks and its EC2 has: flow logs, NAT gateways, single rules."""

from __future__ import annotations

from typing import Any

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, register
from tritonstack_local.emulator.ministack_call import call

_RULE = ("IpProtocol", "FromPort", "ToPort")


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
    """One rule of a group as the API takes it."""
    rule: dict[str, Any] = {name: properties[name] for name in _RULE if name in properties}
    told = {"Description": properties["Description"]} if "Description" in properties else {}
    if "CidrIp" in properties:
        rule["IpRanges"] = [{"CidrIp": properties["CidrIp"], **told}]
    if "DestinationPrefixListId" in properties:
        rule["PrefixListIds"] = [{"PrefixListId": properties["DestinationPrefixListId"], **told}]
    if "DestinationSecurityGroupId" in properties:
        rule["UserIdGroupPairs"] = [{"GroupId": properties["DestinationSecurityGroupId"], **told}]
    return {"GroupId": properties["GroupId"], "IpPermissions": [rule]}


def _create_egress(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    call("ec2", "AuthorizeSecurityGroupEgress", _egress(properties))
    made = f"{stack_name}-{logical_id}"
    return made, {"Id": made}


def _delete_egress(_physical_id: str, properties: Properties) -> None:
    call("ec2", "RevokeSecurityGroupEgress", _egress(properties))


def install() -> None:
    """Register the types; a change of any of their properties but tags replaces them, as the schemas say."""
    register("AWS::EC2::FlowLog", create=_create_flow_log, delete=_delete_flow_log)
    register("AWS::EC2::EIP", create=_create_address, delete=_delete_address)
    register("AWS::EC2::NatGateway", create=_create_nat, delete=_delete_nat)
    register("AWS::EC2::SecurityGroupEgress", create=_create_egress, delete=_delete_egress)
