"""An environment of the tests in which everything about network, keys and retention is switched on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from tests.e2e.calls import Callers, digits_by_target
from tests.e2e.conftest import endpoint
from tests.e2e.project import Project
from tritonstack_local import ACCOUNT, REGION
from tritonstack_local.aws import LocalAws

ENDPOINT = "digits"
PREFIX_LIST = "pl-63a5400a"


def created(*zones: str, more: str = "") -> str:
    """The setting of a VPC that is made in these zones, without a way to the internet."""
    names = ", ".join(f"{REGION}{zone}" for zone in zones)
    return (
        f"{{created: {{cidr: 10.20.0.0/16, zones: [{names}], flow_log_days: 30}}, "
        f"s3_prefix_list_id: {PREFIX_LIST}{f', {more}' if more else ''}}}"
    )


@dataclass(frozen=True)
class Walled:
    """The environment ``name``, with the endpoint ``digits`` on one model."""

    project: Project
    aws: LocalAws
    name: str

    @property
    def boundary(self) -> str:
        """The permissions boundary of its roles."""
        return f"arn:aws:iam::{ACCOUNT}:policy/{self.name}-boundary"

    @property
    def endpoint(self) -> str:
        return f"{self.name}-{ENDPOINT}"

    @property
    def log_group(self) -> str:
        return f"/aws/sagemaker/Endpoints/{self.endpoint}"

    def write(self, *, network: str, more: str = "") -> None:
        """The environment file with this network; builds are off, and the one model's calls are kept.

        ``more``: another endpoint.
        """
        kept = "data_capture: {percentage: 100, days: 7}"
        one = endpoint(ENDPOINT, ["digits-onnx"], mode="single-model", more=kept)
        self.project.write(
            f"environments/{self.name}.yaml",
            f"""
            environment: {self.name}
            account: "{ACCOUNT}"
            region: {REGION}
            production: false
            permissions_boundary: {self.boundary}
            role_path: /team/triton/
            tags: {{team: platform}}
            artifacts: {{retain: true}}
            builds: {{on_deploy: false}}
            logs: {{endpoint_days: 30, function_days: 14}}
            network: {network}
            endpoints: [{one}{f", {more}" if more else ""}]
            """,
        )

    def deploy(self, *, expect: int = 0) -> str:
        """Deploy it with the real command line; what was written to standard error."""
        return self.project.run("local", "deploy", "-e", self.name, "--concurrency", "2", expect=expect).stderr

    def make_boundary(self) -> None:
        iam = self.aws.client("iam")
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        with suppress(iam.exceptions.EntityAlreadyExistsException):
            iam.create_policy(PolicyName=self.boundary.rpartition("/")[2], PolicyDocument=json.dumps(document))

    def imported(self) -> tuple[str, dict[str, list[str]]]:
        """The setting of a VPC that is made by hand here, and a Model's VpcConfig in it."""
        ec2 = self.aws.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.30.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.30.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"]
            for number, zone in enumerate("ab")
        ]
        group = ec2.create_security_group(GroupName=f"of-{self.name}", Description="machines", VpcId=vpc)["GroupId"]
        zones = ", ".join(f"{each['AvailabilityZone']}: {each['SubnetId']}" for each in subnets)
        return (
            f"{{vpc_id: {vpc}, subnets: {{{zones}}}, security_group_ids: [{group}]}}",
            {"SecurityGroupIds": [group], "Subnets": [each["SubnetId"] for each in subnets]},
        )

    def calling(self) -> AbstractContextManager[Callers]:
        """A caller of the endpoint while the block runs, none of whose calls may fail."""
        model = self.project.root / "model_repos" / "digits-onnx"
        return Callers([digits_by_target(self.aws, endpoint=self.endpoint, target=None, model=model)]).calling()

    def live_model(self) -> dict[str, Any]:
        """The Model that the endpoint's live config names."""
        sagemaker = self.aws.client("sagemaker")
        described = sagemaker.describe_endpoint(EndpointName=self.endpoint)
        assert described["EndpointStatus"] == "InService"
        config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
        [variant] = config["ProductionVariants"]
        model = sagemaker.describe_model(ModelName=variant["ModelName"])
        return {name: value for name, value in model.items() if name != "ResponseMetadata"}

    def zones_of(self, subnets: Sequence[str]) -> list[str]:
        found = self.aws.client("ec2").describe_subnets(SubnetIds=list(subnets))["Subnets"]
        return sorted(each["AvailabilityZone"] for each in found)

    def inventory(self) -> dict[str, set[str]]:
        """What the local AWS holds of this environment, by kind: by the names that its stacks gave, in EC2 by its tag.

        Groups of functions are left out: the last lines of a function come after its group is deleted, and MiniStack
        lets it make the group anew, which the roles of functions do not allow.
        """
        ours = (f"{self.name}-", f"/tritonstack/{self.name}/", f"/aws/sagemaker/Endpoints/{self.name}-")
        named = {
            "stack": self._pages("cloudformation", "describe_stacks", "Stacks", "StackName"),
            "endpoint": self._pages("sagemaker", "list_endpoints", "Endpoints", "EndpointName"),
            "config": self._pages("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigName"),
            "model": self._pages("sagemaker", "list_models", "Models", "ModelName"),
            "bucket": [each["Name"] for each in self.aws.client("s3").list_buckets()["Buckets"]],
            "parameter": self._pages("ssm", "describe_parameters", "Parameters", "Name"),
            "role": self._pages("iam", "list_roles", "Roles", "RoleName"),
            "function": self._pages("lambda", "list_functions", "Functions", "FunctionName"),
            "log group": self._pages("logs", "describe_log_groups", "logGroups", "logGroupName"),
            "fleet": [each["name"] for each in self.aws.runtime_status()["endpoints"]],
        }
        found = {kind: {name for name in names if name.startswith(ours)} for kind, names in named.items()}
        ec2, tag = self.aws.client("ec2"), {"Key": "tritonstack:environment", "Value": self.name}
        for kind, operation, key, member in (
            ("vpc", "describe_vpcs", "Vpcs", "VpcId"),
            ("subnet", "describe_subnets", "Subnets", "SubnetId"),
            ("security group", "describe_security_groups", "SecurityGroups", "GroupId"),
            ("route table", "describe_route_tables", "RouteTables", "RouteTableId"),
            ("vpc endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
        ):
            found[kind] = {each[member] for each in getattr(ec2, operation)()[key] if tag in each.get("Tags", [])}
        found["flow log"] = {
            each["FlowLogId"]
            for each in ec2.describe_flow_logs()["FlowLogs"]
            if self.name in each.get("LogGroupName", each["LogDestination"])
        }
        found["key"] = {each for each in self._pages("kms", "list_keys", "Keys", "KeyArn") if self._is_ours(each)}
        return found

    def left(self) -> dict[str, set[str]]:
        """The kinds of which anything is there."""
        return {kind: names for kind, names in self.inventory().items() if names}

    def _pages(self, service: str, operation: str, key: str, member: str) -> list[str]:
        """One member of every entry of a listing."""
        pages = self.aws.client(service).get_paginator(operation).paginate()
        return [each[member] for page in pages for each in page[key]]

    def _is_ours(self, key: str) -> bool:
        """Whether a key is this environment's and not on its way out."""
        described = self.aws.client("kms").describe_key(KeyId=key)["KeyMetadata"]
        return self.name in described.get("Description", "") and described["KeyState"] == "Enabled"
