"""Names that two environments of one account and region would share are refused at synthesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.environment_file import write_environment
from tests.constructs_lib.templates import template_of
from tests.stacks.everything import everything, everything_served, stacks_of
from tritonstack.config import load_environment
from tritonstack.deployed.physical_names import physical_names, refuse_names_of_others
from tritonstack.errors import InputError


def written(folder: Path, environments: dict[str, dict[str, str]]) -> None:
    """Environment files: name → endpoint's name, and lines of the header."""
    for name, lines in environments.items():
        header = f"environment: {name}\n" + "\n".join(f"{k}: {v}" for k, v in lines.items() if k != "endpoint")
        write_environment(folder, name=name, header=header, endpoint=f"name: {lines['endpoint']}")


def problems(folder: Path, chosen: str) -> list[str]:
    """What synthesis of one environment says about the others of the folder."""
    try:
        refuse_names_of_others([load_environment(folder / f"{chosen}.yaml")], folder=folder)
    except InputError as error:
        return [each.text() for each in error.problems]
    return []


A, B = {"endpoint": "b-c"}, {"endpoint": "c"}


@pytest.mark.parametrize("chosen", ["aa", "aa-b"])
def test_two_environments_may_not_make_one_endpoint_name_whichever_is_synthesised(tmp_path: Path, chosen: str) -> None:
    written(tmp_path, {"aa": A, "aa-b": B})
    [problem] = problems(tmp_path, chosen)
    for said in ("aa.yaml", "aa-b.yaml", "SageMaker endpoint aa-b-c", "endpoint b-c", "endpoint c", "123456789012"):
        assert said in problem
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


def test_a_file_that_is_wrong_by_itself_hinders_no_other_environment(tmp_path: Path) -> None:
    written(tmp_path, {"aa": A})
    (tmp_path / "aa-b.yaml").write_text("environment: [")
    assert problems(tmp_path, "aa") == []


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
