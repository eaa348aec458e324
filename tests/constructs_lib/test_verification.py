"""Verification: its place between endpoint and records, what its function is told, and what that may do."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from constructs_lib.handler_function import entry_point
from tests.constructs_lib.templates import of_type, only, properties
from tests.stacks.environments import DIGITS, SINGLE, serving_template
from tests.stacks.policy import Policy

VERIFIED = "Custom::VerifiedEndpoint"
ENDPOINT = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/dev-digits"
POLICY = "VerificationHandlerAccess"


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return serving_template(DIGITS)


@pytest.fixture(scope="module")
def bucket(template: dict[str, Any]) -> str:
    """The bucket's ARN as a policy of the template names it."""
    name = properties(template, VERIFIED)["ArchiveBucket"]["Ref"]
    return f"arn:aws:s3:::${{{name}}}"


def test_it_stands_between_the_endpoint_and_the_records(template: dict[str, Any]) -> None:
    verified_id, verified = only(template, VERIFIED)
    endpoint_id, _ = only(template, "AWS::SageMaker::Endpoint")
    assert endpoint_id in verified["DependsOn"]
    assert verified_id in only(template, "Custom::ReleaseRecords")[1]["DependsOn"]
    assert verified_id not in only(template, "Custom::PublishedArchives")[1].get("DependsOn", [])


def test_it_runs_again_when_the_config_or_the_release_set_changes(template: dict[str, Any]) -> None:
    told = properties(template, VERIFIED)
    config, _ = only(template, "AWS::SageMaker::EndpointConfig")
    assert told["EndpointConfigName"] == {"Fn::GetAtt": [config, "EndpointConfigName"]}
    assert told["ReleaseSetKey"] == properties(template, "Custom::ReleaseRecords")["ReleaseSetKey"]


def test_it_knows_what_the_function_reads(template: dict[str, Any]) -> None:
    work: Any = importlib.import_module("lambda.verification.work")  # `lambda` is a word of the language
    told = {name: str(value) for name, value in properties(template, VERIFIED).items()}
    known = work.Properties.of(told)
    assert (known.endpoint_name, known.variant_name) == ("dev-digits", "g4dn-xlarge")
    assert (known.multi_model, known.stops_at_unload, known.models, known.minutes) == ("true", "true", "20", "50")
    assert known.manifest_prefix == "manifests/digits/24.09-t4/"
    assert set(told) - {"ServiceToken", "ServiceTimeout"} == {
        "".join(part.title() for part in name.split("_")) for name in work.Properties.__dataclass_fields__
    }


@pytest.mark.parametrize(
    ("endpoint", "multi_model", "stops"),
    [(SINGLE, "false", "false"), ({**DIGITS, "model_cache": "disabled"}, "true", "false")],
)
def test_an_unload_counts_only_where_models_are_kept_loaded(
    endpoint: dict[str, Any], multi_model: str, stops: str
) -> None:
    told = properties(serving_template(endpoint), VERIFIED)
    assert (told["MultiModel"], told["StopsAtUnload"]) == (multi_model, stops)


def test_the_setting_reaches_the_function() -> None:
    told = properties(serving_template({**DIGITS, "verification": {"models": 3, "minutes": 7}}), VERIFIED)
    assert (told["Models"], told["Minutes"]) == ("3", "7")


def test_cloudformation_waits_as_long_as_it_can(template: dict[str, Any]) -> None:
    told = properties(template, VERIFIED)
    assert int(told["ServiceTimeout"]) == 3600 > 60 * int(told["Minutes"])


def test_its_files_lie_in_a_package_so_that_they_find_one_another(template: dict[str, Any]) -> None:
    functions = of_type(template, "AWS::Lambda::Function").values()
    handlers = {each["Properties"]["Description"].split()[0]: each["Properties"]["Handler"] for each in functions}
    assert handlers == {"Writes": entry_point("activation"), "Verifies": entry_point("verification")}


def test_it_may_see_and_call_its_own_endpoint_and_no_other(template: dict[str, Any]) -> None:
    policy = Policy(template, begins=POLICY)
    assert policy.actions("sagemaker") == {"sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint"}
    for action in policy.actions("sagemaker"):
        assert policy.allows(action, ENDPOINT)
        assert not policy.allows(action, f"{ENDPOINT}-large")
        assert not policy.allows(action, ENDPOINT.replace("dev", "prod"))


def test_it_may_read_manifests_of_its_endpoint_and_platform_and_no_archive(
    template: dict[str, Any], bucket: str
) -> None:
    policy = Policy(template, begins=POLICY)
    assert policy.actions("s3") == {"s3:GetObject"}
    assert policy.allows("s3:GetObject", f"{bucket}/manifests/digits/24.09-t4/bert.0.json")
    assert policy.allows("s3:GetObject", f"{bucket}/manifests/digits/24.09-t4/bert.0/sample-request.kserve")
    for other in ("manifests/digits/24.01-t4/b.json", "manifests/other/24.09-t4/b.json", "endpoints/digits/24.09-t4/b"):
        assert not policy.allows("s3:GetObject", f"{bucket}/{other}")


def test_it_may_decrypt_what_it_reads_from_s3_and_nothing_else(template: dict[str, Any]) -> None:
    policy = Policy(template, begins=POLICY)
    [key] = policy.resources("kms:Decrypt")
    assert policy.allows("kms:Decrypt", key, kms_ViaService="s3.us-east-1.amazonaws.com")
    assert not policy.allows("kms:Decrypt", key, kms_ViaService="ssm.us-east-1.amazonaws.com")
    assert not policy.allows("kms:Decrypt", key)
    assert policy.actions("kms") == {"kms:Decrypt"}


def test_it_may_call_itself_look_at_its_stack_and_read_figures_and_no_more(template: dict[str, Any]) -> None:
    policy = Policy(template, begins=POLICY)
    functions = of_type(template, "AWS::Lambda::Function").items()
    [function] = [name for name, each in functions if each["Properties"]["Description"].startswith("Verifies")]
    assert policy.resources("lambda:InvokeFunction") == {f"${{{function}.Arn}}"}
    assert policy.resources("cloudformation:DescribeStacks") == {"${AWS::StackId}"}
    allowed = {
        name for service in ("lambda", "cloudformation", "cloudwatch", "ssm", "iam") for name in policy.actions(service)
    }
    assert allowed == {"lambda:InvokeFunction", "cloudformation:DescribeStacks", "cloudwatch:GetMetricStatistics"}
