"""A single-model endpoint with two production variants: what each has of its own, in every stack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.constructs_lib.templates import flat, of_type, only, properties, template_of
from tests.stacks.environments import SINGLE, environment, stage
from tritonstack.errors import InputError

VARIANTS = [
    {"name": "current", "model": "bert", "weight": 90},
    {"name": "candidate", "model": "bert-db", "weight": 10, "initial_instance_count": 1},
]
PLAIN = {**{name: value for name, value in SINGLE.items() if name != "models"}, "variants": VARIANTS}
SCALING = {"minimum": 1, "maximum": 4, "gpu_utilization": 60}
WAITING = {"kind": "all-at-once", "termination_wait_seconds": 300}
WATCHED = {"no_traffic_minutes": 10, "budget_usd_per_hour": 5.0}
NAMES = ["current-g5-12xlarge", "candidate-g5-12xlarge"]


def template(name: str = "serving", **changes: Any) -> dict[str, Any]:
    """The template of a stack of an environment with the endpoint."""
    alarms = {"dashboard": True, "alarms": {"thresholds": WATCHED}}
    made = stage(environment({**PLAIN, **changes}, **alarms))
    found = made.serving["single"] if name == "serving" else made.observability
    assert found is not None
    return template_of(found)


@pytest.fixture(scope="module")
def scaled() -> dict[str, Any]:
    """The serving stack of two variants that are scaled, with alarms on the new fleet."""
    return template(scaling=SCALING, rollout=WAITING)


def test_each_variant_has_its_model_its_weight_and_its_fleet() -> None:
    made = template()
    variants = properties(made, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert [each["VariantName"] for each in variants] == NAMES
    assert [each["InitialVariantWeight"] for each in variants] == [90, 10]
    models = of_type(made, "AWS::SageMaker::Model")
    named = [models[each["ModelName"]["Fn::GetAtt"][0]]["Properties"]["PrimaryContainer"] for each in variants]
    archives = [flat(each["ModelDataUrl"]).rpartition("/")[2].partition(".")[0] for each in named]
    assert archives == ["bert", "bert-db"]


def test_each_variant_is_scaled_by_itself_and_weights_are_not_retained(scaled: dict[str, Any]) -> None:
    targets = of_type(scaled, "AWS::ApplicationAutoScaling::ScalableTarget").values()
    assert [each["Properties"]["ResourceId"].rpartition("/")[2] for each in targets] == NAMES
    policies = of_type(scaled, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
    tracked = [each["Properties"]["TargetTrackingScalingPolicyConfiguration"] for each in policies]
    metrics = [each["CustomizedMetricSpecification"]["Dimensions"][1]["Value"] for each in tracked]
    assert metrics == NAMES
    before, resource = only(scaled, "Custom::ScalingBefore")
    passed = json.loads(resource["Properties"]["Scaling"])
    assert [passed["variant"], *(each["variant"] for each in passed["beside"])] == NAMES
    assert resource["Properties"]["Weights"] == "90 10"  # so that another weight waits for scaling activities, too
    variants = properties(scaled, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    counts = [each["InitialInstanceCount"]["Fn::GetAtt"] for each in variants]
    assert counts == [[before, "InitialInstanceCount"], [before, "InitialInstanceCount1"]]
    excluded = properties(scaled, "AWS::SageMaker::Endpoint")["ExcludeRetainedVariantProperties"]
    assert {"VariantPropertyType": "DesiredWeight"} in excluded


def test_an_error_of_either_new_fleet_rolls_an_update_back(scaled: dict[str, Any]) -> None:
    alarms = of_type(scaled, "AWS::CloudWatch::Alarm")
    update = properties(scaled, "AWS::SageMaker::Endpoint")["DeploymentConfig"]["AutoRollbackConfiguration"]
    assert {each["AlarmName"]["Ref"] for each in update["Alarms"]} == set(alarms)
    watched = [
        next(each["Value"] for each in query["MetricStat"]["Metric"]["Dimensions"] if each["Name"] == "VariantName")
        for alarm in alarms.values()
        for query in alarm["Properties"]["Metrics"]
        if "MetricStat" in query and query["Id"] == "errors"
    ]
    assert watched == [NAMES[0], NAMES[0], NAMES[1], NAMES[1]]


def test_verification_and_outputs_hold_which_variant_serves_what(scaled: dict[str, Any]) -> None:
    verified = properties(scaled, "Custom::VerifiedEndpoint")
    assert json.loads(verified["Variants"]) == {"bert": NAMES[0], "bert-db": NAMES[1]}
    assert scaled["Outputs"]["VariantName"]["Value"] == ", ".join(NAMES)
    outputs = [each["Properties"] for each in of_type(scaled, "AWS::SSM::Parameter").values()]
    [text] = [flat(each["Value"]) for each in outputs if "_outputs" in each["Name"]]
    assert json.loads(text)["variants"] == dict(zip(("current", "candidate"), NAMES, strict=True))


def test_each_variant_has_its_alarms_and_its_part_of_the_dashboard_and_the_budget_is_of_both() -> None:
    made = template("observability", scaling=SCALING)
    alarms = {
        each["Properties"]["AlarmName"]: each["Properties"] for each in of_type(made, "AWS::CloudWatch::Alarm").values()
    }
    kinds = {
        label: {name.removeprefix(f"dev-single.{label}-") for name in alarms if f".{label}-" in name}
        for label in ("current", "candidate")
    }
    assert kinds["current"] == kinds["candidate"] >= {"latency", "no-traffic", "at-maximum-instances"}
    cost = alarms["dev-single-cost-over-budget"]["Metrics"]
    [expression] = [each["Expression"] for each in cost if "Expression" in each]
    assert (expression.count("invocations0 / share0"), expression.count("invocations1 / share1")) == (1, 1)
    rules = of_type(made, "AWS::Events::Rule").values()
    detail = [each["Properties"]["EventPattern"]["detail"]["resourceId"] for each in rules]
    assert detail == [[f"endpoint/dev-single/variant/{name}"] for name in NAMES]
    body = json.loads(properties(made, "AWS::CloudWatch::Dashboard")["DashboardBody"])
    texts = [each["properties"]["markdown"] for each in body["widgets"] if each["type"] == "text"]
    assert ["90 % of the requests" in texts[0], "10 % of the requests" in texts[1]] == [True, True]


def test_a_variant_without_a_share_has_no_alarm_on_its_absent_requests() -> None:
    weights = [{**VARIANTS[0]}, {**VARIANTS[1], "weight": 0}]
    alarms = of_type(template("observability", variants=weights), "AWS::CloudWatch::Alarm").values()
    quiet = [each["Properties"]["AlarmName"] for each in alarms if "no-traffic" in each["Properties"]["AlarmName"]]
    assert quiet == ["dev-single.current-no-traffic"]


def test_schedules_that_a_functions_variables_cannot_hold_are_refused() -> None:
    schedules = [{"name": f"{'s' * 38}{number:02}", "when": "cron(0 7 ? * * *)", "minimum": 1} for number in range(10)]
    every = {"invocations_per_instance": 1.5, "gpu_memory": 9.5, "concurrency": 1}
    with pytest.raises(InputError, match=r"current-g5-12xlarge, candidate-g5-12xlarge: \d+ bytes"):
        template(scaling={**SCALING, **every, "schedules": schedules})
