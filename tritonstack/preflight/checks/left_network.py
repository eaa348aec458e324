"""No fleet is in a subnet or a security group that the deployment would delete: it must have left them before."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from tritonstack.config import NetworkSettings
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject

_GONE = ("ValidationException",)
"""What SageMaker answers of an endpoint, a config or a model that is gone."""
PAGE = "docs/network.md#another-network"


def check(subject: Subject) -> Iterator[Result]:
    """A result for each endpoint of the environment that runs, where its network's stack is to be deployed again.

    That stack is deployed before what serves. What the settings no longer have it deletes with the old fleet still in
    it: EC2 refuses, and the VPC endpoints are gone before the fleet has moved. Without ``network`` the stack is not
    deployed at all, and stays.
    """
    network = subject.environment.network
    if network is None:
        return
    stack = f"{subject.environment.environment}-network"
    about = About(check="left-network", subject=stack, needed="nothing deleted that a fleet is in")
    yield from about.look(_look, subject, network)


def _look(about: About, subject: Subject, network: NetworkSettings) -> Iterator[Result]:
    goes = _goes(subject, network, stack=about.subject)
    if not goes:
        yield about.passes("no subnet and no security group is taken away")
        return
    for name in _endpoints(subject):
        one = About(check=about.check, subject=name, needed=about.needed)
        yield from one.look(_in_what_goes, subject, goes, about.subject)


def _in_what_goes(about: About, subject: Subject, goes: Mapping[str, str], stack: str) -> Result:
    inside = [goes[part] for part in _joined(subject, about.subject) if part in goes]
    if not inside:
        return about.passes(f"in nothing that {stack} would delete ({len(goes)} parts)")
    return about.fails(
        f"its instances are in {', '.join(sorted(inside))}, which the deployment of {stack} would delete first",
        advice="In two deployments: first leave it (`join`, or `leave_zones` for a zone) and keep `created` as it is, "
        f"then take it out ({PAGE}).",
    )


def _goes(subject: Subject, network: NetworkSettings, *, stack: str) -> dict[str, str]:
    """The stack's subnets and security groups that the settings no longer have, by id, with words for them."""
    made = subject.stacks.made(stack, "AWS::EC2::Subnet")
    subnets = _described(subject, "describe_subnets", "Subnets", named="subnet-id", member="SubnetId", ids=made)
    kept = [row for row in subnets if _keeps_subnet(network, row)]
    goes = {
        row["SubnetId"]: f"subnet {row['SubnetId']} ({row['AvailabilityZone']})" for row in subnets if row not in kept
    }
    stays = {row["VpcId"] for row in kept}
    if network.imported is not None and not network.imported.security_group_ids:
        stays.add(network.imported.vpc_id)
    made = subject.stacks.made(stack, "AWS::EC2::SecurityGroup")
    for row in _described(
        subject, "describe_security_groups", "SecurityGroups", named="group-id", member="GroupId", ids=made
    ):
        if row["VpcId"] not in stays:
            goes[row["GroupId"]] = f"security group {row['GroupId']}"
    return goes


def _keeps_subnet(network: NetworkSettings, row: Mapping[str, Any]) -> bool:
    """Whether a created VPC of these settings has the subnet. Another range is another VPC."""
    created = network.created
    return (
        created is not None
        and row["AvailabilityZone"] in created.zones
        and ipaddress.IPv4Network(row["CidrBlock"]).subnet_of(ipaddress.IPv4Network(created.cidr))
    )


def _described(
    subject: Subject, operation: str, rows: str, *, named: str, member: str, ids: tuple[str, ...]
) -> list[dict[str, Any]]:
    """EC2's rows of these ids, which ``member`` holds; of those that are gone there is none."""
    if not ids:
        return []
    answer = subject.calls.must("ec2", operation, Filters=[{"Name": named, "Values": list(ids)}])
    return [row for row in answer.get(rows, []) if row[member] in ids]  # the local AWS knows not every filter


def _endpoints(subject: Subject) -> list[str]:
    """The account's endpoints whose names are the environment's: those that left the file are there still."""
    prefix = f"{subject.environment.environment}-"
    rows = subject.calls.pages("sagemaker", "list_endpoints", "Endpoints", NameContains=prefix)
    return sorted(row["EndpointName"] for row in rows if row["EndpointName"].startswith(prefix))


def _joined(subject: Subject, endpoint: str) -> Iterator[str]:
    """The subnets and security groups of the models that an endpoint runs."""
    ask = subject.calls.ask
    described = ask("sagemaker", "describe_endpoint", absent=_GONE, EndpointName=endpoint)
    name = (described or {}).get("EndpointConfigName")
    config = ask("sagemaker", "describe_endpoint_config", absent=_GONE, EndpointConfigName=name) if name else None
    for variant in (config or {}).get("ProductionVariants", ()):
        model = ask("sagemaker", "describe_model", absent=_GONE, ModelName=variant["ModelName"]) or {}
        joined = model.get("VpcConfig", {})
        yield from (*joined.get("Subnets", ()), *joined.get("SecurityGroupIds", ()))


CHECK = Check(name="left-network", title="the network that is left", run=check)
