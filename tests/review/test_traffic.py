"""How a deployment shifts the traffic of an endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.review.small import LIVE, SCALING, VARIANT, Template, resource, serving, stack, stack_change, target
from tritonstack.review.change import Update
from tritonstack.review.document import TrafficEntry

SCALED: dict[str, Any] = {"RetainAllVariantProperties": True}
G5: dict[str, Any] = {"InstanceType": "ml.g5.xlarge", "VariantName": "g5-xlarge"}


def rollout(kind: Any, alarms: bool = True, **routing: Any) -> dict[str, Any]:
    policy = {"TrafficRoutingConfiguration": {"Type": kind, "WaitIntervalInSeconds": 120, **routing}}
    watched = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "bad-release"}]}} if alarms else {}
    return {"DeploymentConfig": {"BlueGreenUpdatePolicy": policy, **watched}}


CANARY = rollout("CANARY", CanarySize={"Type": "CAPACITY_PERCENT", "Value": 10})
LINEAR = rollout("LINEAR", LinearStepSize={"Type": "INSTANCE_COUNT", "Value": 1})
BATCHES = {"MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50}, "WaitIntervalInSeconds": 60}
ROLLING: dict[str, Any] = {"DeploymentConfig": {"RollingUpdatePolicy": BATCHES}}


def traffic(before: Template, after: Template) -> TrafficEntry:
    [change] = stack_change(stack(before), stack(after)).traffic
    return change


def pools(*types: str) -> dict[str, Any]:
    """A variant with instance pools of these types."""
    rows = [{"InstanceType": name, "Priority": number} for number, name in enumerate(types, start=1)]
    return {"InstanceType": None, "InstancePools": rows, "VariantName": f"pool-{len(types)}"}


def test_a_type_to_fall_back_to_lowers_the_risk_of_a_shortage_and_its_removal_raises_it() -> None:
    one, two = serving(), serving(variant=pools("ml.g4dn.xlarge", "ml.g5.xlarge"))
    added, removed = (" ".join(traffic(*sides).sentences) for sides in ((one, two), (two, one)))
    assert "from 1 of ml.g4dn.xlarge to 1 of ml.g4dn.xlarge, else ml.g5.xlarge" in added
    assert "The risk of a lack of capacity falls: ml.g5.xlarge may serve where AWS lacks ml.g4dn.xlarge." in added
    assert "The risk of a lack of capacity rises: ml.g5.xlarge no longer steps in." in removed
    swapped = traffic(two, serving(variant={**pools("ml.g5.xlarge", "ml.g4dn.xlarge"), "VariantName": "swapped"}))
    assert "risk" not in " ".join(swapped.sentences)


@pytest.mark.parametrize(
    ("before", "after", "touched", "update", "sentence"),
    [
        (
            serving(),
            {**serving(), "Topic": resource("AWS::SNS::Topic")},
            False,
            Update.NONE,
            "dev-digits is unchanged.",
        ),
        (serving(), serving(Tags=[{"Key": "a", "Value": "b"}]), False, Update.NONE, "is unchanged, but for its tags."),
        ({}, serving(), False, Update.CREATED, "dev-digits is new, on 1 instance of ml.g4dn.xlarge."),
        (serving(), {}, True, Update.REMOVED, "dev-digits is removed"),
        (serving(), serving(name="dev-numbers"), True, Update.REPLACED, "dev-numbers, takes the place of dev-digits"),
        (serving(**CANARY), serving(), None, Update.UNKNOWN, "whether SageMaker starts a new fleet is not documented"),
    ],
    ids=["a change beside it", "tags", "a new endpoint", "a removed one", "another name", "guardrails alone"],
)
def test_what_happens_to_the_calls_of_an_endpoint(
    before: Template, after: Template, touched: bool | None, update: Update, sentence: str
) -> None:
    change = traffic(before, after)
    assert (change.touched, change.update) == (touched, update)
    assert sentence in change.sentences[0]


def test_a_new_endpoint_that_scales_shows_the_range_of_its_instances() -> None:
    change = traffic({}, {**serving(variant=LIVE), "Before": SCALING, **target(2, 6)})
    assert change.sentences[0] == "dev-digits is new, on 2 to 6 instances of ml.g4dn.xlarge."


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
def test_another_image_shifts_traffic_as_the_template_configures(
    deployment: dict[str, Any], update: Update, sentence: str
) -> None:
    change = traffic(serving(**deployment), serving(image="triton:24.10", **deployment))
    assert (change.touched, change.update) == (True, update)
    assert sentence in change.sentences
    quota = "Both fleets run until the old one has ended: the quota must allow both."
    assert (quota in change.sentences) == (update is not Update.ROLLING)


def test_another_instance_type_goes_all_at_once_despite_a_canary_unless_the_variant_stays() -> None:
    """Developer guide, "Exclusions": guardrails need the same variant name before and after."""
    change = traffic(serving(**CANARY), serving(variant=G5, **CANARY))
    assert (change.touched, change.update) == (True, Update.ALL_AT_ONCE)
    assert "from 1 of ml.g4dn.xlarge to 1 of ml.g5.xlarge" in change.sentences[0]
    assert any("neither canary nor linear applies" in each for each in change.sentences)
    rolling = traffic(serving(**ROLLING), serving(variant=G5, **ROLLING))
    assert any("SageMaker rejects a rolling update" in each for each in rolling.sentences)
    kept = traffic(serving(**CANARY), serving(variant={"InstanceType": "ml.g5.xlarge"}, **CANARY))
    assert kept.update == Update.CANARY


def weighted(*weights: float, **endpoint: Any) -> Template:
    """Two variants with these weights."""
    names = ("current-g4dn-xlarge", "candidate-g4dn-xlarge")
    variants = [
        {**VARIANT, "VariantName": name, "InitialVariantWeight": weight}
        for name, weight in zip(names, weights, strict=True)
    ]
    return serving(config={"ProductionVariants": variants}, **endpoint)


EXCLUDED = {**SCALED, "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}]}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (weighted(9, 1), weighted(1, 1), "current-g4dn-xlarge 90 % → 50 %, candidate-g4dn-xlarge 10 % → 50 %"),
        ({}, weighted(2, 1), "current-g4dn-xlarge 66.7 %, candidate-g4dn-xlarge 33.3 %"),
        (
            serving(),
            weighted(3, 1),
            "g4dn-xlarge 100 % → none, current-g4dn-xlarge none → 75 %, candidate-g4dn-xlarge none → 25 %",
        ),
        (weighted(9, 1), weighted(90, 10, Tags=[]), None),
        (serving(), serving(image="triton:24.10"), None),
        (weighted(9, 1, **EXCLUDED), weighted(1, 1, **EXCLUDED), "current-g4dn-xlarge 90 % → 50 %"),
    ],
    ids=["other weights", "a new endpoint", "an experiment begins", "the same shares", "one variant", "excluded"],
)
def test_the_shares_of_variants_are_reported_where_they_change(
    before: Template, after: Template, expected: str | None
) -> None:
    found = [each for each in traffic(before, after).sentences if "Share of the requests by weight" in each]
    assert len(found) == (expected is not None)
    assert all(str(expected) in each for each in found)
    assert not any("takes no effect" in each for each in traffic(before, after).sentences)


def test_a_weight_that_the_endpoint_retains_takes_no_effect() -> None:
    change = traffic(weighted(9, 1, **SCALED), weighted(1, 1, **SCALED))
    assert any("That takes no effect" in each for each in change.sentences)


def test_a_count_alone_stays_where_the_endpoint_retains_its_variants_properties() -> None:
    change = traffic(serving(), serving(variant={"InitialInstanceCount": 3}))
    assert change.touched is True
    assert not any("stays" in each for each in change.sentences)
    kept = traffic(serving(**SCALED), serving(variant={"InitialInstanceCount": 3}, **SCALED))
    assert any("The number of serving instances stays" in each for each in kept.sentences)


def test_what_a_custom_resource_returns_is_decided_at_deployment() -> None:
    def scaled(maximum: int) -> Template:
        before = resource("Custom::ScalingBefore", {"Maximum": maximum, "ServiceToken": "arn"})
        count = {"InitialInstanceCount": {"Fn::GetAtt": ["Before", "InitialInstanceCount"]}}
        return {**serving(variant=count, **SCALED), "Before": before}

    change = traffic(scaled(4), scaled(5))
    assert change.touched is None
    assert "known only when deployed" in change.sentences[0]


@pytest.mark.parametrize(("given", "update"), [(CANARY, Update.CANARY), (LINEAR, Update.LINEAR)])
def test_routing_that_is_set_at_deployment_is_read_from_the_properties_of_scaling(
    given: dict[str, Any], update: Update
) -> None:
    routing = given["DeploymentConfig"]["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    before = resource("Custom::ScalingBefore", {"Scaling": json.dumps({"routing": routing}), "ServiceToken": "arn"})
    taken = {"TrafficRoutingConfiguration": {"Fn::GetAtt": ["Before", "TrafficRouting"]}}
    deployment: dict[str, Any] = {"DeploymentConfig": {**given["DeploymentConfig"], "BlueGreenUpdatePolicy": taken}}

    def scaled(**more: Any) -> Template:
        return {**serving(**more, **deployment), "Before": before}

    change = traffic(scaled(), scaled(image="b"))
    given_outright = traffic(serving(**given), serving(image="b", **given))
    assert change.update == update
    assert change.sentences == given_outright.sentences
    assert traffic(scaled(), scaled(variant=G5)).update == Update.ALL_AT_ONCE


def test_traffic_that_a_refused_deployment_would_shift_is_reported_as_not_shifted() -> None:
    before, after = serving(), serving(image="triton:24.10")
    for template in (before, after):
        template["Model"]["Properties"]["ModelName"] = "chosen"
    [change] = stack_change(stack(before), stack(after)).traffic
    assert change.sentences[0] == (
        "CloudFormation rejects the change of Model: the deployment is rolled back, and what follows does not happen."
    )
    [other] = stack_change(stack(serving()), stack(serving(image="triton:24.10"))).traffic
    assert change.sentences[1:] == other.sentences
