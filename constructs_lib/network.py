"""An environment's network, imported or created, and how other stacks find it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.codebuild_project import BuildLog
from constructs_lib.joined_network import BuildNetwork, JoinedNetwork
from constructs_lib.outputs import read_parameter, write_parameter
from constructs_lib.permission import allow_group, service_role
from constructs_lib.vpc_endpoints import VpcEndpoints
from tritonstack import naming
from tritonstack.config import CreatedNetwork, Environment, ImportedNetwork, NetworkSettings
from tritonstack.preparation.deployed_builds import DeployedBuilds

HTTPS: dict[str, Any] = {"ip_protocol": "tcp", "from_port": 443, "to_port": 443}
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
    """A security group of machines that open connections and accept none.

    It allows HTTPS to S3's prefix list and, if set, to the internet; ``allow_egress_to`` adds the interface endpoints.
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
        ranges: Sequence[str] = (),
    ) -> None:
        """Make the group.

        ``of``: whose machines they are; ``internet``: also HTTPS there, through a NAT gateway; ``ranges``: everything
        to these IPv4 ranges.
        """
        super().__init__(scope, construct_id)
        to_s3 = ec2.CfnSecurityGroup.EgressProperty(
            **HTTPS, destination_prefix_list_id=s3_prefix_list_id, description="S3, through its gateway endpoint"
        )
        to_internet = ec2.CfnSecurityGroup.EgressProperty(
            **HTTPS, cidr_ip=INTERNET, description="The package index, through a NAT gateway"
        )
        to_ranges = [
            ec2.CfnSecurityGroup.EgressProperty(ip_protocol="-1", cidr_ip=each, description="Load tests: the subnets")
            for each in ranges
        ]
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=vpc_id,
            group_description=f"{of}: HTTPS out, nothing in",
            security_group_egress=[to_s3, *([to_internet] if internet else []), *to_ranges],
        )
        self.group_id: str = group.attr_group_id

    def allow_egress_to(self, group_id: str) -> None:
        """Allow HTTPS to the interface endpoints' group. A rule of its own, because the two groups name each other."""
        ec2.CfnSecurityGroupEgress(
            self,
            "ToEndpoints",
            group_id=self.group_id,
            **HTTPS,
            destination_security_group_id=group_id,
            description="Interface endpoints",
        )


def endpoints_group(scope: Construct, construct_id: str, *, vpc_id: str, callers: Sequence[str]) -> str:
    """The id of interface endpoints' group: they accept HTTPS from the groups ``callers`` and open no connection."""
    group = ec2.CfnSecurityGroup(
        scope,
        construct_id,
        vpc_id=vpc_id,
        group_description="Interface endpoints: HTTPS in from the environment, nothing out",
        security_group_ingress=[
            ec2.CfnSecurityGroup.IngressProperty(
                **HTTPS,
                source_security_group_id=caller,
                description="Containers, builds and callers of the environment",
            )
            for caller in callers
        ],
        security_group_egress=[NOWHERE],
    )
    return str(group.attr_group_id)


BLOCKS = 16
"""The range is split so: a private block for each letter that a zone may end in (a to h), then a public one for each.
So a zone that is added or removed moves no other."""


class CreatedVpc(Construct):
    """The VPC, its subnets and its routes.

    Attributes:
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

        ``cidr``: of /24 or larger. ``zones``: each ending in a letter of a to h. ``nat``: whether private subnets
        reach the internet: not at all, through one gateway, or each through its own.
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
            self._internet_routes(sorted(zones), each=nat == "each")

    def range_of(self, zone: str, *, kind: Literal["Private", "Public"] = "Private") -> str:
        """The addresses of a zone's subnet."""
        return str(self._blocks[ord(zone[-1]) - ord("a") + (0 if kind == "Private" else BLOCKS // 2)])

    def _subnet(self, zone: str, kind: Literal["Private", "Public"]) -> tuple[ec2.CfnSubnet, ec2.CfnRouteTable]:
        name = f"{kind}-{zone}"
        subnet = ec2.CfnSubnet(
            self,
            f"{name}-Subnet",
            vpc_id=self.vpc.ref,
            availability_zone=zone,
            cidr_block=self.range_of(zone, kind=kind),
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

    def _internet_routes(self, zones: Sequence[str], *, each: bool) -> None:
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


@dataclass(frozen=True, kw_only=True)
class Vpc:
    """A VPC that containers and builds can join."""

    vpc_id: str
    subnets: Mapping[str, str]  # zone → private subnet
    groups: Sequence[str]  # security groups of containers
    groups_of_builds: Sequence[str]


class Network(Construct):
    """VPC, subnets, security groups and endpoints, with an SSM parameter for each value that other stacks need.

    Attributes:
        vpc_id: the VPC that containers and builds join; where they join none any more, the one that is left.
        subnets: zone → private subnet, of those that are joined.
        groups: the security groups of containers; none where they join nothing.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        settings: NetworkSettings,
        artifacts: ArtifactBucketReference,
        builds: DeployedBuilds | None,
    ) -> None:
        """Create the parts that are not imported. ``builds``: the deployments' builds, which may run in the network."""
        super().__init__(scope, construct_id)
        self._settings, self._artifacts = settings, artifacts
        self._environment, self._builds = environment, builds
        vpcs: dict[str, Vpc] = {}
        if settings.created is not None:
            vpcs["created"] = self._create(settings.created)
        if settings.imported is not None:
            vpcs["imported"] = self._import(settings.imported)
        joined = None if settings.joined is None else vpcs[settings.joined]
        self.vpc_id = (joined or next(iter(vpcs.values()))).vpc_id
        self.subnets = {} if joined is None else dict(joined.subnets)
        self.groups = [] if joined is None else list(joined.groups)
        if joined is None:
            return
        values = {"vpc-id": joined.vpc_id}
        values |= {f"subnet-{zone}": subnet for zone, subnet in joined.subnets.items()}
        values |= {f"security-group-{number}": group for number, group in enumerate(joined.groups)}
        values |= {f"builds-security-group-{number}": group for number, group in enumerate(joined.groups_of_builds)}
        for value, text in values.items():
            name = naming.network_parameter(environment=environment.environment, value=value)
            write_parameter(self, value, name=name, text=text)

    def _create(self, made: CreatedNetwork) -> Vpc:
        created = CreatedVpc(self, "Created", cidr=made.cidr, zones=made.zones, nat=made.nat)
        self._log_flows(created.vpc.ref, days=made.flow_log_days)
        subnets = {zone: subnet.ref for zone, subnet in created.subnets.items()}
        ranges = [created.range_of(zone) for zone in sorted(subnets)]
        groups = self._closed_groups(self, vpc_id=created.vpc.ref, nat=made.nat is not False, ranges=ranges)
        self._endpoints(
            self,
            vpc_id=created.vpc.ref,
            subnets=subnets,
            route_tables=[table.ref for table in created.route_tables.values()],
            callers=groups,
        )
        return Vpc(
            vpc_id=created.vpc.ref,
            subnets=subnets,
            groups=[groups["containers"].group_id],
            groups_of_builds=[groups.get("builds", groups["containers"]).group_id],
        )

    def _log_flows(self, vpc_id: str, *, days: int) -> None:
        """Write all traffic of the VPC into a log group under the artifacts' key."""
        environment = self._environment.environment
        log = BuildLog(
            self, "FlowLogGroup", environment=environment, of="network", days=days, artifacts=self._artifacts
        )
        scope = Construct(self, "FlowLog")
        role, policy = service_role(
            scope, "vpc-flow-logs", description=f"Writes the flow log of the network of {environment}"
        )
        allow_group(policy, "flow-log", log=log.arn)
        flows = ec2.CfnFlowLog(
            scope,
            "Flows",
            resource_id=vpc_id,
            resource_type="VPC",
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=log.name,
            deliver_logs_permission_arn=role.role_arn,
        )
        flows.node.add_dependency(policy, log.group)

    def _import(self, imported: ImportedNetwork) -> Vpc:
        """An imported VPC. Resources in it have a scope of their own, because a created VPC may exist as well."""
        scope = Construct(self, "Imported")
        subnets = dict(sorted(imported.subnets.items()))
        made: dict[str, ClosedGroup] = {}
        if not imported.security_group_ids:
            ranges = imported.subnet_ranges
            made = self._closed_groups(scope, vpc_id=imported.vpc_id, nat=False, ranges=ranges)
        groups = list(imported.security_group_ids) or [each.group_id for each in made.values()]
        if imported.endpoints:
            self._endpoints(
                scope,
                vpc_id=imported.vpc_id,
                subnets=subnets,
                route_tables=imported.route_table_ids,
                callers=made,
                imported_callers=imported.security_group_ids,
            )
        return Vpc(vpc_id=imported.vpc_id, subnets=subnets, groups=groups, groups_of_builds=groups)

    def _closed_groups(
        self, scope: Construct, *, vpc_id: str, nat: bool, ranges: Sequence[str]
    ) -> dict[str, ClosedGroup]:
        """The groups that are made: that of containers, and one for builds where only these may use a NAT gateway.

        ``ranges``: of the subnets. Containers may connect to them where Inference Recommender tests endpoints, whose
        jobs have the group of the model that they test: "you must allow outbound communication to your Amazon S3 VPC
        endpoints and the subnet CIDR ranges used for the inference recommendation job" (SageMaker developer guide,
        "Give Inference Recommender Jobs Access to Resources in Your Amazon VPC").
        """
        if self._settings.s3_prefix_list_id is None:
            raise ValueError("s3_prefix_list_id is needed for the security groups that are made")
        made = {"containers": ("Containers", False)}
        if nat:
            made["builds"] = ("Builds", True)
        return {
            of: ClosedGroup(
                scope,
                name,
                vpc_id=vpc_id,
                of=f"{name} of {self._environment.environment}",
                s3_prefix_list_id=self._settings.s3_prefix_list_id,
                internet=internet,
                ranges=ranges if of == "containers" and self._environment.recommended_in_network else (),
            )
            for of, (name, internet) in made.items()
        }

    def _endpoints(
        self,
        scope: Construct,
        *,
        vpc_id: str,
        subnets: Mapping[str, str],
        route_tables: Sequence[str],
        callers: Mapping[str, ClosedGroup],
        imported_callers: Sequence[str] = (),
    ) -> None:
        ids = [*(each.group_id for each in callers.values()), *imported_callers]
        group = endpoints_group(scope, "EndpointsGroup", vpc_id=vpc_id, callers=ids)
        for each in callers.values():
            each.allow_egress_to(group)
        VpcEndpoints(
            scope,
            "Endpoints",
            vpc_id=vpc_id,
            subnet_ids=list(subnets.values()),
            route_table_ids=route_tables,
            security_group_id=group,
            artifacts=self._artifacts,
            environment=self._environment,
            builds=self._builds,
        )


class NetworkReference(Construct):
    """The network as another stack sees it: values from SSM parameters, their number from the settings."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, settings: NetworkSettings) -> None:
        """A reference; each value that is read becomes a parameter of the stack."""
        super().__init__(scope, construct_id)
        self._environment = environment
        self._settings = settings

    def of_containers(self) -> JoinedNetwork:
        """Subnets and security groups of an endpoint's containers."""
        return JoinedNetwork(
            subnet_ids=self._subnets(),
            security_group_ids=self._groups("security-group"),
            subnet_owner=self._settings.subnet_owner,
        )

    def of_builds(self) -> BuildNetwork:
        """Subnets and security groups of builds."""
        return BuildNetwork(
            vpc_id=self._read("vpc-id"),
            subnet_ids=self._subnets(),
            security_group_ids=self._groups("builds-security-group"),
            subnet_owner=self._settings.subnet_owner,
        )

    def _subnets(self) -> tuple[str, ...]:
        return tuple(self._read(f"subnet-{zone}") for zone in self._settings.zones)

    def _groups(self, name: str) -> tuple[str, ...]:
        return tuple(self._read(f"{name}-{number}") for number in range(self._settings.security_groups))

    def _read(self, value: str) -> str:
        name = naming.network_parameter(environment=self._environment, value=value)
        return read_parameter(self, value, name=name)
