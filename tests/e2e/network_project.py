"""An environment of the tests in which everything about network, keys and retention is switched on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tests.e2e.project import Project
from tritonstack_local.aws import ACCOUNT, REGION, LocalAws

NAME, ENDPOINT = "walled", "digits"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/{NAME}-boundary"
GROUP = f"/aws/sagemaker/Endpoints/{NAME}-{ENDPOINT}"
PREFIX_LIST = "pl-63a5400a"
TAG = {"Key": "tritonstack:environment", "Value": NAME}


def created(*zones: str, leave: str = "", more: str = "") -> str:
    """The setting of a VPC that is made in these zones, without a way to the internet; ``leave``: a zone to leave."""
    names = ", ".join(f"{REGION}{zone}" for zone in zones)
    leaving = f", leave_zones: [{REGION}{leave}]" if leave else ""
    return (
        f"{{created: {{cidr: 10.20.0.0/16, zones: [{names}], flow_log_days: 30{leaving}}}, "
        f"s3_prefix_list_id: {PREFIX_LIST}, additional_endpoints: [kms, sts]{f', {more}' if more else ''}}}"
    )


def imported(aws: LocalAws) -> tuple[str, dict[str, list[str]]]:
    """The setting of a VPC that is made by hand here, and a Model's VpcConfig in it."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.30.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.30.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"]
        for number, zone in enumerate("ab")
    ]
    group = ec2.create_security_group(GroupName=f"of-{NAME}", Description="machines", VpcId=vpc)["GroupId"]
    zones = ", ".join(f"{each['AvailabilityZone']}: {each['SubnetId']}" for each in subnets)
    return (
        f"{{vpc_id: {vpc}, subnets: {{{zones}}}, security_group_ids: [{group}]}}",
        {"SecurityGroupIds": [group], "Subnets": [each["SubnetId"] for each in subnets]},
    )


def write(
    project: Project, *, network: str, isolated: bool = False, retain: bool = True, key_arn: str = "null"
) -> None:
    """The environment file with this network; builds are off, and the one model's calls are kept."""
    project.write(
        f"environments/{NAME}.yaml",
        f"""
        environment: {NAME}
        account: "{ACCOUNT}"
        region: {REGION}
        production: false
        permissions_boundary: {BOUNDARY}
        role_path: /team/triton/
        tags: {{team: platform}}
        artifacts: {{retain: {str(retain).lower()}, key_arn: {key_arn}}}
        builds: {{on_deploy: false}}
        logs: {{endpoint_days: 30, function_days: 14}}
        network: {network}
        endpoints:
          - name: {ENDPOINT}
            mode: single-model
            release: "24.09"
            instance_type: ml.g4dn.xlarge
            models: [digits-onnx]
            network_isolation: {str(isolated).lower()}
            data_capture: {{percentage: 100, days: 7}}
        """,
    )


def make_boundary(aws: LocalAws) -> None:
    """The account's permissions boundary, unless it is there."""
    iam = aws.client("iam")
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_policy(PolicyName=BOUNDARY.rpartition("/")[2], PolicyDocument=json.dumps(document))


def live_model(aws: LocalAws) -> dict[str, Any]:
    """The Model that the endpoint's live config names."""
    sagemaker = aws.client("sagemaker")
    described = sagemaker.describe_endpoint(EndpointName=f"{NAME}-{ENDPOINT}")
    assert described["EndpointStatus"] == "InService"
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    [variant] = config["ProductionVariants"]
    model = sagemaker.describe_model(ModelName=variant["ModelName"])
    return {name: value for name, value in model.items() if name != "ResponseMetadata"}


def zones_of(aws: LocalAws, subnets: Sequence[str]) -> list[str]:
    """The zones of subnets."""
    found = aws.client("ec2").describe_subnets(SubnetIds=list(subnets))["Subnets"]
    return sorted(each["AvailabilityZone"] for each in found)


def inventory(aws: LocalAws) -> dict[str, set[str]]:
    """What the local AWS holds of this environment, by kind: by the names that its stacks gave, in EC2 by its tag.

    Groups of functions are left out: the last lines of a function come after its group is deleted, and MiniStack lets
    it make the group anew, which the roles of functions do not allow.
    """
    ours = (f"{NAME}-", f"/tritonstack/{NAME}/", GROUP)
    named = {
        "stack": _pages(aws, "cloudformation", "describe_stacks", "Stacks", "StackName"),
        "endpoint": _pages(aws, "sagemaker", "list_endpoints", "Endpoints", "EndpointName"),
        "config": _pages(aws, "sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigName"),
        "model": _pages(aws, "sagemaker", "list_models", "Models", "ModelName"),
        "bucket": [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]],
        "parameter": _pages(aws, "ssm", "describe_parameters", "Parameters", "Name"),
        "role": _pages(aws, "iam", "list_roles", "Roles", "RoleName"),
        "function": _pages(aws, "lambda", "list_functions", "Functions", "FunctionName"),
        "log group": _pages(aws, "logs", "describe_log_groups", "logGroups", "logGroupName"),
    }
    found = {kind: {name for name in names if name.startswith(ours)} for kind, names in named.items()}
    for kind, operation, key, member in (
        ("vpc", "describe_vpcs", "Vpcs", "VpcId"),
        ("subnet", "describe_subnets", "Subnets", "SubnetId"),
        ("security group", "describe_security_groups", "SecurityGroups", "GroupId"),
        ("route table", "describe_route_tables", "RouteTables", "RouteTableId"),
        ("vpc endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
        ("flow log", "describe_flow_logs", "FlowLogs", "FlowLogId"),
    ):
        answer = getattr(aws.client("ec2"), operation)()
        found[kind] = {each[member] for each in answer[key] if TAG in each.get("Tags", [])}
    flows = aws.client("ec2").describe_flow_logs()["FlowLogs"]
    found["flow log"] = {
        each["FlowLogId"] for each in flows if NAME in each.get("LogGroupName", each["LogDestination"])
    }
    found["key"] = {each for each in _pages(aws, "kms", "list_keys", "Keys", "KeyArn") if _is_ours(aws, each)}
    return found


def left(aws: LocalAws) -> dict[str, set[str]]:
    """The kinds of which anything is there."""
    return {kind: names for kind, names in inventory(aws).items() if names}


def _pages(aws: LocalAws, service: str, operation: str, key: str, member: str) -> list[str]:
    """One member of every entry of a listing."""
    return [each[member] for page in aws.client(service).get_paginator(operation).paginate() for each in page[key]]


def _is_ours(aws: LocalAws, key: str) -> bool:
    """Whether a key is this environment's and not on its way out."""
    described = aws.client("kms").describe_key(KeyId=key)["KeyMetadata"]
    return NAME in described.get("Description", "") and described["KeyState"] == "Enabled"
