"""The local AWS keeps pipelines, refuses what CodePipeline refuses, and executes none."""

from __future__ import annotations

import copy
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
    found = client.get_pipeline(name=name)
    assert found["pipeline"] == {**declared, "version": 1}
    client.update_pipeline(pipeline={**declared, "executionMode": "SUPERSEDED"})
    assert client.get_pipeline(name=name)["pipeline"]["version"] == 2
    assert (name, 2) in [(each["name"], each["version"]) for each in client.list_pipelines()["pipelines"]]
    tags = client.list_tags_for_resource(resourceArn=found["metadata"]["pipelineArn"])["tags"]
    assert tags == [{"key": "team", "value": "platform"}]
    client.delete_pipeline(name=name)
    with pytest.raises(ClientError, match="PipelineNotFoundException"):
        client.get_pipeline(name=name)


def test_no_pipeline_is_executed_and_its_state_reports_that_none_ever_was(aws: Emulator, name: str, role: str) -> None:
    client = aws.client("codepipeline")
    client.create_pipeline(pipeline=declaration(name, role))
    states = client.get_pipeline_state(name=name)["stageStates"]
    assert [state["stageName"] for state in states] == ["Source", "Build", "dev"]
    assert not any("latestExecution" in each for state in states for each in (state, *state["actionStates"]))
    assert client.list_pipeline_executions(pipelineName=name)["pipelineExecutionSummaries"] == []
    with pytest.raises(ClientError, match=r"executes none.*tritonstack_local/fidelity\.md"):
        client.start_pipeline_execution(name=name)


def same_stage(declared: Declaration) -> None:
    declared["stages"][2]["name"] = "Build"


def same_action(declared: Declaration) -> None:
    declared["stages"][2]["actions"] *= 2


def one_stage(declared: Declaration) -> None:
    del declared["stages"][1:]


def late_source(declared: Declaration) -> None:
    again = copy.deepcopy(declared["stages"][0]["actions"][0])
    declared["stages"][1]["actions"].append({**again, "outputArtifacts": [{"name": "other"}]})


def build_first(declared: Declaration) -> None:
    declared["stages"][0]["actions"].append(action("manual", "Approval", "Manual"))


def missing_artifact(declared: Declaration) -> None:
    declared["stages"][2]["actions"][0]["inputArtifacts"] = [{"name": "nowhere"}]


def artifact_of_the_same_run_order(declared: Declaration) -> None:
    declared["stages"][1]["actions"].append(
        action(
            "beside", "Build", "CodeBuild", configuration={"ProjectName": "p"}, inputArtifacts=[{"name": "assembly"}]
        )
    )


def same_artifact(declared: Declaration) -> None:
    declared["stages"][1]["actions"][0]["outputArtifacts"] = [{"name": "code"}]


def rollback_of_the_source(declared: Declaration) -> None:
    declared["stages"][0]["onFailure"] = {"result": "ROLLBACK"}


def rollback_in_parallel(declared: Declaration) -> None:
    declared["executionMode"] = "PARALLEL"


def rollback_in_v1(declared: Declaration) -> None:
    declared.update(pipelineType="V1", executionMode="SUPERSEDED")


def queued_in_v1(declared: Declaration) -> None:
    declared["pipelineType"] = "V1"
    del declared["stages"][2]["onFailure"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (same_stage, "Build stands there twice"),
        (same_action, "deploy stands twice in dev"),
        (one_stage, "minimum of 2 stages"),
        (late_source, "Only the first stage may contain source actions"),
        (build_first, "only contains source actions"),
        (missing_artifact, "Input artifact nowhere of action deploy"),
        (artifact_of_the_same_run_order, "Input artifact assembly of action beside"),
        (same_artifact, "code is of source and of synth"),
        (rollback_of_the_source, "cannot roll back a source stage"),
        (rollback_in_parallel, "PARALLEL mode"),
        (rollback_in_v1, "onFailure of stage dev requires a pipeline of type V2"),
        (queued_in_v1, "QUEUED requires a pipeline of type V2"),
    ],
)
def test_what_codepipeline_refuses_is_refused_with_its_source(
    aws: Emulator, name: str, role: str, spoil: Callable[[Declaration], None], said: str
) -> None:
    declared = declaration(name, role)
    spoil(declared)
    with pytest.raises(ClientError, match="InvalidStructureException") as refused:
        aws.client("codepipeline").create_pipeline(pipeline=declared)
    assert said in str(refused.value)
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
    assert name not in [each["name"] for each in client.list_pipelines()["pipelines"]]
