"""The local AWS keeps pipelines, refuses what CodePipeline refuses, and executes none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import Emulator

Declaration = dict[str, Any]
CONNECTION = "arn:aws:codeconnections:us-east-1:123456789012:connection/11111111-2222-3333-4444-555555555555"


def action(name: str, category: str, provider: str, **more: Any) -> Declaration:
    """An action as the API spells it."""
    kind = {"category": category, "owner": "AWS", "provider": provider, "version": "1"}
    return {"name": name, "actionTypeId": kind, "runOrder": 1, **more}


def declaration(name: str, role: str) -> Declaration:
    """A source, a build, and a deployment that goes back when it fails."""
    source = action(
        "source",
        "Source",
        "CodeStarSourceConnection",
        configuration={"ConnectionArn": CONNECTION, "FullRepositoryId": "a/b", "BranchName": "main"},
        outputArtifacts=[{"name": "code"}],
    )
    build = action(
        "synth",
        "Build",
        "CodeBuild",
        configuration={"ProjectName": "p"},
        inputArtifacts=[{"name": "code"}],
        outputArtifacts=[{"name": "assembly"}],
    )
    deploy = action(
        "deploy",
        "Deploy",
        "CloudFormation",
        configuration={"ActionMode": "CREATE_UPDATE", "StackName": "s"},
        inputArtifacts=[{"name": "assembly"}],
    )
    return {
        "name": name,
        "roleArn": role,
        "artifactStore": {"type": "S3", "location": "bucket"},
        "pipelineType": "V2",
        "executionMode": "QUEUED",
        "stages": [
            {"name": "Source", "actions": [source]},
            {"name": "Build", "actions": [build]},
            {"name": "dev", "actions": [deploy], "onFailure": {"result": "ROLLBACK"}},
        ],
    }


@pytest.fixture
def role(aws: Emulator, name: str) -> str:
    """A role for a pipeline."""
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "codepipeline.amazonaws.com"}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    made = aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)
    return str(made["Role"]["Arn"])


def test_a_pipeline_is_kept_as_declared_and_each_update_is_a_version(aws: Emulator, name: str, role: str) -> None:
    client = aws.client("codepipeline")
    declared = declaration(name, role)
    client.create_pipeline(pipeline=declared, tags=[{"key": "team", "value": "platform"}])
    assert client.get_pipeline(name=name)["pipeline"] == {**declared, "version": 1}
    client.update_pipeline(pipeline={**declared, "executionMode": "SUPERSEDED"})
    assert client.get_pipeline(name=name)["pipeline"]["version"] == 2
    client.delete_pipeline(name=name)
    with pytest.raises(ClientError, match="PipelineNotFoundException"):
        client.get_pipeline(name=name)


LATE = action("late", "Source", "S3", outputArtifacts=[{"name": "other"}])
PARALLEL = action("beside", "Build", "CodeBuild", inputArtifacts=[{"name": "assembly"}])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda _, stages: stages[2].update(name="Build"), "Stage names must be unique within a pipeline: Build"),
        (lambda _, stages: stages[2].update(actions=stages[2]["actions"] * 2), "deploy in dev"),
        (lambda _, stages: stages.__delitem__(slice(1, None)), "minimum of 2 stages"),
        (lambda _, stages: stages[1]["actions"].append(LATE), "only source actions: late of Build"),
        (lambda _, stages: stages[0]["actions"].append(action("manual", "Approval", "Manual")), "manual of Source"),
        (
            lambda _, stages: stages[2]["actions"][0].update(inputArtifacts=[{"name": "nowhere"}]),
            "Input artifact nowhere of action deploy",
        ),
        (lambda _, stages: stages[1]["actions"].append(PARALLEL), "Input artifact assembly of action beside"),
        (
            lambda _, stages: stages[1]["actions"][0].update(outputArtifacts=[{"name": "code"}]),
            "code is of source and of synth",
        ),
        (lambda _, stages: stages[0].update(onFailure={"result": "ROLLBACK"}), "cannot roll back a source stage"),
        (lambda declared, _: declared.pop("pipelineType"), "pipelineType V1, the default, is not in the local AWS"),
    ],
)
def test_what_codepipeline_refuses_is_refused_with_its_source(
    aws: Emulator, name: str, role: str, spoil: Callable[[Declaration, list[Declaration]], object], message: str
) -> None:
    declared = declaration(name, role)
    spoil(declared, declared["stages"])
    with pytest.raises(ClientError, match="InvalidStructureException") as refused:
        aws.client("codepipeline").create_pipeline(pipeline=declared)
    assert message in str(refused.value)
    assert "[source: CodePipeline user guide" in str(refused.value)


def test_a_role_that_does_not_exist_and_a_name_that_is_taken_are_refused(aws: Emulator, name: str, role: str) -> None:
    client = aws.client("codepipeline")
    with pytest.raises(ClientError, match="not authorized to perform AssumeRole"):
        client.create_pipeline(pipeline=declaration(name, f"{role}-of-nobody"))
    client.create_pipeline(pipeline=declaration(name, role))
    with pytest.raises(ClientError, match="PipelineNameInUseException"):
        client.create_pipeline(pipeline=declaration(name, role))


def template(declared: Declaration) -> Declaration:
    """A declaration as a template spells it."""

    def raised(value: Any, *, keys: bool = True) -> Any:
        if isinstance(value, list):
            return [raised(each) for each in value]
        if isinstance(value, dict):
            return {
                (name[:1].upper() + name[1:] if keys else name): raised(each, keys=name != "configuration")
                for name, each in value.items()
            }
        return value

    spelled: Declaration = raised(declared)
    return spelled


def test_a_stack_makes_updates_and_removes_a_pipeline_and_rolls_back_a_wrong_update(
    aws: Emulator, name: str, role: str
) -> None:
    client, declared = aws.client("codepipeline"), declaration(name, role)

    def deployed() -> str:
        properties = {**template(declared), "Tags": [{"Key": "team", "Value": "platform"}]}
        return aws.deploy(name, {"Pipeline": {"Type": "AWS::CodePipeline::Pipeline", "Properties": properties}})

    assert deployed() == "CREATE_COMPLETE", aws.failures(name)
    assert client.get_pipeline(name=name)["pipeline"] == {**declared, "version": 1}
    declared["stages"][2].pop("onFailure")
    assert deployed() == "UPDATE_COMPLETE", aws.failures(name)
    assert client.get_pipeline(name=name)["pipeline"] == {**declared, "version": 2}
    declared["stages"][0]["onFailure"] = {"result": "ROLLBACK"}
    assert deployed() == "UPDATE_ROLLBACK_COMPLETE"
    assert "You cannot roll back a source stage" in str(aws.failures(name))
    assert "onFailure" not in client.get_pipeline(name=name)["pipeline"]["stages"][0]
    declared["stages"][0]["onFailuer"] = declared["stages"][0].pop("onFailure")
    assert deployed() == "UPDATE_ROLLBACK_COMPLETE"
    assert "extraneous key [OnFailuer]" in str(aws.failures(name))
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="PipelineNotFoundException"):
        client.get_pipeline(name=name)
