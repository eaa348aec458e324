"""Networks: imported subnets, and fleets in a network to be deleted."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tritonstack.aws.read_only import NotKnownError
from tritonstack.config import ImportedNetwork, NetworkSettings
from tritonstack.config.builds import BuildNetwork
from tritonstack.preflight.quotas import instance_need
from tritonstack.preflight.subject import GONE, CheckedItem, PreflightResult, Subject, endpoint_and_variants

_KINDS = {
    "Subnets": ("describe_subnets", "SubnetId", "subnet-id"),
    "SecurityGroups": ("describe_security_groups", "GroupId", "group-id"),
}
"""Rows of EC2's response → the operation, the field of a row's id, the filter by it."""


def _rows(subject: Subject, kind: str, ids: Iterable[str]) -> list[dict[str, Any]]:
    """EC2's rows of a kind with these ids; of those that are gone there is none."""
    operation, member, name = _KINDS[kind]
    wanted = list(ids)
    if not wanted:
        return []
    response = subject.calls.must("ec2", operation, Filters=[{"Name": name, "Values": wanted}])
    return [row for row in response.get(kind, []) if row[member] in wanted]  # the local AWS lacks some filters


@dataclass(frozen=True, kw_only=True)
class NamedSubnet:
    """A subnet that the settings name."""

    subnet_id: str  # its id
    network: ImportedNetwork | BuildNetwork  # the settings that name it, with its VPC and owner
    field: str  # of those settings
    zone: str | None  # its zone, where the settings name it
    addresses: int  # free addresses that are needed in it


def named_subnets(subject: Subject) -> tuple[NamedSubnet, ...]:
    """Subnets of the imported network and of ``builds.network``."""
    environment, found = subject.environment, []
    network = environment.network
    imported = network.imported if network is not None else None
    if network is not None and imported is not None:
        joined = environment.endpoints if network.joined == "imported" else ()
        each = -(-instance_need(joined, others=0, at_once=subject.at_once).total // len(imported.subnets))
        found += [
            NamedSubnet(subnet_id=subnet, network=imported, field="network.imported", zone=zone, addresses=each)
            for zone, subnet in sorted(imported.subnets.items())
        ]
    builds = environment.builds.network
    if builds is not None and subject.builds_on_deploy:
        found += [
            NamedSubnet(subnet_id=subnet, network=builds, field="builds.network", zone=None, addresses=1)
            for subnet in sorted(builds.subnet_ids)
            if subnet not in {one.subnet_id for one in found}
        ]
    return tuple(found)


def check_subnet(subject: Subject) -> Iterator[PreflightResult]:
    """Imported subnets exist, in their VPC and zone, of the owner named, with addresses for every instance."""
    for subnet in named_subnets(subject):
        zone = f", in {subnet.zone}" if subnet.zone else ""
        owner = subnet.network.owner_account or subject.environment.account
        item = CheckedItem(
            check="subnet",
            subject=subnet.subnet_id,
            needed=f"a subnet of {subnet.network.vpc_id}{zone}, owned by {owner}, with {subnet.addresses} free "
            "addresses: one an instance",
        )
        yield from item.look(_subnet, subject, subnet, owner)


def _subnet(item: CheckedItem, subject: Subject, subnet: NamedSubnet, named_owner: str) -> PreflightResult:
    rows = _rows(subject, "Subnets", [subnet.subnet_id])
    if not rows:
        return item.fails("no such subnet in the region", advice="Name a subnet that is there.")
    row = rows[0]
    vpc, zone, free = row["VpcId"], row["AvailabilityZone"], row["AvailableIpAddressCount"]
    owner = row["OwnerId"]
    found = f"in {vpc}, {zone}, owned by {owner}, {free} free addresses"
    if vpc != subnet.network.vpc_id or subnet.zone not in (None, zone):
        return item.fails(found, advice="Name each zone's own subnet of that VPC.")
    if owner != named_owner:
        own, field = owner == subject.environment.account, f"{subnet.field}.owner_account"
        advice = f"Remove {field}." if own else f'Write {field}: "{owner}".'
        return item.fails(found, advice=f"{advice} The roles' policies name the owner in the subnets' ARNs.")
    if free < subnet.addresses:
        return item.fails(found, advice="Free addresses there, or name a larger subnet, or more zones.")
    return item.passes(found)


PAGE = "tritonstack docs network#another-network"


def check_left_network(subject: Subject) -> Iterator[PreflightResult]:
    """No endpoint runs in a subnet or a security group that the deployment would delete.

    The network's stack is deployed before the serving stacks. It deletes what the settings no longer have with the old
    fleet still in it: EC2 refuses, and the VPC endpoints are gone before the fleet has moved. Without ``network`` the
    stack is not deployed at all, and stays.
    """
    network = subject.environment.network
    if network is None:
        return
    stack = f"{subject.environment.environment}-network"
    item = CheckedItem(check="left-network", subject=stack, needed="nothing deleted that a fleet is in")
    yield from item.look(_left_network, subject, network)


def _left_network(item: CheckedItem, subject: Subject, network: NetworkSettings) -> Iterator[PreflightResult]:
    goes = _goes(subject, network, stack=item.subject)
    if not goes:
        yield item.passes("no subnet and no security group is taken away")
        return
    for name in _endpoints(subject):
        yield from replace(item, subject=name).look(_in_deleted, subject, goes, item.subject)


def _in_deleted(item: CheckedItem, subject: Subject, goes: Mapping[str, str], stack: str) -> PreflightResult:
    inside = [goes[part] for part in _joined(subject, item.subject) if part in goes]
    if not inside:
        return item.passes(f"in nothing that {stack} would delete ({len(goes)} parts)")
    return item.fails(
        f"its instances are in {', '.join(sorted(inside))}, which the deployment of {stack} would delete first",
        advice=f"In two deployments: first leave it (`join`) and keep `created` as it is, then take it out ({PAGE}).",
    )


def _goes(subject: Subject, network: NetworkSettings, *, stack: str) -> dict[str, str]:
    """Id → description of each subnet and security group of the stack that the settings no longer have."""
    made = made_by(subject, stack)
    subnets = _rows(subject, "Subnets", made.get("AWS::EC2::Subnet", ()))
    kept = [row for row in subnets if _keeps_subnet(network, row)]
    goes = {
        row["SubnetId"]: f"subnet {row['SubnetId']} ({row['AvailabilityZone']})" for row in subnets if row not in kept
    }
    stays = {row["VpcId"] for row in kept}
    if network.imported is not None and not network.imported.security_group_ids:
        stays.add(network.imported.vpc_id)
    for row in _rows(subject, "SecurityGroups", made.get("AWS::EC2::SecurityGroup", ())):
        if row["VpcId"] not in stays:
            goes[row["GroupId"]] = f"security group {row['GroupId']}"
    return goes


def made_by(subject: Subject, stack: str) -> Mapping[str, list[str]]:
    """Type → physical ids of a stack's resources; empty where there is no stack."""
    found: dict[str, list[str]] = {}
    rows = subject.calls.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack)
    try:
        for row in rows:
            if row.get("PhysicalResourceId") and row.get("ResourceStatus") != "DELETE_COMPLETE":
                found.setdefault(row["ResourceType"], []).append(row["PhysicalResourceId"])
    except NotKnownError as error:
        if "does not exist" not in error.found:  # CloudFormation has no code of its own for it (ValidationError)
            raise
    return found


def _keeps_subnet(network: NetworkSettings, row: Mapping[str, Any]) -> bool:
    """Whether a created VPC of these settings has the subnet. Another range is another VPC."""
    created = network.created
    return (
        created is not None
        and row["AvailabilityZone"] in created.zones
        and ipaddress.IPv4Network(row["CidrBlock"]).subnet_of(ipaddress.IPv4Network(created.cidr))
    )


def _endpoints(subject: Subject) -> list[str]:
    """The account's endpoints with the environment's prefix; also those that were removed from the file."""
    prefix = f"{subject.environment.environment}-"
    rows = subject.calls.pages("sagemaker", "list_endpoints", "Endpoints", NameContains=prefix)
    return sorted(row["EndpointName"] for row in rows if row["EndpointName"].startswith(prefix))


def _joined(subject: Subject, endpoint: str) -> Iterator[str]:
    """The subnets and security groups of the models that an endpoint runs."""
    _, variants = endpoint_and_variants(subject.calls, endpoint)
    for variant in variants:
        model = subject.calls.ask("sagemaker", "describe_model", absent=GONE, ModelName=variant["ModelName"]) or {}
        joined = model.get("VpcConfig", {})
        yield from (*joined.get("Subnets", ()), *joined.get("SecurityGroupIds", ()))
