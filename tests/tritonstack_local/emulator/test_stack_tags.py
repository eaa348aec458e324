"""Tags that CloudFormation gives to what it makes."""

from __future__ import annotations

from tests.tritonstack_local.emulator.running import IMAGE, ROLE, Emulator


def test_only_types_whose_schema_declares_it_get_cloudformations_own_tags(aws: Emulator, name: str) -> None:
    """By ``tagging.cloudFormationSystemTags`` of the resource schemas.

    Template reference, "Resource tag": "The propagation of stack-level tags to resources, including tags with the aws:
    prefix, varies by resource type".
    """
    model = {"ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]}, "PrimaryContainer": {"Image": IMAGE}}
    variant = {
        "VariantName": "main", "InitialInstanceCount": 1, "InstanceType": "ml.g4dn.xlarge", "InitialVariantWeight": 1,
        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
    }  # fmt: skip
    endpoint = {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}}
    resources = {
        "Role": ROLE,
        "Model": {"Type": "AWS::SageMaker::Model", "Properties": model},
        "Config": {"Type": "AWS::SageMaker::EndpointConfig", "Properties": {"ProductionVariants": [variant]}},
        "Endpoint": {"Type": "AWS::SageMaker::Endpoint", "Properties": endpoint},
    }
    tags = [{"Key": "team", "Value": "vision"}]
    assert aws.deploy(name, resources, Tags=tags) == "CREATE_COMPLETE", aws.failures(name)
    role = aws.client("iam").list_role_tags(RoleName=aws.physical(name, "Role"))["Tags"]
    found = {"Role": {each["Key"] for each in role}}
    for logical_id in ("Model", "Config", "Endpoint"):
        listed = aws.client("sagemaker").list_tags(ResourceArn=aws.physical(name, logical_id))["Tags"]
        found[logical_id] = {each["Key"] for each in listed}
    own = {f"aws:cloudformation:{each}" for each in ("logical-id", "stack-id", "stack-name")}
    assert found == {"Role": {"team"}, "Model": {"team", *own}, "Config": {"team"}, "Endpoint": {"team"}}
