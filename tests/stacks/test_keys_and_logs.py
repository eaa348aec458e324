"""Own keys, role paths, boundaries, tags, retention and data capture, over every stack of an environment."""

from __future__ import annotations

import fnmatch
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import flat, of_type, only, properties, statements, template_of
from tests.engines.engine_environments import served_engines, write_models
from tests.stacks.engine_stages import stage_of
from tests.stacks.environments import DIGITS, SINGLE, environment, serving_template, stage
from tests.stacks.everything import ENDPOINTS, HEADER, everything, stacks_of
from tritonstack import aws_names

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
CAPTURING = {**SINGLE, "data_capture": {"percentage": 20, "days": 5}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentStage:
    return everything(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def templates(whole: EnvironmentStage) -> dict[str, dict[str, Any]]:
    return {stack.stack_name: template_of(stack) for stack in stacks_of(whole)}


def test_every_kind_of_stack_is_looked_at(templates: dict[str, dict[str, Any]]) -> None:
    assert {name.removeprefix("local-") for name in templates} == {
        "artifacts", "network", "builds", "serving-e0", "serving-e1", "serving-e2", "observability",
        "load-test",
    }  # fmt: skip


def roles(templates: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        f"{stack}/{name}": each["Properties"]
        for stack, template in templates.items()
        for name, each in of_type(template, "AWS::IAM::Role").items()
    }


def test_every_role_has_the_path_and_the_boundary(templates: dict[str, dict[str, Any]]) -> None:
    found = roles(templates)
    assert len(found) > 12
    assert {name for name, role in found.items() if role.get("Path") != "/team/triton/"} == set()
    assert {name for name, role in found.items() if role.get("PermissionsBoundary") != BOUNDARY} == set()


def log_groups(templates: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Name → retention in days, of the groups that stacks make; KeyError for one with a generated name."""
    found = [
        (each["Properties"]["LogGroupName"], each["Properties"]["RetentionInDays"])
        for template in templates.values()
        for each in of_type(template, "AWS::Logs::LogGroup").values()
    ]
    assert len(dict(found)) == len(found), "two groups of one name"
    return dict(found)


def test_every_log_group_has_a_name_and_a_retention_and_those_of_functions_the_set_one(
    templates: dict[str, dict[str, Any]],
) -> None:
    groups = log_groups(templates)
    of_functions = {name: days for name, days in groups.items() if name.startswith("/aws/lambda/")}
    functions = sum(len(of_type(template, "AWS::Lambda::Function")) for template in templates.values())
    assert len(of_functions) == functions
    assert set(of_functions.values()) == {365}
    assert set(groups) - set(of_functions) == {
        f"/tritonstack/local/{name}" for name in ("builds", "engines", "network", "load-tests")
    }


DOCS = Path(__file__).parents[2] / "docs"
IN_DOCS = {
    "<environment>": "local",
    "ENV": "local",
    "<endpoint>": "local-e0",
    "ENDPOINT": "e0",
    "trial-digits": "local-e0",
}
"""What pages write in names of log groups, and what it is in the stage that is looked at."""


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: str(page.name))
def test_every_log_group_that_a_page_names_is_in_the_templates(
    page: Path, templates: dict[str, dict[str, Any]]
) -> None:
    text = page.read_text()
    named = set(re.findall(r"`(/aws/(?:lambda|sagemaker)/[^`\s]+)`", text))
    named |= {
        name for listed in re.findall(r"log groups? ([^.|]*)", text) for name in re.findall(r"`(/[^`]+/[^`]+)`", listed)
    }
    made = set(log_groups(templates)) | {
        each["Properties"]["LogGroupName"]
        for template in templates.values()
        for each in of_type(template, "Custom::EndpointLogGroup").values()
    }
    made |= {aws_names.PROCESSING_JOBS, aws_names.RECOMMENDATION_JOBS}  # SageMaker's own, of all jobs of an account
    unknown = set()
    for name in named - {aws_names.INSTANCES}:  # a namespace of metrics
        spelled = name
        for written, meant in IN_DOCS.items():
            spelled = spelled.replace(written, meant)
        if not any(fnmatch.fnmatchcase(each, spelled) for each in made):
            unknown.add(name)
    assert unknown == set()


def test_no_service_token_can_change(templates: dict[str, dict[str, Any]]) -> None:
    """CloudFormation refuses an update with another one. A function that CloudFormation names keeps its ARN unless it
    is replaced, which only a property that it cannot update does; one of another stack has a name of its own."""
    named, seen = {}, 0
    for template in templates.values():
        for each in of_type(template, "AWS::Lambda::Function").values():
            assert not {"PackageType", "TenancyConfig"} & set(each["Properties"])
        for each in of_type(template, "AWS::SSM::Parameter").values():
            value = each["Properties"]["Value"]
            if isinstance(value, dict) and list(value) == ["Fn::GetAtt"]:
                made = template["Resources"][value["Fn::GetAtt"][0]]
                named[each["Properties"]["Name"]] = made["Properties"].get("FunctionName")
    for template in templates.values():
        for each in template["Resources"].values():
            if (token := each.get("Properties", {}).get("ServiceToken")) is None:
                continue
            seen += 1
            if "Ref" in token:
                assert named[template["Parameters"][token["Ref"]]["Default"]] == "local-builds"
            else:
                assert template["Resources"][token["Fn::GetAtt"][0]]["Type"] == "AWS::Lambda::Function"
    assert seen > 10


def test_no_stack_exports_or_imports_a_value(templates: dict[str, dict[str, Any]]) -> None:
    tied = [
        stack for stack, template in templates.items() if re.search('"Export"|Fn::ImportValue', json.dumps(template))
    ]
    assert tied == []


def takes_tags(kind: str) -> bool:
    """Whether CloudFormation's schema of a type, which comes with cfn-lint, has a property for tags."""
    return "Tags" in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["properties"]


def test_everything_that_takes_tags_carries_those_of_the_environment(templates: dict[str, dict[str, Any]]) -> None:
    seen, bare = set(), set()
    for stack, template in templates.items():
        for name, resource in template["Resources"].items():
            kind = resource["Type"]
            if kind.startswith("Custom::"):
                continue
            tags = resource.get("Properties", {}).get("Tags", {})
            pairs = set(tags.items() if isinstance(tags, dict) else [(each["Key"], each["Value"]) for each in tags])
            wanted = {("team", "platform"), ("tritonstack:environment", "local")}
            if stack.startswith("local-serving-"):
                wanted.add(("tritonstack:endpoint", stack.removeprefix("local-serving-")))
            if wanted <= pairs:
                seen.add(kind)
            elif takes_tags(kind):
                bare.add(f"{stack}/{name}")
    assert bare == set()
    assert {"AWS::EC2::VPCEndpoint", "AWS::SageMaker::Endpoint", "AWS::KMS::Key", "AWS::CloudWatch::Alarm"} <= seen


def test_a_key_of_ones_own_is_named_and_none_is_made() -> None:
    made = stage(environment(artifacts={"key_arn": KEY, "retain": False}))
    template = template_of(made.artifacts)
    assert of_type(template, "AWS::KMS::Key") == {}
    resources = of_type(template, "AWS::SSM::Parameter").values()
    parameters = {each["Properties"]["Name"]: each["Properties"]["Value"] for each in resources}
    assert parameters["/tritonstack/dev/_artifacts/key-arn"] == KEY
    encrypted = [
        each["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["ServerSideEncryptionByDefault"]
        for each in of_type(template, "AWS::S3::Bucket").values()
    ]
    assert {"KMSMasterKeyID": KEY, "SSEAlgorithm": "aws:kms"} in encrypted


def key_parameters(template: dict[str, Any]) -> dict[str, dict[str, str]]:
    """``key-arn``, ``earlier-key-arn`` → the reference to it, where a template reads it."""
    values = {name: str(each.get("Default", "")) for name, each in template.get("Parameters", {}).items()}
    return {
        value: {"Ref": name}
        for name, default in values.items()
        for value in ("key-arn", "earlier-key-arn")
        if default.endswith(f"/_artifacts/{value}")
    }


def allowed_keys(template: dict[str, Any]) -> list[list[Any]]:
    """The resources of every statement of a role that allows an action of KMS."""
    found = []
    for each in of_type(template, "AWS::IAM::Policy").values():
        for statement in each["Properties"]["PolicyDocument"]["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            if any(action.startswith("kms:") for action in actions):
                given = statement["Resource"]
                found.append(given if isinstance(given, list) else [given])
    return found


def test_while_the_key_is_changed_every_role_that_may_use_it_may_use_the_earlier_one(tmp_path: Path) -> None:
    header = HEADER.replace("{retain: false}", f"{{retain: false, key_arn: '{KEY}', earlier_key: created}}")
    write_models(tmp_path)
    changing = stage_of(served_engines(tmp_path, *ENDPOINTS, header=f"region: us-east-1\n{header}"), tmp_path)
    seen = set()
    for stack in stacks_of(changing):
        template = template_of(stack)
        keys = key_parameters(template)
        for resources in allowed_keys(template):
            assert {str(each) for each in resources} == {str(each) for each in keys.values()}, stack.stack_name
            assert len(keys) == 2
            seen.add(stack.stack_name.removeprefix("local-"))
    assert seen == {"builds", "load-test", "serving-e0", "serving-e1", "serving-e2"}


@pytest.mark.parametrize("retain", [True, False])
def test_the_created_key_stays_as_it_is_while_another_takes_its_place(retain: bool) -> None:
    before = template_of(stage(environment(artifacts={"retain": retain})).artifacts)
    artifacts = {"retain": retain, "key_arn": KEY, "earlier_key": "created"}
    after = template_of(stage(environment(artifacts=artifacts)).artifacts)
    [(name, key)] = of_type(before, "AWS::KMS::Key").items()
    assert of_type(after, "AWS::KMS::Key") == {name: key}
    parameters = {
        each["Properties"]["Name"].rpartition("/")[2]: each["Properties"]["Value"]
        for each in of_type(after, "AWS::SSM::Parameter").values()
    }
    assert parameters["key-arn"] == KEY
    assert parameters["earlier-key-arn"] == {"Fn::GetAtt": [name, "Arn"]}
    assert KEY in json.dumps(of_type(after, "AWS::S3::Bucket"))
    assert name not in json.dumps([each["Properties"] for each in of_type(after, "AWS::S3::Bucket").values()])


def test_from_a_key_of_ones_own_a_created_one_takes_over() -> None:
    template = template_of(stage(environment(artifacts={"earlier_key": KEY})).artifacts)
    assert len(of_type(template, "AWS::KMS::Key")) == 1
    values = [each["Properties"]["Value"] for each in of_type(template, "AWS::SSM::Parameter").values()]
    assert KEY in values


def key_statements(**changes: Any) -> dict[str, dict[str, Any]]:
    template = template_of(stage(environment(**changes)).artifacts)
    return {
        each["Sid"]: each for each in properties(template, "AWS::KMS::Key")["KeyPolicy"]["Statement"] if "Sid" in each
    }


@pytest.mark.parametrize("logs", [{}, {"endpoint_days": 30}])
def test_logs_of_endpoints_stay_readable_when_their_setting_is_removed(logs: dict[str, Any]) -> None:
    condition = key_statements(logs=logs)["EncryptBuildLogs"]["Condition"]["ArnEquals"]
    groups = {flat(each).partition("log-group:")[2] for each in condition["kms:EncryptionContext:aws:logs:arn"]}
    assert "/aws/sagemaker/Endpoints/dev-*" in groups


@pytest.fixture(scope="module")
def logged() -> dict[str, Any]:
    return serving_template(DIGITS, logs={"endpoint_days": 30})


def test_an_endpoint_waits_for_its_log_group(logged: dict[str, Any]) -> None:
    name, group = only(logged, "Custom::EndpointLogGroup")
    assert group["Properties"]["LogGroupName"] == "/aws/sagemaker/Endpoints/dev-digits"
    assert group["Properties"]["RetentionInDays"] == "30"
    assert group["Properties"]["Retain"] == "true"
    assert name in only(logged, "AWS::SageMaker::Endpoint")[1]["DependsOn"]


@pytest.mark.parametrize("retain", [True, False])
def test_only_a_group_that_is_not_retained_can_be_deleted(retain: bool) -> None:
    template = serving_template(DIGITS, logs={"endpoint_days": 30}, artifacts={"retain": retain})
    [policy] = [each for name, each in of_type(template, "AWS::IAM::Policy").items() if "EndpointLog" in name]
    assert ("logs:DeleteLogGroup" in statements(policy["Properties"])["SetUp"]["Action"]) is not retain


def test_captured_data_lies_under_the_key_in_a_folder_of_its_own_and_goes() -> None:
    made = stage(environment(CAPTURING))
    template = template_of(made.serving["single"])
    config = properties(template, "AWS::SageMaker::EndpointConfig")["DataCaptureConfig"]
    assert (config["EnableCapture"], config["InitialSamplingPercentage"]) == (True, 20)
    assert flat(config["DestinationS3Uri"]).endswith("}/captured/single/")
    assert flat(config["KmsKeyId"]).startswith("${ArtifactsKeyArn")
    assert config["CaptureOptions"] == [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}]
    [policy] = [each for name, each in of_type(template, "AWS::IAM::Policy").items() if name.startswith("Execution")]
    written = statements(policy["Properties"])["WriteCaptured"]
    assert written["Action"] == "s3:PutObject"
    assert flat(written["Resource"]).endswith("}/captured/single/*")
    rules = json.dumps(template_of(made.artifacts))
    assert '"Prefix": "captured/single/"' in rules
    assert '"ExpirationInDays": 5' in rules


@pytest.mark.parametrize(("region", "suffix"), [("us-east-1", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn")])
def test_the_names_of_regional_services_end_as_the_partition_has_it(region: str, suffix: str) -> None:
    """In China: CloudWatch Logs user guide, "Encrypt log data", and KMS developer guide, "kms:ViaService"."""
    made = stage(environment({**DIGITS, "release": "24.09"}, region=region))
    key = properties(template_of(made.artifacts), "AWS::KMS::Key")["KeyPolicy"]["Statement"]
    [logs] = [each["Principal"]["Service"] for each in key if each.get("Sid") == "EncryptBuildLogs"]
    assert logs == f"logs.{region}.{suffix}"
    text = json.dumps(template_of(made.serving["digits"]))
    via = set(re.findall(r'"kms:ViaService": "([^"]+)"', text))
    assert via == {f"s3.{region}.{suffix}"}
