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
from tritonstack.deployed.physical_names import physical_names
from tritonstack.deployed.stacks import parts_of

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


def alarms_of(template: dict[str, Any], kind: str = "Alarm") -> dict[str, dict[str, Any]]:
    """Name → properties of alarms."""
    found = of_type(template, f"AWS::CloudWatch::{kind}").values()
    return {each["Properties"]["AlarmName"]: each["Properties"] for each in found}


def named_in(rule: str) -> list[str]:
    """The alarms that a composite alarm names."""
    return [part.split('"')[1] for part in rule.split(" OR ")]


def test_alarms_are_in_the_stack_of_their_dashboard_and_one_of_each_severity_notifies(large: EnvironmentStage) -> None:
    templates = observing(large)
    metric: dict[str, dict[str, Any]] = {}
    composite: dict[str, dict[str, Any]] = {}
    for template in templates.values():
        own = alarms_of(template)
        metric |= own
        composite |= alarms_of(template, "CompositeAlarm")
        [dashboard] = of_type(template, "AWS::CloudWatch::Dashboard").values()
        body = dashboard["Properties"]["DashboardBody"]
        for name, each in alarms_of(template, "CompositeAlarm").items():
            elsewhere = set(named_in(each["AlarmRule"])) - set(own)
            notifies = "observability" not in name
            assert elsewhere == ({f"{name}-observability-2"} if notifies else set())
            assert ("AlarmActions" in each) == notifies
        for name in own:
            assert f"## {'-'.join(name.split('-')[:2])}:" in body
    children = [child for name in ("dev-critical", "dev-warning") for child in named_in(composite[name]["AlarmRule"])]
    of_second = [name for name in children if name in composite]
    children += [child for name in of_second for child in named_in(composite[name]["AlarmRule"])]
    assert sorted(set(children) - set(of_second)) == sorted(metric), "every alarm notifies"
    assert {name.split("-")[1] for name in metric} == {f"e{number}" for number in range(28)}


def test_no_alarm_of_one_stack_has_the_name_of_one_in_another_wherever_its_endpoint_moves() -> None:
    """CloudFormation refuses a name that another stack has; which endpoints are in a stack follows their order."""
    names = [f"e{number}" for number in range(16)]
    by_stack: dict[str, set[str]] = {}
    for order in (names, names[::-1]):
        stage = new_stage(environment(*({**DIGITS, "name": name} for name in order), **WATCHED))
        for stack, template in observing(stage).items():
            by_stack.setdefault(stack, set()).update(alarms_of(template), alarms_of(template, "CompositeAlarm"))
    first, second = by_stack.values()
    assert len(by_stack) == 2
    assert not first & second


def test_the_sixteenth_endpoint_moves_no_alarm_and_no_dashboard() -> None:
    """Of the first stack only the composite alarms change, and names that a parameter no longer holds."""
    before, after = (observing(watched(count)) for count in (15, 16))
    assert list(before) == ["dev-observability"]
    assert set(after) == {"dev-observability", "dev-observability-2"}
    changed = {
        each["Type"]
        for name, each in after["dev-observability"]["Resources"].items()
        if before["dev-observability"]["Resources"].get(name) != each
    }
    assert after["dev-observability"]["Resources"].keys() == before["dev-observability"]["Resources"].keys()
    assert changed <= {"AWS::CloudWatch::CompositeAlarm", "AWS::SSM::Parameter"}


def test_alarms_without_dashboards_are_split_too_and_every_name_is_compared() -> None:
    settings = environment(*({**DIGITS, "name": f"e{number}"} for number in range(31)), alarms={})
    templates = observing(new_stage(settings))
    assert set(templates) == {"dev-observability", "dev-observability-2", "dev-observability-3"}
    compared = {each.name for each in physical_names(settings)}
    for stack, template in templates.items():
        assert {stack, *alarms_of(template), *alarms_of(template, "CompositeAlarm")} <= compared
        assert not of_type(template, "AWS::CloudWatch::Dashboard")


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
    "characters of a trust policy": (
        "",
        {"R": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": "s" * 2048}}}},
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
    errors = capsys.readouterr().err
    assert f"large: {limit}" in errors
    assert number in errors
    assert "guide" in errors or "reference" in errors


def test_a_small_template_is_taken(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(app, "small")
    cdk.CfnResource(stack, "P", type="AWS::SSM::Parameter", properties={"Type": "String", "Value": "v" * 4096})
    assert refused_for_size(app.synth()) == 0
