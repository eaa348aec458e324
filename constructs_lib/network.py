"""An environment's network: imported or created, and how other stacks find it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, JoinedNetwork
from constructs_lib.build_log import BuildLog
from constructs_lib.created_vpc import CreatedVpc
from constructs_lib.flow_log import FlowLog
from constructs_lib.network_groups import ClosedGroup, endpoints_group
from constructs_lib.vpc_endpoints import Reach, VpcEndpoints
from tritonstack import naming
from tritonstack.settings import NetworkSettings


class Network(Construct):
    """VPC, subnets, security groups and endpoints, with an SSM parameter for each value that other stacks need.

    Attributes:
        vpc_id: the VPC.
        subnets: zone → private subnet.
        groups: the security groups of containers.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: NetworkSettings,
        artifacts: ArtifactBucketReference,
        reach: Reach,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make what is not imported.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            settings: what is imported, or what to make.
            artifacts: the environment's bucket, whose key is the flow log's too.
            reach: what the endpoints let through.
            permissions_boundary_arn: a managed policy that bounds the role of the flow log.

        Raises:
            ValueError: neither imported nor created, or no prefix list for the groups that are made.
        """
        super().__init__(scope, construct_id)
        self._environment = reach.environment
        route_tables: list[str]
        if settings.created is not None:
            made = settings.created
            vpc = CreatedVpc(self, "Created", cidr=made.cidr, zones=made.zones, nat=made.nat)
            self.vpc_id = vpc.vpc.ref
            self.subnets = {zone: subnet.ref for zone, subnet in vpc.subnets.items()}
            route_tables = [table.ref for table in vpc.route_tables.values()]
            log = BuildLog(
                self,
                "FlowLogGroup",
                environment=reach.environment,
                of="network",
                days=made.flow_log_days,
                artifacts=artifacts,
            )
            FlowLog(
                self,
                "FlowLog",
                environment=reach.environment,
                vpc_id=self.vpc_id,
                log=log,
                permissions_boundary_arn=permissions_boundary_arn,
            )
        elif settings.imported is not None:
            self.vpc_id, route_tables = settings.imported.vpc_id, list(settings.imported.route_table_ids)
            self.subnets = dict(sorted(settings.imported.subnets.items()))
        else:
            raise ValueError("a network is imported or created: give one of the two")
        closed = self._closed_groups(settings)
        imported = settings.imported.security_group_ids if settings.imported is not None else ()
        self.groups = list(imported) or [closed["containers"].group_id]
        self._of_builds = [closed["builds"].group_id] if "builds" in closed else self.groups
        if settings.makes_endpoints:
            self._endpoints(closed=closed, route_tables=route_tables, artifacts=artifacts, reach=reach)
        self._record_values()

    def _closed_groups(self, settings: NetworkSettings) -> dict[str, ClosedGroup]:
        """The groups that are made: that of containers, and one for builds where only these may use a NAT gateway."""
        if not settings.makes_group:
            return {}
        if settings.s3_prefix_list_id is None:
            raise ValueError("s3_prefix_list_id is needed for the security groups that are made")
        made = {"containers": ("Containers", False)}
        if settings.has_nat:
            made["builds"] = ("Builds", True)
        return {
            of: ClosedGroup(
                self,
                name,
                vpc_id=self.vpc_id,
                of=f"{name} of {self._environment}",
                s3_prefix_list_id=settings.s3_prefix_list_id,
                internet=internet,
            )
            for of, (name, internet) in made.items()
        }

    def _endpoints(
        self,
        *,
        closed: dict[str, ClosedGroup],
        route_tables: list[str],
        artifacts: ArtifactBucketReference,
        reach: Reach,
    ) -> None:
        callers = [group.group_id for group in closed.values()] or self.groups
        group = endpoints_group(self, "EndpointsGroup", vpc_id=self.vpc_id, callers=callers)
        for each in closed.values():
            each.let_to(group)
        VpcEndpoints(
            self,
            "Endpoints",
            vpc_id=self.vpc_id,
            subnet_ids=list(self.subnets.values()),
            route_table_ids=route_tables,
            security_group_id=group,
            artifacts=artifacts,
            reach=reach,
        )

    def _record_values(self) -> None:
        values = {"vpc-id": self.vpc_id}
        values |= {f"subnet-{zone}": subnet for zone, subnet in self.subnets.items()}
        values |= {f"security-group-{number}": group for number, group in enumerate(self.groups)}
        values |= {f"builds-security-group-{number}": group for number, group in enumerate(self._of_builds)}
        for value, is_ in values.items():
            name = naming.network_parameter(environment=self._environment, value=value)
            ssm.CfnParameter(self, f"Parameter-{value}", name=name, type="String", value=is_)


class NetworkReference(Construct):
    """The network as another stack sees it, through SSM parameters; what it has is known from the settings alone."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, settings: NetworkSettings) -> None:
        """A reference; a parameter of the stack is made for each value that is asked for."""
        super().__init__(scope, construct_id)
        self._environment = environment
        self._settings = settings

    def of_containers(self) -> JoinedNetwork:
        """Subnets and security groups of an endpoint's containers."""
        return JoinedNetwork(subnet_ids=self._subnets(), security_group_ids=self._groups("security-group"))

    def of_builds(self) -> BuildNetwork:
        """Subnets and security groups of builds."""
        return BuildNetwork(
            vpc_id=self._read("vpc-id"),
            subnet_ids=self._subnets(),
            security_group_ids=self._groups("builds-security-group"),
        )

    def _subnets(self) -> tuple[str, ...]:
        return tuple(self._read(f"subnet-{zone}") for zone in self._settings.zones)

    def _groups(self, name: str) -> tuple[str, ...]:
        return tuple(self._read(f"{name}-{number}") for number in range(self._settings.security_groups))

    def _read(self, value: str) -> str:
        parameter = cdk.CfnParameter(
            self,
            value,
            type="AWS::SSM::Parameter::Value<String>",
            default=naming.network_parameter(environment=self._environment, value=value),
        )
        return parameter.value_as_string
