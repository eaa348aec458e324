"""Scaling in a template: target, policies, schedules, the steps that keep them on the live variant, and their role."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import assertions

from tests.constructs_lib.templates import of_type, only, properties
from tests.stacks.environments import DIGITS, SINGLE, environment, serving_template, stage

SCALED = {
    **DIGITS,
    "initial_instance_count": 2,
    "scaling": {"minimum": 2, "maximum": 6, "requests_per_second": 20, "gpu_utilization": 60},
}
CANARY = {
    "kind": "canary",
    "size_percent": 50,
    "wait_seconds": 600,
    "accept_multi_model": True,
}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    """Of a multi-model endpoint with both targets."""
    return serving_template(SCALED)


def scaled(endpoint: dict[str, Any] = DIGITS, **scaling: Any) -> dict[str, Any]:
    """The template of an endpoint with this scaling."""
    return serving_template({**endpoint, "scaling": {"minimum": 1, "maximum": 4, **scaling}})


def tracking(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Logical id without its hash → target tracking configuration."""
    found = of_type(template, "AWS::ApplicationAutoScaling::ScalingPolicy")
    return {
        name.removeprefix("EndpointScaling")[:-8]: each["Properties"]["TargetTrackingScalingPolicyConfiguration"]
        for name, each in found.items()
    }


def test_without_scaling_an_endpoint_is_as_it_was() -> None:
    made = serving_template(DIGITS)
    assert not of_type(made, "AWS::ApplicationAutoScaling::ScalableTarget")
    assert "RetainAllVariantProperties" not in properties(made, "AWS::SageMaker::Endpoint")
    [variant] = properties(made, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert variant["InitialInstanceCount"] == 1


def test_targets_of_gpus_and_vcpus_are_multiplied_by_their_number() -> None:
    found = tracking(scaled(SINGLE, gpu_utilization=60, gpu_memory=80, cpu_utilization=70))
    assert found["GpuUtilization"]["TargetValue"] == 60 * 4  # ml.g5.12xlarge has four
    assert found["GpuMemory"]["TargetValue"] == 80 * 4
    assert found["GpuMemory"]["CustomizedMetricSpecification"]["MetricName"] == "GPUMemoryUtilization"
    assert found["CpuUtilization"]["TargetValue"] == 70 * 48, "its vCPUs"
    metric = found["CpuUtilization"]["CustomizedMetricSpecification"]
    assert (metric["Namespace"], metric["MetricName"]) == ("/aws/sagemaker/Endpoints", "CPUUtilization")
    assert (metric["Statistic"], metric["Unit"]) == ("Average", "Percent")


def test_concurrency_is_the_metric_of_every_ten_seconds() -> None:
    metric = tracking(scaled(concurrency=4))["Concurrency"]["PredefinedMetricSpecification"]
    assert metric == {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}


def test_schedules_are_scheduled_actions_with_their_time_zone() -> None:
    day = {"name": "day", "when": "cron(0 7 ? * MON-FRI *)", "time_zone": "Europe/Berlin", "minimum": 3}
    made = scaled(schedules=(day,))
    assert properties(made, "AWS::ApplicationAutoScaling::ScalableTarget")["ScheduledActions"] == [
        {
            "ScheduledActionName": "day",
            "Schedule": "cron(0 7 ? * MON-FRI *)",
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": 3},
        }
    ]


def test_another_target_value_is_another_policy_under_the_same_logical_id() -> None:
    """CloudFormation must never update a policy by an ARN that is no longer its own."""
    first, second = (scaled(gpu_utilization=value) for value in (60, 70))
    (id_1, policy_1), (id_2, policy_2) = (
        only(each, "AWS::ApplicationAutoScaling::ScalingPolicy") for each in (first, second)
    )
    assert id_1 == id_2
    assert policy_1["Properties"]["PolicyName"] != policy_2["Properties"]["PolicyName"]
    assert policy_1["Properties"]["PolicyName"].startswith("tritonstack-gpu-utilization-")


def custom(template: dict[str, Any], kind: str) -> tuple[str, dict[str, Any]]:
    """Logical id and resource of one of the three."""
    return only(template, f"Custom::Scaling{kind}")


def depends(template: dict[str, Any], name: str) -> set[str]:
    """Everything that a resource waits for, through others too."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = template["Resources"][waiting.pop()]
        text = json.dumps(each)
        direct = {other for other in template["Resources"] if f'"{other}"' in text} | set(each.get("DependsOn", []))
        waiting += direct - found - {name}
        found |= direct
    return found - {name}


def test_the_steps_are_before_and_after_the_endpoint(template: dict[str, Any]) -> None:
    ids = {kind: custom(template, kind)[0] for kind in ("Before", "Settled", "After")}
    endpoint, config = (only(template, f"AWS::SageMaker::{kind}")[0] for kind in ("Endpoint", "EndpointConfig"))
    archives, records = (only(template, f"Custom::{kind}")[0] for kind in ("PublishedArchives", "ReleaseRecords"))
    target = only(template, "AWS::ApplicationAutoScaling::ScalableTarget")[0]
    assert archives in depends(template, ids["Before"])  # nothing that serves is touched before they are there
    assert ids["Before"] in depends(template, config)
    assert {ids["Before"], ids["Settled"]} <= depends(template, endpoint)
    assert endpoint in depends(template, target)
    found = {target, *of_type(template, "AWS::ApplicationAutoScaling::ScalingPolicy")}
    assert found <= depends(template, ids["After"])
    assert ids["After"] in depends(template, records)


def test_the_config_begins_with_the_instance_count_that_before_returns(template: dict[str, Any]) -> None:
    before = custom(template, "Before")[0]
    [variant] = properties(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert variant["InitialInstanceCount"] == {"Fn::GetAtt": [before, "InitialInstanceCount"]}


def test_scaled_counts_survive_a_deployment(template: dict[str, Any]) -> None:
    endpoint = properties(template, "AWS::SageMaker::Endpoint")
    assert endpoint["RetainAllVariantProperties"] is True
    excluded = {each["VariantPropertyType"] for each in endpoint["ExcludeRetainedVariantProperties"]}
    assert excluded == {"DesiredWeight", "DataCaptureConfig"}


def wanted(template: dict[str, Any]) -> dict[str, Any]:
    """The properties of the function's custom resources."""
    found: dict[str, Any] = json.loads(custom(template, "Before")[1]["Properties"]["Scaling"])
    return found


def test_the_function_gets_the_same_as_cloudformation(template: dict[str, Any]) -> None:
    read = wanted(template)
    native = {
        each["Properties"]["PolicyName"]: each["Properties"]["TargetTrackingScalingPolicyConfiguration"]
        for each in of_type(template, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
    }
    assert read["policies"] == native
    assert (read["endpoint"], read["variant"]) == ("dev-digits", "g4dn-xlarge")
    assert (read["minimum"], read["maximum"], read["initial"]) == (2, 6, 2)
    [variables] = [
        each["Properties"]["Environment"]["Variables"]
        for name, each in of_type(template, "AWS::Lambda::Function").items()
        if name.startswith("EndpointScaling")
    ]
    assert json.loads(variables["SCALING"]) == read
    for kind in ("Settled", "After"):
        assert json.loads(custom(template, kind)[1]["Properties"]["Scaling"]) == read


def test_the_largest_scaling_fits_into_a_functions_variables() -> None:
    schedules = tuple(
        {
            "name": f"{'s' * 38}{number:02}",
            "when": "cron(0/15 12-18 ? JAN-DEC MON-FRI 2026-2199)",
            "time_zone": "America/Argentina/ComodRivadavia",
            "minimum": 100,
            "maximum": 200,
        }
        for number in range(10)
    )
    endpoint = {**SINGLE, "name": "e" * 59}
    made = scaled(
        endpoint,
        invocations_per_instance=1.5,
        gpu_utilization=99.5,
        cpu_utilization=99.5,
        gpu_memory=9.5,
        schedules=schedules,
    )
    assert len(custom(made, "Before")[1]["Properties"]["Scaling"]) < 4000


def test_a_new_model_changes_the_properties_of_the_steps(template: dict[str, Any]) -> None:
    """Else a deployment after a change of type would go all at once, as that one did."""
    model = only(template, "AWS::SageMaker::Model")[0]
    assert custom(template, "Before")[1]["Properties"]["Model"] == {"Fn::GetAtt": [model, "ModelName"]}


def test_before_returns_how_traffic_shifts_and_synthesis_that_a_new_type_shifts_at_once() -> None:
    made = stage(environment({**SCALED, "rollout": CANARY})).serving["digits"]
    found = dict(assertions.Template.from_stack(made).to_json())
    routing = properties(found, "AWS::SageMaker::Endpoint")["DeploymentConfig"]["BlueGreenUpdatePolicy"][
        "TrafficRoutingConfiguration"
    ]
    assert routing == {"Fn::GetAtt": [custom(found, "Before")[0], "TrafficRouting"]}, (
        "a size would stay as the type goes"
    )
    assert wanted(found)["routing"] == {
        "Type": "CANARY",
        "WaitIntervalInSeconds": CANARY["wait_seconds"],
        "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": CANARY["size_percent"]},
    }
    notes = assertions.Annotations.from_stack(made).find_info(
        "*", assertions.Match.string_like_regexp(".*changes the instance type goes all at once, not canary.*")
    )
    assert len(notes) == 1


# What the function may do.
