"""``network``: the VPC that an environment's containers and builds run in."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tritonstack.catalogue import partition
from tritonstack.config.builds import BuildSettings, LogDays
from tritonstack.config.fields import OwnerAccount, SecurityGroupId, SettingsModel, Site, SubnetId, VpcId, repeated
from tritonstack.config.yaml_loader import shown
from tritonstack.errors import Location, Problem

if TYPE_CHECKING:
    from tritonstack.config.environment import Environment

Range = Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$")]
Zone = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9][a-h]$")]


class ImportedNetwork(SettingsModel):
    """A VPC that exists; nothing of it is looked up."""

    vpc_id: VpcId = Field(description="The VPC that containers and builds join.")
    subnets: Annotated[dict[Zone, SubnetId], Field(min_length=2, max_length=8)] = Field(
        description="Availability zone → a private subnet there; SageMaker wants two zones or more."
    )
    security_group_ids: Annotated[tuple[SecurityGroupId, ...], Field(strict=False, max_length=5)] = Field(
        default=(), description="Security groups of containers and builds; none: one is made without open egress."
    )
    route_table_ids: Annotated[
        tuple[Annotated[str, Field(pattern=r"^rtb-[0-9a-f]+$")], ...], Field(strict=False, max_length=20)
    ] = Field(default=(), description="Route tables of those subnets; the S3 endpoint goes into them (endpoints).")
    endpoints: bool = Field(
        default=False,
        description="Whether the VPC endpoints are made here; false: the VPC has them, or outbound internet access.",
    )
    owner_account: OwnerAccount = None
    subnet_ranges: Annotated[tuple[Range, ...], Field(strict=False, max_length=16)] = Field(
        default=(),
        description="IPv4 ranges of those subnets (10.0.1.0/24), which the security group that is made lets out to: "
        "needed where load_test tests a single-model endpoint, for Inference Recommender asks for it.",
    )


class CreatedNetwork(SettingsModel):
    """A VPC that is made: a private subnet a zone."""

    cidr: Range = Field(
        description="Its addresses (10.20.0.0/16), a private range of /16 to /24; fixed for ever.",
    )
    zones: Annotated[tuple[Zone, ...], Field(strict=False, min_length=2, max_length=8)] = Field(
        description="Its availability zones by name (us-east-1a), two or more; a zone's addresses follow its letter."
    )
    nat: Literal[False, "one", "each"] = Field(
        default=False,
        description="NAT gateways: false (no way to the internet), one for all zones, or each zone its own.",
    )
    flow_log_days: LogDays = Field(default=90, description="Days that the VPC's flow logs are kept.")


class NetworkSettings(SettingsModel):
    """An imported VPC or a created one; both, or one that nothing joins, only on the way from one to the other."""

    imported: ImportedNetwork | None = Field(default=None, description="A VPC that exists; its parts are named.")
    created: CreatedNetwork | None = Field(default=None, description="A VPC that is made, with all its parts.")
    join: Literal["created", "imported", "nothing"] | None = Field(
        default=None,
        description="Which of the two containers and builds join; null: the one there is. To leave a created network, "
        "name what is joined instead, deploy, and only then take created away "
        "(tritonstack docs network#another-network).",
    )
    s3_prefix_list_id: str | None = Field(
        default=None,
        pattern=r"^pl-[0-9a-f]+$",
        description="The region's prefix list of S3, which security groups made here let out to "
        "(aws ec2 describe-managed-prefix-lists --filters Name=prefix-list-name,Values=com.amazonaws.<region>.s3).",
    )

    @property
    def joined(self) -> Literal["created", "imported"] | None:
        """The network that containers and builds join."""
        if self.join is not None:
            return None if self.join == "nothing" else self.join
        return "created" if self.created is not None else "imported"

    @property
    def is_closed(self) -> bool:
        """Whether what joins it has no outbound internet access."""
        return self.joined == "created" and self.created is not None and self.created.nat is False

    @property
    def zones(self) -> tuple[str, ...]:
        """The availability zones that are joined, sorted."""
        if self.joined == "created" and self.created is not None:
            return tuple(sorted(self.created.zones))
        if self.joined == "imported" and self.imported is not None:
            return tuple(sorted(self.imported.subnets))
        return ()

    @property
    def subnet_owner(self) -> str | None:
        """The account of the joined subnets, where that is another than the environment's."""
        return self.imported.owner_account if self.joined == "imported" and self.imported is not None else None

    @property
    def security_groups(self) -> int:
        """Number of security groups of containers and builds: the imported ones, or the one that is made."""
        return len(self.imported.security_group_ids) or 1 if self.joined == "imported" and self.imported else 1

    @property
    def makes_group(self) -> bool:
        """Whether a security group is made here."""
        return self.created is not None or self.imported is None or not self.imported.security_group_ids

    @property
    def makes_endpoints(self) -> bool:
        """Whether VPC endpoints are made here."""
        return self.created is not None or self.imported is None or self.imported.endpoints

    @property
    def identity(self) -> str:
        """A text that differs between networks, for the joined one, also before it exists."""
        if self.joined == "imported" and self.imported is not None:
            return f"{self.imported.vpc_id} {' '.join(sorted(self.imported.subnets.values()))}"
        if self.joined == "created" and self.created is not None:
            return f"{self.created.cidr} {' '.join(self.zones)}"
        return ""


PRIVATE = tuple(ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
"""RFC 1918; also 100.64.0.0/10 would do, which few want."""


def check_network(*, environment: Environment, network: NetworkSettings, site: Site) -> Iterator[Problem]:
    """Everything that is wrong with an environment's network whose fields have the right types.

    Whether its builds need outbound internet access is known once the models are: ``tritonstack.served``.
    """
    if network.imported is None and network.created is None:
        yield Problem(
            location=("network",),
            found="neither imported nor created",
            allowed="one of the two: imported names a VPC that exists, created makes one",
        )
        return
    if network.join in ("created", "imported") and getattr(network, network.join) is None:
        yield Problem(
            location=("network", "join"),
            found=f"{network.join}, and no network.{network.join}",
            allowed="the network that is there, or nothing",
        )
        return
    if network.imported is not None and network.created is not None and network.join is None:
        yield Problem(
            location=("network", "join"),
            found="nothing, and both imported and created",
            allowed="created or imported: the one that containers and builds join; the other stays, too",
            advice="Take the other away in a later deployment.",
        )
    if network.makes_endpoints and site.region is not None and partition(site.region) == "aws-cn":
        yield Problem(
            location=("network",),
            found=f"VPC endpoints to be made in {site.region}",
            allowed="imported, with endpoints: false: how services' endpoints are called in China is not verified",
        )
    if network.created is not None:
        yield from _check_created(network.created, site.region)
    if network.imported is not None:
        yield from _check_imported(network.imported, site.region)
    if network.makes_group and network.s3_prefix_list_id is None:
        there = site.region or "<region>"
        yield Problem(
            location=("network", "s3_prefix_list_id"),
            found="nothing",
            allowed="the id of S3's prefix list in the region (pl-…), which the security group lets out to",
            advice=f"aws ec2 describe-managed-prefix-lists --region {there} --filters "
            f"Name=prefix-list-name,Values=com.amazonaws.{there}.s3",
        )
    if environment.recommended_in_network:
        yield from _check_recommender(network)
    yield from _check_builds(environment.builds)


def _check_zone(zone: str, region: str | None, *, location: Location) -> Iterator[Problem]:
    if region is not None and zone[:-1] != region:
        allowed = f"a zone of the environment's region, {region}a for example"
        yield Problem(location=location, found=zone, allowed=allowed)


def _check_created(created: CreatedNetwork, region: str | None) -> Iterator[Problem]:
    place = ("network", "created", "zones")
    yield from repeated(created.zones, location=place)
    for zone in created.zones:
        yield from _check_zone(zone, region, location=place)
    try:
        cidr = ipaddress.IPv4Network(created.cidr)
    except ValueError as error:
        yield Problem(
            location=("network", "created", "cidr"),
            found=f"{shown(created.cidr)}: {error}",
            allowed="a range that begins where its prefix says (10.20.0.0/16)",
        )
        return
    # A VPC has /16 at most (VPC guide: "VPC CIDR blocks"); it is split in sixteen, and a subnet has /28 at least.
    if not 16 <= cidr.prefixlen <= 24 or not any(cidr.subnet_of(range_) for range_ in PRIVATE):
        allowed = "/16 to /24 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16"
        yield Problem(location=("network", "created", "cidr"), found=str(cidr), allowed=allowed)


def _check_imported(imported: ImportedNetwork, region: str | None) -> Iterator[Problem]:
    place = ("network", "imported", "subnets")
    yield from repeated(imported.subnets.values(), location=place)
    for zone in imported.subnets:
        yield from _check_zone(zone, region, location=(*place, zone))
    for index, text in enumerate(imported.subnet_ranges):
        try:
            ipaddress.IPv4Network(text)
        except ValueError as error:
            yield Problem(
                location=("network", "imported", "subnet_ranges", index),
                found=f"{shown(text)}: {error}",
                allowed="a range that begins where its prefix says (10.0.1.0/24)",
            )
    if imported.endpoints and not imported.route_table_ids:
        yield Problem(
            location=("network", "imported", "route_table_ids"),
            found="none, and endpoints are to be made",
            allowed="the route tables of the subnets: the S3 endpoint is a route in each",
        )


def _check_recommender(network: NetworkSettings) -> Iterator[Problem]:
    """A group that is made must let Inference Recommender's jobs out to the subnets.

    Source: SageMaker developer guide, "Give Inference Recommender Jobs Access to Resources in Your Amazon VPC":
    "Configure the VPC security group".
    """
    imported = network.imported
    if network.joined == "imported" and imported and not imported.security_group_ids and not imported.subnet_ranges:
        yield Problem(
            location=("network", "imported", "subnet_ranges"),
            found="none, and load_test tests a single-model endpoint: Inference Recommender's jobs join the network "
            "with a security group that is made, which must let out to the subnets' ranges",
            allowed="the IPv4 ranges of the subnets: aws ec2 describe-subnets --subnet-ids "
            f"{' '.join(sorted(imported.subnets.values()))} --query 'Subnets[].CidrBlock'",
            advice="Or name security groups of yours that let out to them (security_group_ids).",
        )


def _check_builds(builds: BuildSettings) -> Iterator[Problem]:
    if builds.network is not None and builds.outside_network:
        place = ("builds", "outside_network")
        yield Problem(location=place, found="true together with builds.network", allowed="one of the two")
