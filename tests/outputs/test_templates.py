"""The stacks write the fields of the contract, in every template of an environment with every feature."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import flat, of_type, template_of
from tests.monitoring.settings_of import SCALING
from tests.outputs.test_contract import COMMITTED
from tests.stacks.environments import DIGITS, SINGLE, environment, stage
from tests.stacks.everything import everything, stacks_of
from tritonstack.outputs.contract import PARAMETER, PARAMETER_BYTES

LONGEST_ARN = "arn:aws-us-gov:iam::123456789012:role/" + "r" * 128
REFERENCE = re.compile(r"\$\{[^}]+\}")
ALARMS = {"thresholds": {"no_traffic_minutes": 30, "budget_usd_per_hour": 50.0}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Stack's name → template, of an environment with every kind of stack.

    But that of load tests, which ``tritonstack capacity bench --cloud`` starts: it has no outputs for other pipelines.
    """
    made = everything(tmp_path_factory.mktemp("whole"))
    return {stack.stack_name: template_of(stack) for stack in stacks_of(made) if stack is not made.load_test}


def parameter(template: dict[str, Any]) -> dict[str, Any]:
    """The properties of the one parameter that holds the stack's outputs."""
    found: dict[str, Any] = template["Resources"]["Outputs"]["Properties"]
    return found


def outputs_of(template: dict[str, Any]) -> dict[str, Any]:
    """A stack's outputs document; a value that is known at deployment only is ``${LogicalId}``."""
    read: dict[str, Any] = json.loads(flat(parameter(template)["Value"]))
    return read


def of_kind(templates: dict[str, dict[str, Any]], kind: str) -> dict[str, Any]:
    """The first stack of a kind."""
    return next(each for each in templates.values() if outputs_of(each)["kind"] == kind)


def test_each_stack_has_one_parameter_of_the_contract_and_no_export(whole: dict[str, dict[str, Any]]) -> None:
    assert {outputs_of(each)["kind"] for each in whole.values()} == set(COMMITTED["parameters"])
    for name, template in whole.items():
        names = [each["Properties"]["Name"] for each in of_type(template, "AWS::SSM::Parameter").values()]
        assert len([each for each in names if "/_outputs/" in each]) == 1, name
        assert not [each for each in template.get("Outputs", {}).values() if "Export" in each], name


@pytest.mark.parametrize("kind", sorted(COMMITTED["parameters"]))
def test_a_stack_writes_the_fields_of_the_contract_and_no_others(whole: dict[str, dict[str, Any]], kind: str) -> None:
    contract = COMMITTED["parameters"][kind]
    for name, template in whole.items():
        read = outputs_of(template)
        if read["kind"] != kind:
            continue
        fields = {each for each in contract["fields"] if each.count("/") == 1 and "[]" not in each}
        # of an endpoint with several variants or instance pools, and of one that streams
        optional = {"/variants", "/streams", "/instance_types", "/platforms"} if kind == "serving" else set()
        assert {f"/{field}" for field in read} | optional == fields
        wanted = contract["name"].replace("<environment>", "local")
        assert parameter(template)["Name"] == wanted.replace("<endpoint>", read.get("endpoint", ""))
        assert (read["contract"], read["minor"]) == (COMMITTED["contract"], COMMITTED["minor"])
        assert read["stack"] == name
        PARAMETER.validate_python(read)


@pytest.mark.parametrize("kind", sorted(COMMITTED["stack_outputs"]))
def test_the_cloudformation_outputs_keep_their_names(whole: dict[str, dict[str, Any]], kind: str) -> None:
    outputs = of_kind(whole, kind).get("Outputs", {})
    assert set(outputs) == set(COMMITTED["stack_outputs"][kind])


def test_the_endpoint_arn_refers_to_the_endpoint_so_it_is_written_once_it_serves(
    whole: dict[str, dict[str, Any]],
) -> None:
    serving = of_kind(whole, "serving")
    endpoint = next(iter(of_type(serving, "AWS::SageMaker::Endpoint")))
    assert outputs_of(serving)["endpoint_arn"] == f"${{{endpoint}}}"


UNNAMED = {"local-load-test-not-cleaned-up"}
"""Alarms that version 1.0 of the contract has no field for; the composite alarms hold them like any other."""


def test_alarms_are_those_that_are_made(whole: dict[str, dict[str, Any]]) -> None:
    template = of_kind(whole, "observability")
    read = outputs_of(template)
    made = {each["Properties"]["AlarmName"] for each in of_type(template, "AWS::CloudWatch::Alarm").values()}
    names = [name for names in read["endpoint_alarms"].values() for name in names] + read["build_alarms"]
    assert read["build_alarms"]
    assert made >= UNNAMED
    assert (set(names), len(names)) == (made - UNNAMED, len(made - UNNAMED))
    composites = of_type(template, "AWS::CloudWatch::CompositeAlarm").values()
    assert set(read["composite_alarms"].values()) == {each["Properties"]["AlarmName"] for each in composites}


def test_the_longest_names_fit_into_a_standard_parameter(whole: dict[str, dict[str, Any]]) -> None:
    for template in whole.values():
        value = flat(parameter(template)["Value"])
        longest = REFERENCE.sub(lambda _: LONGEST_ARN, value)
        read = json.loads(longest)
        for name in {"local", read.get("endpoint")} - {None}:
            longest = longest.replace(name, name + "x" * (63 - len(name)))
        assert len(longest.encode()) <= PARAMETER_BYTES, read["kind"]


def many_endpoints(count: int) -> EnvironmentStage:
    endpoints = [{**DIGITS, "name": f"an-endpoint-with-a-name-{number:02}"} for number in range(count)]
    return stage(environment(*endpoints, alarms=ALARMS, dashboard=False))


def test_more_alarms_than_a_parameter_holds_are_null_and_the_rest_is_written() -> None:
    made = many_endpoints(12).observability
    assert made is not None
    template = template_of(made)
    read = outputs_of(template)
    assert (read["endpoint_alarms"], read["build_alarms"]) == (None, None)
    assert read["composite_alarms"]
    assert len(REFERENCE.sub(lambda _: LONGEST_ARN, flat(parameter(template)["Value"]))) <= PARAMETER_BYTES


def test_an_environment_without_alarms_and_dashboard_writes_null() -> None:
    made = stage(environment({**DIGITS, "scaling": SCALING}, SINGLE, dashboard=True)).observability
    assert made is not None
    read = outputs_of(template_of(made))
    assert read["dashboard"] == "tritonstack-dev"
    fields = ("alarm_topic_arn", "composite_alarms", "endpoint_alarms", "build_alarms")
    assert [read[field] for field in fields] == [None] * 4
