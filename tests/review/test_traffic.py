"""What a deployment does to the calls that an endpoint answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.review.small import Template, resource, serving, stack, stack_change
from tritonstack.review.change import FleetChange, TrafficChange, Update

SCALED: dict[str, Any] = {"RetainAllVariantProperties": True}
G5: dict[str, Any] = {"InstanceType": "ml.g5.xlarge", "VariantName": "g5-xlarge"}


def rollout(kind: Any, alarms: bool = True, **routing: Any) -> dict[str, Any]:
    policy = {"TrafficRoutingConfiguration": {"Type": kind, "WaitIntervalInSeconds": 120, **routing}}
    watched = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "bad-release"}]}} if alarms else {}
    return {"DeploymentConfig": {"BlueGreenUpdatePolicy": policy, **watched}}


CANARY = rollout("CANARY", CanarySize={"Type": "CAPACITY_PERCENT", "Value": 10})
LINEAR = rollout("LINEAR", LinearStepSize={"Type": "INSTANCE_COUNT", "Value": 1})
ROLLING: dict[str, Any] = {
    "DeploymentConfig": {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
            "WaitIntervalInSeconds": 60,
        }
    }
}


def traffic(before: Template, after: Template) -> TrafficChange:
    [change] = stack_change(stack(before), stack(after)).traffic
    return change


def test_a_change_beside_it_leaves_an_endpoint_alone() -> None:
    change = traffic(serving(), {**serving(), "Topic": resource("AWS::SNS::Topic")})
    assert (change.touched, change.update, change.fleet) == (False, Update.NONE, ())
    assert change.sentences == ("dev-digits is unchanged.",)


def test_tags_move_no_calls() -> None:
    change = traffic(serving(), serving(Tags=[{"Key": "team", "Value": "a"}]))
    assert (change.touched, change.update) == (False, Update.NONE)
    assert change.sentences == ("dev-digits is unchanged, but for its tags.",)


def test_a_new_endpoint_has_no_calls_and_one_that_goes_fails_them() -> None:
    new, gone = traffic({}, serving()), traffic(serving(), {})
    assert (new.touched, new.update) == (False, Update.CREATED)
    assert "1 of ml.g4dn.xlarge" in new.sentences[0]
    assert (gone.touched, gone.update) == (True, Update.REMOVED)
    assert "dev-digits is removed" in gone.sentences[0]


def test_another_name_is_another_endpoint() -> None:
    change = traffic(serving(), serving(name="dev-numbers"))
    assert (change.touched, change.update) == (True, Update.REPLACED)
    assert "dev-numbers, takes the place of dev-digits" in change.sentences[0]


@pytest.mark.parametrize(
    ("deployment", "update", "sentence"),
    [
        ({}, Update.ALL_AT_ONCE, "No alarm is watched: only a fleet that does not start is rolled back."),
        (rollout("ALL_AT_ONCE"), Update.ALL_AT_ONCE, "These alarms roll it back: bad-release."),
        (CANARY, Update.CANARY, "First 10 %, then the rest, 120 s apart."),
        (LINEAR, Update.LINEAR, "In steps of 1 instances, 120 s apart."),
        (ROLLING, Update.ROLLING, "In batches of 50 %, 60 s apart."),
    ],
)
def test_another_image_moves_the_calls_as_the_template_says(
    deployment: dict[str, Any], update: Update, sentence: str
) -> None:
    change = traffic(serving(**deployment), serving(image="triton:24.10", **deployment))
    assert (change.touched, change.update, change.fleet) == (True, update, (FleetChange.CONTAINER,))
    assert sentence in change.sentences
    quota = "Both fleets run until the old one has ended: the quota must allow both."
    assert (quota in change.sentences) == (update is not Update.ROLLING)


def test_another_instance_type_goes_all_at_once_whatever_the_canary() -> None:
    """Developer guide, "Exclusions": guardrails need the same variant name before and after."""
    change = traffic(serving(**CANARY), serving(variant=G5, **CANARY))
    assert (change.touched, change.update) == (True, Update.ALL_AT_ONCE)
    assert change.fleet == (FleetChange.INSTANCE_TYPE,)
    assert "from 1 of ml.g4dn.xlarge to 1 of ml.g5.xlarge" in change.sentences[0]
    assert any("neither canary nor linear applies" in each for each in change.sentences)


def test_another_instance_type_under_a_rolling_update_is_said_to_be_refused() -> None:
    change = traffic(serving(**ROLLING), serving(variant=G5, **ROLLING))
    assert any("SageMaker rejects a rolling update" in each for each in change.sentences)


def test_the_type_of_a_variant_that_keeps_its_name_goes_by_the_canary() -> None:
    change = traffic(serving(**CANARY), serving(variant={"InstanceType": "ml.g5.xlarge"}, **CANARY))
    assert (change.update, change.fleet) == (Update.CANARY, (FleetChange.INSTANCE_TYPE,))


def test_a_count_alone_is_a_change_of_capacity() -> None:
    change = traffic(serving(), serving(variant={"InitialInstanceCount": 3}))
    assert (change.touched, change.fleet) == (True, (FleetChange.CAPACITY,))
    assert not any("stays" in each for each in change.sentences)
    kept = traffic(serving(**SCALED), serving(variant={"InitialInstanceCount": 3}, **SCALED))
    assert any("The number of serving instances stays" in each for each in kept.sentences)


def test_a_key_of_the_config_is_a_setting_of_it() -> None:
    change = traffic(serving(), serving(config={"KmsKeyId": "key"}))
    assert (change.touched, change.fleet) == (True, (FleetChange.OTHER,))


def test_guardrails_alone_have_an_effect_that_nobody_documents() -> None:
    change = traffic(serving(**CANARY), serving())
    assert (change.touched, change.update, change.fleet) == (None, Update.UNKNOWN, ())
    assert "whether SageMaker starts a new fleet is not documented" in change.sentences[0]


def test_what_a_custom_resource_answers_decides_when_it_is_deployed() -> None:
    def scaled(maximum: int) -> Template:
        before = resource("Custom::ScalingBefore", {"Maximum": maximum, "ServiceToken": "arn"})
        count = {"InitialInstanceCount": {"Fn::GetAtt": ["Before", "InitialInstanceCount"]}}
        return {**serving(variant=count, **SCALED), "Before": before}

    change = traffic(scaled(4), scaled(5))
    assert (change.touched, change.fleet) == (None, (FleetChange.CAPACITY,))
    assert "known only when deployed" in change.sentences[0]


@pytest.mark.parametrize(("given", "update"), [(CANARY, Update.CANARY), (LINEAR, Update.LINEAR)])
def test_routing_that_is_told_at_deployment_is_read_from_what_scaling_was_given(
    given: dict[str, Any], update: Update
) -> None:
    routing = given["DeploymentConfig"]["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    before = resource("Custom::ScalingBefore", {"Scaling": json.dumps({"routing": routing}), "ServiceToken": "arn"})
    told = {"TrafficRoutingConfiguration": {"Fn::GetAtt": ["Before", "TrafficRouting"]}}
    deployment: dict[str, Any] = {"DeploymentConfig": {**given["DeploymentConfig"], "BlueGreenUpdatePolicy": told}}

    def scaled(**more: Any) -> Template:
        return {**serving(**more, **deployment), "Before": before}

    change, given_outright = (
        traffic(scaled(), scaled(image="b")),
        traffic(serving(**given), serving(image="b", **given)),
    )
    assert change.update is update
    assert change.sentences == given_outright.sentences
    assert traffic(scaled(), scaled(variant=G5)).update is Update.ALL_AT_ONCE


def test_an_alarm_of_the_stack_is_named() -> None:
    deployment = rollout("ALL_AT_ONCE")
    deployment["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"] = [{"AlarmName": {"Ref": "Alarm"}}]
    change = traffic(serving(**deployment), serving(image="b", **deployment))
    assert "These alarms roll it back: ${Alarm}." in change.sentences


def test_what_a_refused_deployment_would_move_is_said_not_to_come() -> None:
    before, after = serving(), serving(image="triton:24.10")
    for template in (before, after):
        template["Model"]["Properties"]["ModelName"] = "chosen"
    [change] = stack_change(stack(before), stack(after)).traffic
    assert change.sentences[0] == (
        "CloudFormation rejects the change of Model: the deployment is rolled back, and what follows does not happen."
    )
    [other] = stack_change(stack(serving()), stack(serving(image="triton:24.10"))).traffic
    assert change.sentences[1:] == other.sentences
