"""Security groups that let nothing out but to VPC endpoints and S3."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

HTTPS = 443
INTERNET = "0.0.0.0/0"
NOWHERE = ec2.CfnSecurityGroup.EgressProperty(
    ip_protocol="icmp",
    from_port=252,
    to_port=86,
    cidr_ip="255.255.255.255/32",
    description="Lets nothing out: without a rule EC2 would let everything out",
)
"""An ICMP type that does not exist, to no address."""


class ClosedGroup(Construct):
    """A security group of machines that start connections and take none.

    It lets out to S3's prefix list, and where asked to the internet, on port 443; ``let_to`` adds the endpoints.

    Attributes:
        group_id: its id.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        of: str,
        s3_prefix_list_id: str,
        internet: bool = False,
    ) -> None:
        """Make the group.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            vpc_id: the VPC.
            of: whose machines they are, for its description.
            s3_prefix_list_id: S3's prefix list in the region.
            internet: also to the internet, through a NAT gateway. Default: False.
        """
        super().__init__(scope, construct_id)
        to_s3 = ec2.CfnSecurityGroup.EgressProperty(
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            destination_prefix_list_id=s3_prefix_list_id,
            description="S3, through its gateway endpoint",
        )
        to_internet = ec2.CfnSecurityGroup.EgressProperty(
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            cidr_ip=INTERNET,
            description="The package index, through a NAT gateway",
        )
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=vpc_id,
            group_description=f"{of}: HTTPS out, nothing in",
            security_group_egress=[to_s3, to_internet] if internet else [to_s3],
        )
        self.group_id: str = group.attr_group_id

    def let_to(self, group_id: str) -> None:
        """Let out to the interface endpoints' group. A rule of its own: the two groups name one another."""
        ec2.CfnSecurityGroupEgress(
            self,
            "ToEndpoints",
            group_id=self.group_id,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            destination_security_group_id=group_id,
            description="Interface endpoints",
        )


def endpoints_group(scope: Construct, construct_id: str, *, vpc_id: str, callers: Sequence[str]) -> str:
    """The group of interface endpoints, which take HTTPS from the groups ``callers`` and start nothing; its id."""
    group = ec2.CfnSecurityGroup(
        scope,
        construct_id,
        vpc_id=vpc_id,
        group_description="Interface endpoints: HTTPS in from the environment, nothing out",
        security_group_ingress=[
            ec2.CfnSecurityGroup.IngressProperty(
                ip_protocol="tcp",
                from_port=HTTPS,
                to_port=HTTPS,
                source_security_group_id=caller,
                description="Containers, builds and callers of the environment",
            )
            for caller in callers
        ],
        security_group_egress=[NOWHERE],
    )
    return str(group.attr_group_id)
