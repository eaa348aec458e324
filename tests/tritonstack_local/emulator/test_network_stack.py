"""Rules of groups, boundaries of roles, and what a live endpoint holds, in stacks on the local AWS."""

from __future__ import annotations

import json
from typing import Any

from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_role


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

    def allowed_groups() -> list[str]:
        [found] = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
        return [pair["GroupId"] for each in found["IpPermissionsEgress"] for pair in each["UserIdGroupPairs"]]

    assert allowed_groups() == [aws.physical(name, "Other")]
    assert aws.deploy(name, groups) == "UPDATE_COMPLETE", aws.failures(name)
    assert allowed_groups() == []


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


def test_a_subnet_with_a_live_endpoint_is_not_deleted(aws: Emulator, name: str) -> None:
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
