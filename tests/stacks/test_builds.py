"""The builds stack: what is in it for which GPUs, and what an endpoint's deployment waits for."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import allowed, flat, listed, of_type, template_of
from tests.engines.engine_environments import A10G, L4, T4, served_engines, write_models
from tests.models.folders import write_double
from tests.stacks.engine_stages import engine_stage, stage_of
from tests.stacks.environments import DIGITS, environment, stage
from tritonstack.preparation.deployed_builds import deployed_builds


def builds_template(made: EnvironmentStage) -> dict[str, Any]:
    assert made.builds is not None
    return template_of(made.builds)


def project(template: dict[str, Any], environment_type: str) -> dict[str, Any]:
    """The properties of the one project of an environment type."""
    [found] = [
        each["Properties"]
        for each in of_type(template, "AWS::CodeBuild::Project").values()
        if each["Properties"]["Environment"]["Type"] == environment_type
    ]
    return dict(found)


def project_types(template: dict[str, Any]) -> list[str]:
    projects = of_type(template, "AWS::CodeBuild::Project").values()
    return sorted(each["Properties"]["Environment"]["Type"] for each in projects)


def processing_roles(template: dict[str, Any]) -> list[str]:
    return [name for name in of_type(template, "AWS::IAM::Role") if name.startswith("ProcessingRole")]


def parameters(template: dict[str, Any]) -> set[str]:
    return {each["Properties"]["Name"] for each in of_type(template, "AWS::SSM::Parameter").values()}


def waits(template: dict[str, Any]) -> set[str]:
    """The logical ids of handle and condition."""
    return {
        name
        for kind in ("WaitCondition", "WaitConditionHandle")
        for name in of_type(template, f"AWS::CloudFormation::{kind}")
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentStage:
    return engine_stage(tmp_path_factory.mktemp("mixed"), T4, A10G, L4, models="[double, fast]")


@pytest.fixture(scope="module")
def template(mixed: EnvironmentStage) -> dict[str, Any]:
    return builds_template(mixed)


ALWAYS = {
    "/tritonstack/local/_outputs/builds",
    *(
        f"/tritonstack/local/_builds/{name}"
        for name in ("project-name", "log-group-name", "function-arn", "undelivered-queue-name")
    ),
}
OF_CODEBUILD = {"/tritonstack/local/_builds/engine-project-name"}
OF_PROCESSING = {"/tritonstack/local/_builds/processing-role-arn"}
CPU, GPU = "LINUX_CONTAINER", "LINUX_GPU_CONTAINER"


@pytest.mark.parametrize(
    ("endpoints", "header", "types", "roles", "names"),
    [
        ((A10G,), "", [CPU, GPU], 0, ALWAYS | OF_CODEBUILD),
        ((T4,), "", [CPU], 1, ALWAYS | OF_PROCESSING),
        ((A10G,), "builds: {engine_builder: processing}", [CPU], 1, ALWAYS | OF_PROCESSING),
    ],
    ids=["g5", "g4dn", "g5 by processing"],
)
def test_codebuild_builds_for_g5_and_processing_for_other_families(  # noqa: PLR0917 - one parameter a column
    tmp_path: Path, endpoints: tuple[str, ...], header: str, types: list[str], roles: int, names: set[str]
) -> None:
    made = builds_template(engine_stage(tmp_path, *endpoints, header=header))
    assert project_types(made) == types
    assert len(processing_roles(made)) == roles
    assert parameters(made) == names


def test_an_environment_of_several_families_has_both(template: dict[str, Any]) -> None:
    assert (project_types(template), len(processing_roles(template))) == ([CPU, GPU], 1)
    assert parameters(template) == ALWAYS | OF_CODEBUILD | OF_PROCESSING


def test_without_an_engine_there_is_no_stack_of_builds_and_nothing_waits() -> None:
    made = stage(environment(DIGITS))
    assert made.builds is None
    assert waits(template_of(made.serving["digits"])) == set()


def test_an_environment_may_build_before_its_deployment_instead(tmp_path: Path) -> None:
    made = engine_stage(tmp_path, T4, header="builds: {on_deploy: false}")
    assert made.builds is None
    assert waits(template_of(made.serving["e0"])) == set()


def test_an_environment_may_have_all_archives_built_on_deploy(tmp_path: Path) -> None:
    made = engine_stage(tmp_path, T4, models="[double]", header="builds: {on_deploy: true}")
    assert project_types(builds_template(made)) == [CPU]
    assert parameters(builds_template(made)) == ALWAYS
    assert len(waits(template_of(made.serving["e0"]))) == 2


IMAGE = "210987654321.dkr.ecr.us-east-1.amazonaws.com/team/cpu:1"
HUB = "{token_parameter: /team/hub-token, endpoint: 'https://hub.example.com', folder: /opt/hub}"
NETWORK = "{vpc_id: vpc-1a, subnet_ids: [subnet-1, subnet-2], security_group_ids: [sg-1]}"
SETTINGS = (
    f"builds: {{timeout_minutes: 300, engine_timeout_minutes: 100, log_days: 30, image: '{IMAGE}', "
    f"compute_type: BUILD_GENERAL1_XLARGE, hub: {HUB}, network: {NETWORK}}}"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """With every setting of builds."""
    return builds_template(engine_stage(tmp_path_factory.mktemp("set"), A10G, T4, header=SETTINGS))


def test_limits_retention_image_and_machine_are_those_of_the_settings(made: dict[str, Any]) -> None:
    cpu, gpu = project(made, CPU), project(made, GPU)
    assert (cpu["TimeoutInMinutes"], cpu["QueuedTimeoutInMinutes"]) == (300, 60)
    assert (gpu["TimeoutInMinutes"], gpu["QueuedTimeoutInMinutes"]) == (100, 60)
    assert (cpu["Environment"]["Image"], cpu["Environment"]["ComputeType"]) == (IMAGE, "BUILD_GENERAL1_XLARGE")
    assert cpu["Environment"]["ImagePullCredentialsType"] == "SERVICE_ROLE"
    assert "arn:aws:ecr:us-east-1:210987654321:repository/team/cpu" in str(made)
    groups = {
        each["Properties"]["LogGroupName"]: each["Properties"]["RetentionInDays"]
        for each in of_type(made, "AWS::Logs::LogGroup").values()
        if "/aws/lambda/" not in each["Properties"]["LogGroupName"]
    }
    assert groups == {"/tritonstack/local/builds": 30, "/tritonstack/local/engines": 30}


def test_builds_get_the_hubs_variables_and_may_read_its_token_alone(
    made: dict[str, Any], template: dict[str, Any]
) -> None:
    variables = {each["Name"]: each for each in project(made, CPU)["Environment"]["EnvironmentVariables"]}
    assert {name: (each["Type"], each["Value"]) for name, each in variables.items()} == {
        "HF_ENDPOINT": ("PLAINTEXT", "https://hub.example.com"),
        "HF_TOKEN": ("PARAMETER_STORE", "/team/hub-token"),
        "TRITONSTACK_HUB_FOLDER": ("PLAINTEXT", "/opt/hub"),
    }
    hub_token = "arn:aws:ssm:us-east-1:123456789012:parameter/team/hub-token"
    reading = [each for each in allowed(made) if "ssm:GetParameters" in each["Action"]]
    named = {flat(arn) for each in reading for arn in listed(each["Resource"])}
    assert {arn for arn in named if ":parameter/tritonstack/" not in arn} == {hub_token}
    assert "EnvironmentVariables" not in project(template, CPU)["Environment"]
    assert "hub-token" not in json.dumps(template)


def test_a_network_is_every_builder_s(made: dict[str, Any]) -> None:
    wanted = {"VpcId": "vpc-1a", "Subnets": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
    assert project(made, CPU)["VpcConfig"] == project(made, GPU)["VpcConfig"] == wanted
    lending = [
        statement["Condition"]
        for policy in of_type(made, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Sid"] == "LendInterfaces"
    ]
    services = [each["StringEquals"]["ec2:AuthorizedService"] for each in lending]
    assert services == ["codebuild.amazonaws.com", "codebuild.amazonaws.com"]
    subnets = [f"arn:aws:ec2:us-east-1:123456789012:subnet/subnet-{number}" for number in (1, 2)]
    assert all(each["ArnEquals"] == {"ec2:Subnet": subnets} for each in lending)


def test_a_processing_job_joins_its_network_without_resource_filter_or_condition(made: dict[str, Any]) -> None:
    """SageMaker developer guide, "SageMaker AI roles": CreateProcessingJob API, a private VPC."""
    [of_jobs] = [
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in of_type(made, "AWS::IAM::Policy").items()
        if name.startswith("ProcessingRole")
    ]
    [joins] = [each for each in of_jobs if "ec2:" in str(each["Action"])]
    assert (joins["Resource"], "Condition" in joins) == ("*", False)
    interfaces = [f"{verb}NetworkInterface{part}" for verb in ("Create", "Delete") for part in ("", "Permission")]
    described = [
        f"Describe{each}" for each in ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")
    ]
    assert joins["Action"] == [f"ec2:{each}" for each in (*interfaces, *described)]


# The wait in front of an endpoint.


def test_handle_and_condition_carry_the_hash_of_the_build_set(tmp_path: Path) -> None:
    write_models(tmp_path)
    served = served_engines(tmp_path, T4)
    [document] = deployed_builds(served, tmp_path / "model_repos").build_sets["e0"]
    digits = hashlib.sha256(document.encode()).hexdigest()[:12]
    ids = sorted(waits(template_of(stage_of(served, tmp_path).serving["e0"])))
    assert [re.sub("[0-9A-F]{8}$", "", name) for name in ids] == [f"WaitCondition{digits}", f"WaitHandle{digits}"]


def test_a_changed_recipe_is_a_new_wait_for_the_endpoints_that_serve_it_alone(tmp_path: Path) -> None:
    write_models(tmp_path)
    header = "builds: {on_deploy: true}"
    # e0 serves both models, e1 that without an engine.
    both = "models: [double, fast]"

    def found() -> list[dict[str, Any]]:
        made = engine_stage(tmp_path, f"{T4}\n{both}", A10G, header=header, models="[double]")
        return [template_of(made.serving[name]) for name in ("e0", "e1")]

    before = found()
    recipe = tmp_path / "model_repos" / "fast" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("max: [8, 1]", "max: [16, 1]"))
    after = found()
    assert waits(before[0]).isdisjoint(waits(after[0]))
    assert json.dumps(before[1]) == json.dumps(after[1])


def test_what_a_build_starts_from_changes_no_wait(tmp_path: Path) -> None:
    before = template_of(engine_stage(tmp_path, T4).serving["e0"])
    write_double(tmp_path, name="unused")
    assert json.dumps(template_of(engine_stage(tmp_path, T4).serving["e0"])) == json.dumps(before)


# The function that is notified of ended builds.


def test_only_the_rule_of_this_project_may_call_the_function_and_leave_what_it_cannot_deliver(
    template: dict[str, Any],
) -> None:
    [(rule, found)] = of_type(template, "AWS::Events::Rule").items()
    [permission] = of_type(template, "AWS::Lambda::Permission").values()
    [queue_policy] = of_type(template, "AWS::SQS::QueuePolicy").values()
    [(queue, _)] = of_type(template, "AWS::SQS::Queue").items()
    [project] = [name for name in of_type(template, "AWS::CodeBuild::Project") if name.startswith("ModelBuild")]
    pattern = found["Properties"]["EventPattern"]
    assert pattern["source"] == ["aws.codebuild"]
    assert pattern["detail"]["project-name"] == [{"Ref": project}]
    assert set(pattern["detail"]["build-status"]) == {"SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT"}
    assert permission["Properties"]["SourceArn"] == {"Fn::GetAtt": [rule, "Arn"]}
    keeping, refusing = queue_policy["Properties"]["PolicyDocument"]["Statement"]
    assert keeping["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [rule, "Arn"]}}}
    assert refusing["Effect"] == "Deny"
    [target] = found["Properties"]["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [queue, "Arn"]}}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 43200, "MaximumRetryAttempts": 185}
