"""An environment's network: imported or created, and how other stacks find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, JoinedNetwork
from constructs_lib.codebuild_project import BuildLog
from constructs_lib.created_vpc import ClosedGroup, CreatedVpc, FlowLog, endpoints_group
from constructs_lib.vpc_endpoints import Reach, VpcEndpoints
from tritonstack import naming
from tritonstack.config import CreatedNetwork, ImportedNetwork, NetworkSettings


@dataclass(frozen=True, kw_only=True)
class Vpc:
    """A VPC that containers and builds can join.

    Attributes:
        vpc_id: its id.
        subnets: zone → private subnet.
        groups: the security groups of containers.
        groups_of_builds: those of builds.
    """

    vpc_id: str
    subnets: Mapping[str, str]
    groups: Sequence[str]
    groups_of_builds: Sequence[str]


class Network(Construct):
    """VPC, subnets, security groups and endpoints, with an SSM parameter for each value that other stacks need.

    Attributes:
        vpc_id: the VPC that containers and builds join, or the one that they have just left.
        subnets: zone → private subnet, of those that are joined.
        groups: the security groups of containers; none where they join nothing.
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
            permissions_boundary_arn: a managed policy that bounds the role of the flow log. Default: None.

        Raises:
            ValueError: neither imported nor created, or no prefix list for the groups that are made.
        """
        super().__init__(scope, construct_id)
        self._settings, self._artifacts, self._reach = settings, artifacts, reach
        vpcs: dict[str, Vpc] = {}
        if settings.created is not None:
            vpcs["created"] = self._make(settings.created, permissions_boundary_arn)
        if settings.imported is not None:
            vpcs["imported"] = self._take(settings.imported)
        if not vpcs:
            raise ValueError("a network is imported or created: give one of the two")
        joined = None if settings.joined is None else vpcs[settings.joined]
        self.vpc_id = (joined or next(iter(vpcs.values()))).vpc_id
        self.subnets = {} if joined is None else dict(joined.subnets)
        self.groups = [] if joined is None else list(joined.groups)
        if joined is not None:
            self._record_values(joined)

    def _make(self, made: CreatedNetwork, permissions_boundary_arn: str | None) -> Vpc:
        environment = self._reach.environment
        created = CreatedVpc(self, "Created", cidr=made.cidr, zones=made.zones, nat=made.nat)
        log = BuildLog(
            self,
            "FlowLogGroup",
            environment=environment,
            of="network",
            days=made.flow_log_days,
            artifacts=self._artifacts,
        )
        FlowLog(
            self,
            "FlowLog",
            environment=environment,
            vpc_id=created.vpc.ref,
            log=log,
            permissions_boundary_arn=permissions_boundary_arn,
        )
        subnets = {zone: subnet.ref for zone, subnet in created.subnets.items()}
        groups = self._closed_groups(self, vpc_id=created.vpc.ref, nat=made.nat is not False)
        self._endpoints(
            self,
            vpc_id=created.vpc.ref,
            subnets=subnets,
            route_tables=[table.ref for table in created.route_tables.values()],
            callers=groups,
        )
        return Vpc(
            vpc_id=created.vpc.ref,
            subnets={zone: subnet for zone, subnet in subnets.items() if zone not in made.leave_zones},
            groups=[groups["containers"].group_id],
            groups_of_builds=[groups.get("builds", groups["containers"]).group_id],
        )

    @staticmethod
    def from_parameters(
        scope: Construct, construct_id: str, *, environment: str, settings: NetworkSettings
    ) -> NetworkReference:
        """The network of another stack of the same environment, found through its SSM parameters at deployment.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            settings: its network's.
        """
        return NetworkReference(scope, construct_id, environment=environment, settings=settings)

    def _take(self, imported: ImportedNetwork) -> Vpc:
        """An imported VPC. What is made in it has a scope of its own: it may stand beside a created one."""
        scope = Construct(self, "Imported")
        subnets = dict(sorted(imported.subnets.items()))
        made = {} if imported.security_group_ids else self._closed_groups(scope, vpc_id=imported.vpc_id, nat=False)
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

    def _closed_groups(self, scope: Construct, *, vpc_id: str, nat: bool) -> dict[str, ClosedGroup]:
        """The groups that are made: that of containers, and one for builds where only these may use a NAT gateway."""
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
                of=f"{name} of {self._reach.environment}",
                s3_prefix_list_id=self._settings.s3_prefix_list_id,
                internet=internet,
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
            each.let_to(group)
        VpcEndpoints(
            scope,
            "Endpoints",
            vpc_id=vpc_id,
            subnet_ids=list(subnets.values()),
            route_table_ids=route_tables,
            security_group_id=group,
            artifacts=self._artifacts,
            reach=self._reach,
        )

    def _record_values(self, vpc: Vpc) -> None:
        values = {"vpc-id": vpc.vpc_id}
        values |= {f"subnet-{zone}": subnet for zone, subnet in vpc.subnets.items()}
        values |= {f"security-group-{number}": group for number, group in enumerate(vpc.groups)}
        values |= {f"builds-security-group-{number}": group for number, group in enumerate(vpc.groups_of_builds)}
        for value, is_ in values.items():
            name = naming.network_parameter(environment=self._reach.environment, value=value)
            ssm.CfnParameter(self, f"Parameter-{value}", name=name, type="String", value=is_)


class NetworkReference(Construct):
    """The network as another stack sees it, through SSM parameters; what it has is known from the settings alone."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, settings: NetworkSettings) -> None:
        """A reference; a parameter of the stack is made for each value that is asked for.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            settings: its network's.
        """
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
        parameter = cdk.CfnParameter(
            self,
            value,
            type="AWS::SSM::Parameter::Value<String>",
            default=naming.network_parameter(environment=self._environment, value=value),
        )
        return parameter.value_as_string
