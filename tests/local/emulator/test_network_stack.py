"""A created network, synthesised as the app does it, on the local AWS."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

os.environ["CDK_VALIDATION"] = "false"

from tests.constructs_lib.templates import template_of
from tests.local.emulator.running import Emulator
from tests.stacks.environments import environment, stage

CREATED: dict[str, Any] = {
    "created": {"cidr": "10.20.0.0/16", "zones": ["us-east-1a", "us-east-1b"], "nat": "one"},
    "s3_prefix_list_id": "pl-63a5400a",
}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    made = stage(environment(network=CREATED))
    assert made.network is not None
    return template_of(made.network)


def deploy(aws: Emulator, name: str, template: dict[str, Any]) -> str:
    ssm = aws.client("ssm")
    for parameter in template["Parameters"].values():
        ssm.put_parameter(Name=parameter["Default"], Value="bucket-of-archives", Type="String", Overwrite=True)
    aws.client("cloudformation").create_stack(
        StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    return str(aws.settled(name)["StackStatus"])


def test_a_created_network_is_made_as_it_is_told_and_leaves_nothing_behind(
    aws: Emulator, name: str, template: dict[str, Any]
) -> None:
    assert deploy(aws, name, template) == "CREATE_COMPLETE", aws.failures(name)
    ec2, ssm = aws.client("ec2"), aws.client("ssm")
    values = {
        each["Name"].rpartition("/")[2]: each["Value"]
        for each in ssm.get_parameters_by_path(Path="/tritonstack/dev/_network/")["Parameters"]
    }
    vpc = [{"Name": "vpc-id", "Values": [values["vpc-id"]]}]
    subnets = {each["SubnetId"]: each for each in ec2.describe_subnets(Filters=vpc)["Subnets"]}
    assert {zone: subnets[values[f"subnet-{zone}"]]["CidrBlock"] for zone in ("us-east-1a", "us-east-1b")} == {
        "us-east-1a": "10.20.0.0/20",
        "us-east-1b": "10.20.16.0/20",
    }
    groups = {each["GroupId"]: each for each in ec2.describe_security_groups(Filters=vpc)["SecurityGroups"]}
    containers = groups[values["security-group-0"]]["IpPermissionsEgress"]
    assert not any(each["IpRanges"] for each in containers)
    assert {each["PrefixListIds"][0]["PrefixListId"] for each in containers if each["PrefixListIds"]} == {"pl-63a5400a"}
    [endpoints] = [each["UserIdGroupPairs"][0]["GroupId"] for each in containers if each["UserIdGroupPairs"]]
    callers = [pair["GroupId"] for each in groups[endpoints]["IpPermissions"] for pair in each["UserIdGroupPairs"]]
    assert set(callers) == {values["security-group-0"], values["builds-security-group-0"]}
    made = ec2.describe_vpc_endpoints(Filters=vpc)["VpcEndpoints"]
    assert {each["ServiceName"].removeprefix("com.amazonaws.us-east-1.") for each in made} == {
        "s3", "sagemaker.runtime", "ssm",
    }  # fmt: skip
    [flows] = ec2.describe_flow_logs(Filters=[{"Name": "resource-id", "Values": [values["vpc-id"]]}])["FlowLogs"]
    assert (flows["TrafficType"], flows["ResourceId"]) == ("ALL", values["vpc-id"])
    assert aws.delete_stack(name) == "DELETE_COMPLETE", aws.failures(name)
    assert not [each for each in ec2.describe_vpcs()["Vpcs"] if each["VpcId"] == values["vpc-id"]]
    assert ec2.describe_flow_logs(Filters=[{"Name": "resource-id", "Values": [values["vpc-id"]]}])["FlowLogs"] == []
    assert ec2.describe_addresses()["Addresses"] == []
    assert ssm.get_parameters_by_path(Path="/tritonstack/dev/_network/")["Parameters"] == []


def test_a_rule_of_a_group_is_removed_with_its_resource(aws: Emulator, name: str) -> None:
    group = {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "machines"}}
    rule = {
        "Type": "AWS::EC2::SecurityGroupEgress",
        "Properties": {
            "GroupId": {"Fn::GetAtt": ["Group", "GroupId"]},
            "IpProtocol": "tcp",
            "FromPort": 443,
            "ToPort": 443,
            "DestinationSecurityGroupId": {"Fn::GetAtt": ["Other", "GroupId"]},
        },
    }
    groups = {"Group": group, "Other": group}
    assert aws.deploy(name, {**groups, "Rule": rule}) == "CREATE_COMPLETE", aws.failures(name)
    ec2, group_id = aws.client("ec2"), aws.physical(name, "Group")

    def lets_to() -> list[str]:
        [found] = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
        return [pair["GroupId"] for each in found["IpPermissionsEgress"] for pair in each["UserIdGroupPairs"]]

    assert lets_to() == [aws.physical(name, "Other")]
    assert aws.deploy(name, groups) == "UPDATE_COMPLETE", aws.failures(name)
    assert lets_to() == []
