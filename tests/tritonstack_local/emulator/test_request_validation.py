"""Requests against botocore's service model, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cases import cases
from tests.tritonstack_local.emulator.running import ROLE, Emulator, config, model
from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.request_validation import RefusedError, coerce, service_model, validate

UNSUPPORTED = Path(request_validation.__file__).with_name("unsupported.json")
VARIANT = {"VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}


def _config(**changes: Any) -> dict[str, Any]:
    return {"EndpointConfigName": "c", "ProductionVariants": [{**VARIANT, **changes}]}


def _refusal(operation: str, request: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as refused:
        validate("sagemaker", operation, request)
    assert refused.value.code == "ValidationException"
    return str(refused.value)


def test_every_problem_is_reported_at_once() -> None:
    sentence = _refusal(
        "CreateEndpointConfig",
        {"ProductionVariants": [{**VARIANT, "VariantName": "-", "InitialInstanceCount": 0, "Wieght": 1}]},
    )
    assert sentence.startswith("4 validation errors detected: ")
    for part in (
        "'endpointConfigName' failed to satisfy constraint: Member must not be null",
        "'productionVariants.1.member.variantName' failed to satisfy constraint: Member must satisfy",
        "'productionVariants.1.member.initialInstanceCount' failed to satisfy constraint: Member must have value",
        "'productionVariants.1.member.wieght' failed to satisfy constraint: Member is not known",
        "source: botocore",
    ):
        assert part in sentence


def test_misspelt_member_is_reported_with_the_right_one() -> None:
    request = {"ModelName": "m", "PrimaryContainer": {"Image": "i", "Enviroment": {}}}
    assert "did you mean Environment?" in _refusal("CreateModel", request)


@cases("changes, constraint")
def test_wrong_value_is_refused(changes: dict[str, Any], constraint: str) -> None:
    assert constraint in _refusal("CreateEndpointConfig", _config(**changes))


def test_pattern_in_javas_classes_is_read() -> None:
    request = {"ModelName": "m", "Tags": [{"Key": "t\u00e9am/a b", "Value": "v"}]}
    validate("sagemaker", "CreateModel", request)
    request["Tags"] = [{"Key": "t*", "Value": "v"}]
    assert "regular expression" in _refusal("CreateModel", request)


def test_operations_that_the_local_aws_lacks_are_refused_by_name_and_exist_in_botocore() -> None:
    assert "rollbackMaximumBatchSize" in _refusal(
        "UpdateEndpoint",
        {
            "EndpointName": "e",
            "EndpointConfigName": "c",
            "DeploymentConfig": {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1},
                    "WaitIntervalInSeconds": 0,
                    "RollbackMaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1},
                }
            },
        },
    )
    listed = json.loads(UNSUPPORTED.read_text())
    assert listed
    for service, shapes in listed.items():
        for shape, members in shapes.items():
            assert members.keys() <= set(service_model(service).shape_for(shape).members), f"{service} {shape}"


def test_templates_spelling_of_numbers_and_booleans_is_taken() -> None:
    request = coerce(
        "sagemaker",
        "CreateEndpointConfig",
        _config(InitialInstanceCount="2", InitialVariantWeight="0.5", EnableSSMAccess="True", VariantName=5),
    )
    variant = request["ProductionVariants"][0]
    assert (variant["InitialInstanceCount"], variant["InitialVariantWeight"]) == (2, 0.5)
    assert (variant["EnableSSMAccess"], variant["VariantName"]) == (True, "5")
    validate("sagemaker", "CreateEndpointConfig", request)


SCHEMA = "source: CloudFormation resource schemas in cfn-lint"
MODEL = "source: botocore"
API = "API reference"


def _serving(container: dict[str, Any] | None = None, **variant: Any) -> dict[str, Any]:
    return {"Role": ROLE, "Model": model(**(container or {})), "Config": config(**variant)}


def _one(type_name: str, **properties: Any) -> dict[str, Any]:
    return {"Thing": {"Type": type_name, "Properties": properties}}


def _untrusted(service: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    trust = {"Version": "2012-10-17", "Statement": [statement]}
    return {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}, "Model": model()}


REFUSED = {
    "misspelt service principal": (
        _untrusted("sagemakr.amazonaws.com"),
        'allows the action "sts:AssumeRole" for the service principal "sagemaker.amazonaws.com"',
        "source: SageMaker",
    ),
    "misspelt property": (_serving({"Enviroment": {"A": "b"}}), "extraneous key [Enviroment]", SCHEMA),
    "model data URL": (_serving({"ModelDataUrl": "http://b/m"}), "'primaryContainer.modelDataUrl'", MODEL),
    "missing model": (_serving(ModelName="nope"), 'Could not find model "arn:aws', API),
    "lost bucket property": (
        _one("AWS::S3::Bucket", AccelerateConfiguration={"AccelerationStatus": "Enabled"}),
        "AccelerateConfiguration of a bucket would have no effect",
        "source: tritonstack",
    ),
    "attribute": (
        {
            "Role": ROLE,
            "Thing": {
                "Type": "AWS::SSM::Parameter",
                "Properties": {"Type": "String", "Value": {"Fn::GetAtt": ["Role", "Nope"]}},
            },
        },
        "Requested attribute Nope does not exist",
        "",
    ),
    "policy effect": (
        {
            "Role": ROLE,
            "Thing": {
                "Type": "AWS::IAM::Policy",
                "Properties": {
                    "PolicyName": "x",
                    "Roles": [{"Ref": "Role"}],
                    "PolicyDocument": {
                        "Version": "2012-10-17",
                        "Statement": [{"Effect": "Alow", "Action": "s3:*", "Resource": "*"}],
                    },
                },
            },
        },
        "invalid Effect: Alow",
        "source: MiniStack's provisioner",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_template_is_rolled_back_with_the_reason_and_its_source(aws: Emulator, name: str, case: str) -> None:
    resources, reason, source = REFUSED[case]
    assert aws.deploy(name, resources) == "ROLLBACK_COMPLETE"
    failures = aws.failures(name)
    assert reason in failures
    assert source in failures


def test_right_templates_are_not_refused_and_an_unknown_type_before_anything_is_made(aws: Emulator, name: str) -> None:
    container = {"MultiModelConfig": {"ModelCacheSetting": "Disabled"}}
    resources = _serving(container, InitialInstanceCount="2", InferenceAmiVersion="al2-ami-sagemaker-inference-gpu-2")
    assert aws.deploy(name, resources) == "CREATE_COMPLETE", aws.failures(name)
    made = aws.physical(name, "Config").rpartition("/")[2]
    described = aws.client("sagemaker").describe_endpoint_config(EndpointConfigName=made)
    assert described["ProductionVariants"][0]["InitialInstanceCount"] == 2
    with pytest.raises(ClientError, match=r"Unrecognized resource types: \[AWS::SageMaker::Pipeline\]"):
        aws.create_stack(f"{name}-2", _one("AWS::SageMaker::Pipeline"))
