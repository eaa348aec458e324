"""Imported subnets are there, in their VPC and zone, of the owner named, with addresses for every instance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritonstack.preflight.instance_need import instance_need
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


@dataclass(frozen=True, kw_only=True)
class NamedSubnet:
    """A subnet that the settings name.

    Attributes:
        subnet_id: its id.
        vpc_id: the VPC that it is to lie in.
        zone: its zone, where the settings say it.
        addresses: the free addresses that are needed in it.
        owner: the account that it is said to belong to.
        owner_field: the setting that says so.
    """

    subnet_id: str
    vpc_id: str
    zone: str | None
    addresses: int
    owner: str
    owner_field: str


def named_subnets(subject: Subject) -> tuple[NamedSubnet, ...]:
    """The imported network's, and that of ``builds.network``."""
    environment, found = subject.environment, []
    network = environment.network
    imported = network.imported if network is not None else None
    if network is not None and imported is not None:
        joined = environment.endpoints if network.joined == "imported" else ()
        each = -(-instance_need(joined, others=0).total // len(imported.subnets))
        found += [
            NamedSubnet(
                subnet_id=subnet,
                vpc_id=imported.vpc_id,
                zone=zone,
                addresses=each,
                owner=imported.owner_account or environment.account,
                owner_field="network.imported.owner_account",
            )
            for zone, subnet in sorted(imported.subnets.items())
        ]
    builds = environment.builds.network
    if builds is not None and subject.builds_on_deploy:
        found += [
            NamedSubnet(
                subnet_id=subnet,
                vpc_id=builds.vpc_id,
                zone=None,
                addresses=1,
                owner=builds.owner_account or environment.account,
                owner_field="builds.network.owner_account",
            )
            for subnet in sorted(builds.subnet_ids)
            if subnet not in {one.subnet_id for one in found}
        ]
    return tuple(found)


def check(subject: Subject) -> Iterator[Result]:
    """A result for each subnet."""
    for subnet in named_subnets(subject):
        zone = f", in {subnet.zone}" if subnet.zone else ""
        about = About(
            check="subnet",
            subject=subnet.subnet_id,
            needed=f"a subnet of {subnet.vpc_id}{zone}, owned by {subnet.owner}, with {subnet.addresses} free "
            "addresses: one an instance",
        )
        yield from about.look(_look, subject, subnet)


def _look(about: About, subject: Subject, subnet: NamedSubnet) -> Result:
    filters = [{"Name": "subnet-id", "Values": [subnet.subnet_id]}]
    rows = subject.calls.must("ec2", "describe_subnets", Filters=filters).get("Subnets", [])
    if not rows:
        return about.fails("no such subnet in the region", advice="Name a subnet that is there.")
    row = rows[0]
    vpc, zone, free = row["VpcId"], row["AvailabilityZone"], row["AvailableIpAddressCount"]
    owner = row["OwnerId"]
    found = f"in {vpc}, {zone}, owned by {owner}, {free} free addresses"
    if vpc != subnet.vpc_id or subnet.zone not in (None, zone):
        return about.fails(found, advice="Name each zone's own subnet of that VPC.")
    if owner != subnet.owner:
        own = owner == subject.environment.account
        advice = f"Remove {subnet.owner_field}." if own else f'Write {subnet.owner_field}: "{owner}".'
        return about.fails(found, advice=f"{advice} The roles' policies name the owner in the subnets' ARNs.")
    if free < subnet.addresses:
        return about.fails(found, advice="Free addresses there, or name a larger subnet, or more zones.")
    return about.passes(found)


CHECK = Check(name="subnet", title="imported subnets", run=check)
