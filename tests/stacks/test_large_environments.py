"""Environments with many endpoints: several dashboards, each in a stack, and no template that AWS would refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from stacks.app import RESOURCE_LIMIT, refused_for_size
from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import of_type, template_of
from tests.stacks.environments import DIGITS, SINGLE, environment, new_stage
from tests.stacks.everything import stacks_of
from tritonstack.cloudformation.limits import exceeded
from tritonstack.deployed.stacks import parts_of
from tritonstack.physical_names import physical_names

WATCHED: dict[str, Any] = {"dashboard": True, "alarms": {}}


def watched(count: int) -> EnvironmentStage:
    """An environment with this many endpoints under watch."""
    endpoints = [{**(DIGITS, SINGLE)[number % 2], "name": f"e{number}"} for number in range(count)]
    return new_stage(environment(*endpoints, **WATCHED))


@pytest.fixture(scope="module")
def large() -> EnvironmentStage:
    """28 endpoints: more than 500 widgets on one dashboard."""
    return watched(28)


def observing(stage: EnvironmentStage) -> dict[str, dict[str, Any]]:
    """The templates of the observability stacks, by the stacks' names."""
    return {each.stack_name: template_of(each) for each in stacks_of(stage) if "observability" in each.stack_name}


def test_many_endpoints_have_several_dashboards_in_stacks_that_aws_takes(large: EnvironmentStage) -> None:
    templates = observing(large)
    assert set(templates) == {"dev-observability", "dev-observability-2"}
    titles: list[str] = []
    for name, template in templates.items():
        text = json.dumps(template)
        assert exceeded(template, size=len(text), stack=name) == ()
        [dashboard] = of_type(template, "AWS::CloudWatch::Dashboard").values()
        number = name.rpartition("-")[2]
        suffix = f"-{number}" if number.isdecimal() else ""
        assert dashboard["Properties"]["DashboardName"] == f"tritonstack-dev{suffix}"
        widgets = json.loads(dashboard["Properties"]["DashboardBody"])["widgets"]
        titles += [each["properties"]["markdown"].partition(":")[0] for each in widgets if each["type"] == "text"]
    assert sorted(titles) == sorted(f"## dev-e{number}" for number in range(28))


def test_the_further_stacks_come_with_the_first_and_belong_to_the_environment(large: EnvironmentStage) -> None:
    assert large.observability is not None
    assert "dev-observability-2" in [each.stack_name for each in large.observability.dependencies]
    settings = environment(*({**DIGITS, "name": f"e{number}"} for number in range(28)), **WATCHED)
    assert [each for each in parts_of(settings) if "observability" in each] == ["observability", "observability-2"]
    names = {each.name for each in physical_names(settings)}
    assert {"dev-observability-2", "tritonstack-dev", "tritonstack-dev-2"} <= names


def test_few_endpoints_keep_their_one_dashboard() -> None:
    assert list(observing(watched(15))) == ["dev-observability"]


RULE = " OR ".join(["ALARM(a)"] * 101)
WIDGETS = json.dumps({"widgets": [{}] * 501})
OVER: dict[str, tuple[str, dict[str, Any]]] = {
    "resources": ("501", {f"R{n}": {"Type": "AWS::SSM::Parameter", "Properties": {"Value": "1"}} for n in range(501)}),
    "widgets of a dashboard": (
        "501",
        {
            "D": {
                "Type": "AWS::CloudWatch::Dashboard",
                "Properties": {"DashboardBody": json.dumps({"widgets": [{}] * 501})},
            }
        },
    ),
    "children of a composite alarm": (
        "101",
        {
            "C": {
                "Type": "AWS::CloudWatch::CompositeAlarm",
                "Properties": {"AlarmRule": RULE},
            }
        },
    ),
    "characters of a role's inline policies": (
        "",
        {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
            **{
                f"P{n}": {
                    "Type": "AWS::IAM::Policy",
                    "Properties": {"Roles": [{"Ref": "Role"}], "PolicyDocument": {"Statement": "s" * 5200}},
                }
                for n in range(2)
            },
        },
    ),
    "bytes of a standard parameter": (
        "4097",
        {"P": {"Type": "AWS::SSM::Parameter", "Properties": {"Value": "v" * 4097}}},
    ),
    "bytes of a function's variables": (
        "",
        {"F": {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"A": "v" * 4096}}}}},
    ),
    "template bytes": ("", {"F": {"Type": "AWS::Lambda::Function", "Metadata": "m" * 1048576}}),
}


@pytest.mark.parametrize("limit", OVER)
def test_a_template_that_aws_would_refuse_is_refused_at_synthesis(
    tmp_path: Path, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    number, resources = OVER[limit]
    app = cdk.App(outdir=str(tmp_path), context={RESOURCE_LIMIT: 0})
    stack = cdk.Stack(app, "large", synthesizer=cdk.LegacyStackSynthesizer())
    for name, given in resources.items():
        made = cdk.CfnResource(stack, name, type=given["Type"], properties=given.get("Properties", {}))
        if "Metadata" in given:
            made.add_metadata("m", given["Metadata"])
    assert refused_for_size(app.synth()) == 2
    said = capsys.readouterr().err
    assert f"large: {limit}" in said
    assert number in said
    assert "guide" in said or "reference" in said


def test_a_small_template_is_taken(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(app, "small")
    cdk.CfnResource(stack, "P", type="AWS::SSM::Parameter", properties={"Type": "String", "Value": "v" * 4096})
    assert refused_for_size(app.synth()) == 0
