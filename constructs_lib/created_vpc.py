"""A VPC with a private subnet a zone; with NAT gateways also a public one."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Literal

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge

BLOCKS = 16
"""The range is split so: a private block for each letter that a zone may end in (a to h), then a public one for each.
So a zone that is added or removed moves no other."""
INTERNET = "0.0.0.0/0"


class CreatedVpc(Construct):
    """The VPC, its subnets and its routes.

    Attributes:
        vpc: the VPC.
        subnets: zone → its private subnet.
        route_tables: zone → the route table of that subnet.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cidr: str,
        zones: Sequence[str],
        nat: Literal[False, "one", "each"],
    ) -> None:
        """Make the VPC.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            cidr: its range, of /24 or larger.
            zones: names of availability zones, each ending in a letter of a to h.
            nat: whether private subnets reach the internet: not at all, through one gateway, or each through its own.
        """
        super().__init__(scope, construct_id)
        self._blocks = list(ipaddress.IPv4Network(cidr).subnets(prefixlen_diff=BLOCKS.bit_length() - 1))
        self.vpc = ec2.CfnVPC(self, "Vpc", cidr_block=cidr, enable_dns_support=True, enable_dns_hostnames=True)
        cdk.Tags.of(self.vpc).add("Name", self.node.path)
        self.subnets: dict[str, ec2.CfnSubnet] = {}
        self.route_tables: dict[str, ec2.CfnRouteTable] = {}
        for zone in sorted(zones):
            self.subnets[zone], self.route_tables[zone] = self._subnet(zone, "Private")
        if nat:
            self._way_out(sorted(zones), each=nat == "each")

    def _subnet(self, zone: str, kind: Literal["Private", "Public"]) -> tuple[ec2.CfnSubnet, ec2.CfnRouteTable]:
        block = self._blocks[ord(zone[-1]) - ord("a") + (0 if kind == "Private" else BLOCKS // 2)]
        name = f"{kind}-{zone}"
        subnet = ec2.CfnSubnet(
            self,
            f"{name}-Subnet",
            vpc_id=self.vpc.ref,
            availability_zone=zone,
            cidr_block=str(block),
            map_public_ip_on_launch=False,
        )
        cdk.Tags.of(subnet).add("Name", f"{self.node.path}/{name}")
        acknowledge(
            subnet,
            finding="CloudFormation-Validate::W3010",
            reason="The zone is a setting: a look-up at synthesis would need credentials and give other templates on "
            "other days, and Fn::GetAZs gives zones without the instance types that endpoints run on.",
        )
        table = ec2.CfnRouteTable(self, f"{name}-Routes", vpc_id=self.vpc.ref)
        ec2.CfnSubnetRouteTableAssociation(self, f"{name}-Routed", subnet_id=subnet.ref, route_table_id=table.ref)
        return subnet, table

    def _way_out(self, zones: Sequence[str], *, each: bool) -> None:
        """Internet gateway, NAT gateways in public subnets, and a route to one of them from each private subnet."""
        gateway = ec2.CfnInternetGateway(self, "Internet")
        attached = ec2.CfnVPCGatewayAttachment(
            self, "InternetAttached", vpc_id=self.vpc.ref, internet_gateway_id=gateway.ref
        )
        nats: dict[str, ec2.CfnNatGateway] = {}
        for zone in zones if each else zones[:1]:
            subnet, table = self._subnet(zone, "Public")
            out = ec2.CfnRoute(
                self,
                f"Public-{zone}-Out",
                route_table_id=table.ref,
                destination_cidr_block=INTERNET,
                gateway_id=gateway.ref,
            )
            out.node.add_dependency(attached)
            address = ec2.CfnEIP(self, f"Nat-{zone}-Address", domain="vpc")
            address.node.add_dependency(attached)
            nats[zone] = ec2.CfnNatGateway(
                self, f"Nat-{zone}", subnet_id=subnet.ref, allocation_id=address.attr_allocation_id
            )
            nats[zone].node.add_dependency(out)
        for zone in zones:
            ec2.CfnRoute(
                self,
                f"Private-{zone}-Out",
                route_table_id=self.route_tables[zone].ref,
                destination_cidr_block=INTERNET,
                nat_gateway_id=nats.get(zone, nats[zones[0]]).ref,
            )
