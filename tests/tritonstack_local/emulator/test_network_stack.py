"""A created network, synthesised as the app does it, on the local AWS."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

os.environ["CDK_VALIDATION"] = "false"

from tests.constructs_lib.templates import template_of
from tests.stacks.environments import environment, stage
from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_role

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


def test_a_created_network_is_made_as_configured_and_leaves_nothing_behind(
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


def test_a_role_keeps_its_boundary_and_one_that_does_not_exist_is_refused(aws: Emulator, name: str) -> None:
    iam = aws.client("iam")
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    arn = iam.create_policy(PolicyName=f"{name}-boundary", PolicyDocument=json.dumps(document))["Policy"]["Arn"]
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "sagemaker.amazonaws.com"}}
    plain = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}

    def deployed(**properties: str) -> str:
        return aws.deploy(name, {"Role": {"Type": "AWS::IAM::Role", "Properties": {**plain, **properties}}})

    def boundary() -> str | None:
        role = iam.get_role(RoleName=aws.physical(name, "Role"))["Role"]
        return str(role["PermissionsBoundary"]["PermissionsBoundaryArn"]) if "PermissionsBoundary" in role else None

    assert deployed(PermissionsBoundary=arn) == "CREATE_COMPLETE", aws.failures(name)
    assert boundary() == arn
    assert deployed() == "UPDATE_COMPLETE", aws.failures(name)
    assert boundary() is None
    assert deployed(PermissionsBoundary=arn) == "UPDATE_COMPLETE", aws.failures(name)
    assert boundary() == arn
    assert deployed(PermissionsBoundary=f"{arn}-of-nobody") == "UPDATE_ROLLBACK_COMPLETE"
    assert "does not exist or is not attachable" in str(aws.failures(name))


def test_a_subnet_that_a_live_endpoint_is_in_is_left_where_it_was(aws: Emulator, name: str) -> None:
    network: dict[str, Any] = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.40.0.0/16"}},
        "Subnet": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.40.0.0/24"},
        },
        "Group": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "GroupDescription": "containers"},
        },
    }
    assert aws.deploy(name, network) == "CREATE_COMPLETE", aws.failures(name)
    subnet, group = aws.physical(name, "Subnet"), aws.physical(name, "Group")
    endpoint = live_endpoint(aws, name, subnet=subnet, group=group)
    assert aws.deploy(name, {"Vpc": network["Vpc"]}) == "UPDATE_COMPLETE", "CloudFormation goes on"
    ec2 = aws.client("ec2")
    assert len(ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]) == 1
    assert len(ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]) == 1
    assert f"'{subnet}' has dependencies" in str(aws.failures(name))
    aws.client("sagemaker").delete_endpoint(EndpointName=endpoint)


def live_endpoint(aws: Emulator, name: str, *, subnet: str, group: str) -> str:
    """An endpoint whose one Model is in this subnet and this group; its name."""
    sagemaker = aws.client("sagemaker")
    made = f"{name}-in-vpc"
    make_role(aws)
    sagemaker.create_model(
        ModelName=made,
        PrimaryContainer={"Image": IMAGE},
        ExecutionRoleArn=ROLE_ARN,
        VpcConfig={"Subnets": [subnet], "SecurityGroupIds": [group]},
    )
    variant = {
        "VariantName": "one",
        "ModelName": made,
        "InstanceType": "ml.g4dn.xlarge",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=made, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=made, EndpointConfigName=made)
    return made
