"""``network``: the VPC that an environment's containers and builds run in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tritonstack.config.builds import LogDays
from tritonstack.config.fields import ACCOUNT_PATTERN, SettingsModel

ZONE_PATTERN = r"^[a-z]{2}(-[a-z]+)+-[0-9][a-h]$"
BUCKET_PATTERN = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
CIDR_PATTERN = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$"
EndpointService = Literal[
    "application-autoscaling",
    "codebuild",
    "ecr.api",
    "ecr.dkr",
    "events",
    "kms",
    "logs",
    "monitoring",
    "sagemaker.api",
    "sts",
]
"""Services with an interface endpoint ``com.amazonaws.<region>.<service>`` (VPC guide: "AWS services that integrate
with AWS PrivateLink") that only a caller of one's own would need."""

Zone = Annotated[str, Field(pattern=ZONE_PATTERN)]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]+$")]


class ImportedNetwork(SettingsModel):
    """A VPC that exists; nothing of it is looked up."""

    vpc_id: str = Field(pattern=r"^vpc-[0-9a-f]+$", description="The VPC that containers and builds join.")
    subnets: Annotated[dict[Zone, SubnetId], Field(min_length=2, max_length=8)] = Field(
        description="Availability zone → a private subnet there; SageMaker wants two zones or more."
    )
    security_group_ids: Annotated[
        tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]+$")], ...], Field(strict=False, max_length=5)
    ] = Field(
        default=(), description="Security groups of containers and builds; none: one is made without open egress."
    )
    route_table_ids: Annotated[
        tuple[Annotated[str, Field(pattern=r"^rtb-[0-9a-f]+$")], ...], Field(strict=False, max_length=20)
    ] = Field(default=(), description="Route tables of those subnets; the S3 endpoint goes into them (endpoints).")
    endpoints: bool = Field(
        default=False,
        description="Whether the VPC endpoints are made here; false: the VPC has them, or a way out.",
    )
    owner_account: str | None = Field(
        default=None,
        pattern=ACCOUNT_PATTERN,
        description="The account that owns these subnets, in quotes, where it shares them (AWS RAM): the roles' "
        "policies name it in the subnets' ARNs. null: the environment's own.",
    )


class CreatedNetwork(SettingsModel):
    """A VPC that is made: a private subnet a zone."""

    cidr: str = Field(
        pattern=CIDR_PATTERN, description="Its addresses (10.20.0.0/16), a private range of /16 to /24; fixed for ever."
    )
    zones: Annotated[tuple[Zone, ...], Field(strict=False, min_length=2, max_length=8)] = Field(
        description="Its availability zones by name (us-east-1a), two or more; a zone's addresses follow its letter."
    )
    leave_zones: Annotated[tuple[Zone, ...], Field(strict=False, max_length=6)] = Field(
        default=(),
        description="Zones whose subnet stays and that nothing joins: the deployment before one is taken out of zones, "
        "since what runs in a subnet must have left it first.",
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
        "(docs/operations.md#another-network).",
    )
    s3_prefix_list_id: str | None = Field(
        default=None,
        pattern=r"^pl-[0-9a-f]+$",
        description="The region's prefix list of S3, which security groups made here let out to "
        "(aws ec2 describe-managed-prefix-lists --filters Name=prefix-list-name,Values=com.amazonaws.<region>.s3).",
    )
    additional_endpoints: Annotated[tuple[EndpointService, ...], Field(strict=False)] = Field(
        default=(), description="Interface endpoints that only your own callers in the VPC need."
    )
    additional_buckets: Annotated[tuple[Annotated[str, Field(pattern=BUCKET_PATTERN)], ...], Field(strict=False)] = (
        Field(default=(), description="Buckets that the S3 endpoint lets read besides those that are needed here.")
    )

    @property
    def joined(self) -> Literal["created", "imported"] | None:
        """Which of the two containers and builds join."""
        if self.join is not None:
            return None if self.join == "nothing" else self.join
        return "created" if self.created is not None else "imported"

    @property
    def has_nat(self) -> bool:
        """Whether a NAT gateway is made here."""
        return self.created is not None and self.created.nat is not False

    @property
    def is_closed(self) -> bool:
        """Whether what joins it has no way to the internet."""
        return self.joined == "created" and not self.has_nat

    @property
    def zones(self) -> tuple[str, ...]:
        """The availability zones that are joined, sorted."""
        if self.joined == "created" and self.created is not None:
            return tuple(sorted(set(self.created.zones) - set(self.created.leave_zones)))
        if self.joined == "imported" and self.imported is not None:
            return tuple(sorted(self.imported.subnets))
        return ()

    @property
    def subnet_owner(self) -> str | None:
        """The account of the joined subnets, where that is another than the environment's."""
        return self.imported.owner_account if self.joined == "imported" and self.imported is not None else None

    @property
    def security_groups(self) -> int:
        """How many security groups containers and builds have: the imported ones, or the one that is made."""
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
        """What tells the joined network from another one, before it exists."""
        if self.joined == "imported" and self.imported is not None:
            return f"{self.imported.vpc_id} {' '.join(sorted(self.imported.subnets.values()))}"
        if self.joined == "created" and self.created is not None:
            return f"{self.created.cidr} {' '.join(self.zones)}"
        return ""
