"""Names that two environments of one account and region would share are refused at synthesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.environment_file import write_environment
from tests.constructs_lib.templates import template_of
from tests.stacks.everything import everything, everything_served, stacks_of
from tests.stacks.pipeline_templates import other_pipeline, settings
from tritonstack.config import load_environment
from tritonstack.config.pipeline import load_pipeline
from tritonstack.deployed.physical_names import names_of_pipeline, physical_names, refuse_names_of_others
from tritonstack.errors import InputError

OF_TYPE = {
    "AWS::SageMaker::Endpoint": ("EndpointName", "SageMaker endpoint"),
    "AWS::CloudWatch::Alarm": ("AlarmName", "CloudWatch alarm"),
    "AWS::CloudWatch::CompositeAlarm": ("AlarmName", "CloudWatch alarm"),
    "AWS::CloudWatch::Dashboard": ("DashboardName", "CloudWatch dashboard"),
    "AWS::Lambda::Function": ("FunctionName", "Lambda function"),
    "AWS::SNS::Topic": ("TopicName", "SNS topic"),
}
BELOW_A_PATH = {"AWS::SSM::Parameter": "Name", "AWS::Logs::LogGroup": "LogGroupName"}
NAMES = ("RoleName", "QueueName", "BucketName", "StateMachineName", "RepositoryName", "ManagedPolicyName", "GroupName")


def written(folder: Path, environments: dict[str, dict[str, str]]) -> None:
    """Environment files: name → endpoint's name, and lines of the header."""
    for name, lines in environments.items():
        header = f"environment: {name}\n" + "\n".join(f"{k}: {v}" for k, v in lines.items() if k != "endpoint")
        write_environment(folder, name=name, header=header, endpoint=f"name: {lines['endpoint']}")


def problems(folder: Path, chosen: str) -> list[str]:
    """Errors that synthesis of one environment reports about the others of the folder."""
    try:
        chosen_environments = [load_environment(folder / f"{chosen}.yaml")]
        refuse_names_of_others(chosen_environments, folder=folder, pipelines=sorted(folder.glob("pipelines/*")))
    except InputError as error:
        return [each.text() for each in error.problems]
    return []


A, B = {"endpoint": "b-c"}, {"endpoint": "c"}


@pytest.mark.parametrize("chosen", ["aa", "aa-b"])
def test_two_environments_may_not_make_one_endpoint_name_whichever_is_synthesised(tmp_path: Path, chosen: str) -> None:
    written(tmp_path, {"aa": A, "aa-b": B})
    [problem] = problems(tmp_path, chosen)
    for part in ("aa.yaml", "aa-b.yaml", "SageMaker endpoint aa-b-c", "endpoint b-c", "endpoint c", "123456789012"):
        assert part in problem
    assert "Rename" in problem


@pytest.mark.parametrize(
    ("environments", "shared"),
    [
        ({"aa": A, "aa-b": B | {"account": '"210987654321"'}}, ""),
        ({"aa": A, "aa-b": B | {"region": "eu-west-1"}}, ""),
        ({"aa": {"endpoint": "b"}, "aa-b": B}, ""),
        ({"aa": {"endpoint": "artifacts"}, "aa-serving": B}, "CloudFormation stack aa-serving-artifacts"),
        ({"aa": {"endpoint": "observability"}, "aa-serving": B | {"dashboard": "true"}}, "aa-serving-observability"),
        ({"aa": {"endpoint": "observability"}, "aa-serving": B}, ""),
        ({"aa": {"endpoint": "lt-c", "load_test": "{}"}}, "names with aa-lt- belong to jobs"),
        ({"aa": {"endpoint": "c", "load_test": "{}"}, "aa-lt": B}, "names with aa-lt- belong to jobs"),
        ({"aa": {"endpoint": "lt-c"}}, ""),
    ],
)
def test_any_name_that_two_stacks_would_give_is_refused(
    tmp_path: Path, environments: dict[str, dict[str, str]], shared: str
) -> None:
    written(tmp_path, environments)
    found = problems(tmp_path, "aa")
    assert len(found) == bool(shared), found
    assert all(shared in each for each in found)


ACCOUNT = "123456789012"  # of the environments


@pytest.mark.parametrize(
    ("environments", "pipelines", "shared"),
    [
        ({"aa": "pipeline"}, [("aa-serving", ACCOUNT, ["aa"])], "CloudFormation stack aa-serving-pipeline"),
        ({"aa": "pipeline"}, [("aa-serving", "444444444444", ["aa"])], ""),
        ({"aa": "c", "aa-serving": "d"}, [("p", "444444444444", ["aa", "aa-serving"])], ""),
        ({"aa": "pipeline-access", "aa-serving": "c"}, [("p", ACCOUNT, ["aa-serving"])], "aa-serving-pipeline-access"),
        ({"pipeline": "c"}, [("builds", ACCOUNT, ["pipeline"])], "log group /tritonstack/pipeline/builds"),
        ({"aa": "c", "bb": "c"}, [("p", ACCOUNT, ["aa"]), ("p", ACCOUNT, ["bb"])], "stack p-pipeline"),
        ({"aa": "c"}, [("p", "444444444444", ["aa"]), ("q", ACCOUNT, ["aa"])], "stack aa-pipeline-access"),
        ({"aa": "c", "q-aa": "c"}, [("p-q", ACCOUNT, ["aa"]), ("p", ACCOUNT, ["q-aa"])], "IAM role p-q-aa-prepare"),
        ({"aa": "c", "q-aa": "c"}, [("p-q", ACCOUNT, ["aa"]), ("q", ACCOUNT, ["q-aa"])], ""),
    ],
)
def test_the_names_of_pipelines_are_compared_too(
    tmp_path: Path, environments: dict[str, str], pipelines: list[tuple[str, str, list[str]]], shared: str
) -> None:
    written(tmp_path, {name: {"endpoint": endpoint} for name, endpoint in environments.items()})
    (tmp_path / "pipelines").mkdir()
    for number, (pipeline, account, stages) in enumerate(pipelines):
        content = settings(name=pipeline, account=account, stages=[{"environment": each} for each in stages])
        (tmp_path / f"pipelines/{number}.yaml").write_text(yaml.safe_dump(content))
    found = problems(tmp_path, next(iter(environments)))
    assert bool(found) == bool(shared), found
    assert not shared or any(shared in each and "pipeline" in each for each in found)


def test_a_pipeline_s_templates_give_no_name_that_is_not_compared(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = other_pipeline(tmp_path_factory)
    folder = made.folder.parent
    loaded = load_pipeline(folder / "pipeline.yaml", environments=folder / "environments")
    compared = {each.name for _, each in names_of_pipeline(loaded, file=folder / "pipeline.yaml")}
    found: set[str] = set()
    for template in (made.pipeline, *(made.access(each.environment.environment) for each in loaded.stages)):
        for resource in template["Resources"].values():
            given = resource.get("Properties", {})
            found |= {given[name] for name in (*NAMES, "LogGroupName") if isinstance(given.get(name), str)}
            found |= {given["Name"]} if resource["Type"] == "AWS::CodePipeline::Pipeline" else set()
    assert {"other", "other-prod-verify", "other-prod-verify-build"} < found <= compared


def test_a_file_that_is_wrong_by_itself_hinders_no_other_environment(tmp_path: Path) -> None:
    written(tmp_path, {"aa": A})
    (tmp_path / "aa-b.yaml").write_text("environment: [")
    assert problems(tmp_path, "aa") == []


def test_every_name_that_a_template_gives_is_compared(tmp_path: Path) -> None:
    made = everything(tmp_path)
    compared = {(each.kind, each.name) for each in physical_names(everything_served(tmp_path).environment)}
    found: set[tuple[str, str]] = set()
    for stack in stacks_of(made):
        found.add(("CloudFormation stack", stack.stack_name))
        for resource in template_of(stack)["Resources"].values():
            given: dict[str, Any] = resource.get("Properties", {})
            member, kind = OF_TYPE.get(resource["Type"], ("", ""))
            if isinstance(given.get(member), str):
                found.add((kind, given[member]))
            if path := given.get(BELOW_A_PATH.get(resource["Type"], "")):
                below = "/tritonstack/local/", *(f"/aws/lambda/{each.stack_name}/" for each in stacks_of(made))
                assert path.startswith(below), path
            assert not [name for name in NAMES if isinstance(given.get(name), str)], (resource["Type"], given)
    assert found <= compared
    assert {kind for kind, _ in found} == {"CloudFormation stack", *(kind for _, kind in OF_TYPE.values())}
