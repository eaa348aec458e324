"""Scalable targets: what SageMaker and Application Auto Scaling refuse, and what an update keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Inbox
from tests.tritonstack_local.emulator.running import Emulator, make_config, serving
from tests.tritonstack_local.emulator.scaled_variants import INVOCATIONS, Tracked, make_scaled, refused, target


@pytest.mark.parametrize(
    "variant", [{"VariantName": "other"}, {"InstanceType": "ml.g5.xlarge"}], ids=["removed", "another type"]
)
def test_a_scaled_variant_is_neither_removed_nor_given_another_type(
    aws: Emulator, name: str, variant: dict[str, str]
) -> None:
    scaling = make_scaled(aws, name)
    make_config(aws, f"{name}-2", **variant)
    sagemaker = aws.client("sagemaker")
    message = refused(sagemaker.update_endpoint, EndpointName=name, EndpointConfigName=f"{name}-2")
    assert 'The variant(s) "[main]" must be deregistered as scalable targets' in message
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"] == name
    scaling.deregister_scalable_target(**target(name))
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=f"{name}-2")
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"] == f"{name}-2"


@pytest.mark.parametrize(("retain", "count"), [(True, 3), (False, 1)])
def test_an_update_keeps_the_scaled_count_only_if_requested(aws: Emulator, name: str, retain: bool, count: int) -> None:
    make_scaled(aws, name)
    make_config(aws, f"{name}-2", InitialVariantWeight=2)
    sagemaker = aws.client("sagemaker")
    changes = [{"VariantName": "main", "DesiredInstanceCount": 3, "DesiredWeight": 7}]
    sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=changes)
    [variant] = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
    assert (variant["CurrentInstanceCount"], variant["DesiredWeight"]) == (3, 7)
    excluded = [{"VariantPropertyType": "DesiredWeight"}] if retain else []
    sagemaker.update_endpoint(
        EndpointName=name,
        EndpointConfigName=f"{name}-2",
        RetainAllVariantProperties=retain,
        ExcludeRetainedVariantProperties=excluded,
    )
    [variant] = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
    assert (variant["DesiredInstanceCount"], variant["DesiredWeight"]) == (count, 2)


def test_deregistering_takes_policies_and_schedules_along(aws: Emulator, name: str) -> None:
    scaling = make_scaled(aws, name)
    put = {**target(name), "PolicyName": "p", "PolicyType": "TargetTrackingScaling"}
    first = scaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration=INVOCATIONS)["PolicyARN"]
    again = scaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration=INVOCATIONS)["PolicyARN"]
    assert first == again
    action = {"ScheduledActionName": "day", "Schedule": "cron(0 7 ? * MON-FRI *)", "Timezone": "Europe/Berlin"}
    scaling.put_scheduled_action(**target(name), **action, ScalableTargetAction={"MinCapacity": 2})
    [kept] = scaling.describe_scheduled_actions(ServiceNamespace="sagemaker", ResourceId=target(name)["ResourceId"])[
        "ScheduledActions"
    ]
    assert (kept["Timezone"], kept["ScalableTargetAction"]) == ("Europe/Berlin", {"MinCapacity": 2})
    scaling.deregister_scalable_target(**target(name))
    assert "ObjectNotFoundException" in refused(scaling.deregister_scalable_target, **target(name))
    resource = {"ServiceNamespace": "sagemaker", "ResourceId": target(name)["ResourceId"]}
    assert scaling.describe_scaling_policies(**resource)["ScalingPolicies"] == []
    assert scaling.describe_scheduled_actions(**resource)["ScheduledActions"] == []
    scaling.register_scalable_target(**target(name), MinCapacity=1, MaxCapacity=4)
    put_anew = scaling.put_scaling_policy(**put, TargetTrackingScalingPolicyConfiguration=INVOCATIONS)["PolicyARN"]
    assert put_anew != first


GPU: dict[str, Any] = {
    "Namespace": "/aws/sagemaker/Endpoints",
    "MetricName": "GPUUtilization",
    "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "main"}],
    "Statistic": "Average",
}
HIGH = {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}
COPIES = {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"}


def test_what_is_no_target_tracking_and_no_schedule_is_refused(aws: Emulator, name: str) -> None:
    scaling = make_scaled(aws, name)
    put = {**target(name), "PolicyName": "p", "PolicyType": "TargetTrackingScaling"}
    policies: list[tuple[dict[str, Any], str]] = [
        ({}, "Exactly one of"),
        ({"PredefinedMetricSpecification": HIGH, "CustomizedMetricSpecification": GPU}, "Exactly one of"),
        ({"PredefinedMetricSpecification": COPIES}, "not valid for scalable dimension"),
        ({"CustomizedMetricSpecification": {"MetricName": "GPUUtilization"}}, "Namespace, Statistic"),
        ({"CustomizedMetricSpecification": GPU, "TargetValue": 0.0}, "greater than 0"),
    ]
    for configuration, words in policies:
        tracking = {"TargetValue": 5.0, **configuration}
        assert words in refused(scaling.put_scaling_policy, **put, TargetTrackingScalingPolicyConfiguration=tracking)
    for schedule, least, words in (
        ("every morning", 2, "Invalid schedule expression"),
        ("cron(0 7 * * ?)", 2, "Invalid schedule expression"),
        ("at(2030-01-01T00:00:00)", 5, "Maximum capacity 4 cannot be less than minimum capacity 5"),
    ):
        action = {"ScheduledActionName": "s", "Schedule": schedule, "ScalableTargetAction": {"MinCapacity": least}}
        assert words in refused(scaling.put_scheduled_action, **target(name), **action)


def test_traffic_shifts_in_steps_only_between_the_same_variants(aws: Emulator, name: str) -> None:
    make_config(aws, name, InitialInstanceCount=2)
    make_config(aws, f"{name}-2", VariantName="other", InitialInstanceCount=2)
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)

    def shifting(**routing: Any) -> dict[str, Any]:
        routing = {"WaitIntervalInSeconds": 0, **routing}
        policy = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing}}
        return {"EndpointName": name, "EndpointConfigName": f"{name}-2", "DeploymentConfig": policy}

    size = {"Type": "INSTANCE_COUNT", "Value": 1}
    message = refused(sagemaker.update_endpoint, **shifting(Type="CANARY", CanarySize=size))
    assert "must have the same variant name" in message
    sagemaker.update_endpoint(**shifting(Type="ALL_AT_ONCE"))


# In a stack.


def scaled_stack(name: str, *, policy: str = "p", value: int = 600, **variant: Any) -> dict[str, Any]:
    """A serving stack with a target and a policy."""
    scaled = {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "DependsOn": "Endpoint",
        "Properties": {
            **target(name, variant.get("VariantName", "main")),
            "MinCapacity": "1",
            "MaxCapacity": 4,
            "ScheduledActions": [
                {
                    "ScheduledActionName": "day",
                    "Schedule": "cron(0 7 ? * MON-FRI *)",
                    "ScalableTargetAction": {"MinCapacity": "2"},
                }
            ],
        },
    }
    tracking = {
        "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
        "Properties": {
            "PolicyName": policy,
            "PolicyType": "TargetTrackingScaling",
            "ScalingTargetId": {"Ref": "Target"},
            "TargetTrackingScalingPolicyConfiguration": {**INVOCATIONS, "TargetValue": value},
        },
    }
    return {**serving(name, **variant), "Target": scaled, "Policy": tracking}


def test_a_stack_registers_and_deregisters(aws: Emulator, name: str) -> None:
    assert aws.deploy(name, scaled_stack(name)) == "CREATE_COMPLETE", aws.failures(name)
    scaling = aws.client("application-autoscaling")
    resource = {"ServiceNamespace": "sagemaker", "ResourceId": target(name)["ResourceId"]}
    [policy] = scaling.describe_scaling_policies(**resource)["ScalingPolicies"]
    assert policy["PolicyARN"] == aws.physical(name, "Policy")
    [action] = scaling.describe_scheduled_actions(**resource)["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 2}
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    assert scaling.describe_scaling_policies(**resource)["ScalingPolicies"] == []


def test_a_stack_cannot_move_a_scaled_endpoint_to_another_variant(aws: Emulator, name: str) -> None:
    assert aws.deploy(name, scaled_stack(name)) == "CREATE_COMPLETE"
    assert aws.deploy(name, scaled_stack(name, VariantName="other")) == "UPDATE_ROLLBACK_COMPLETE"
    assert "must be deregistered as scalable targets" in aws.failures(name)


SCALED_EVENT = "Application Auto Scaling Scaling Activity State Change"


def test_a_policy_makes_its_two_alarms_which_go_with_it(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    high, low = tracked.alarms["AlarmHigh"], tracked.alarms["AlarmLow"]
    assert (high["MetricName"], high["Threshold"], high["EvaluationPeriods"]) == ("InvocationsPerInstance", 600, 3)
    assert (low["Threshold"], low["ComparisonOperator"], low["EvaluationPeriods"]) == (540, "LessThanThreshold", 15)
    again = tracked.put_policy(TargetValue=700.0)
    assert sorted(again) == sorted(each["AlarmName"] for each in tracked.alarms.values())
    resource = {"ServiceNamespace": "sagemaker", "ResourceId": target(name)["ResourceId"]}
    [policy] = tracked.scaling.describe_scaling_policies(**resource)["ScalingPolicies"]
    assert sorted(alarm["AlarmName"] for alarm in policy["Alarms"]) == sorted(again)
    tracked.scaling.deregister_scalable_target(**target(name))
    assert tracked.alarms == {}


def test_instances_are_added_in_proportion_and_not_again_before_the_cooldown_is_over(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    assert tracked.invoked(1100, minutes=2) == 1, "three minutes above the target are needed"
    assert tracked.invoked(1100) == 2
    assert tracked.invoked(700) == 2, "within two minutes"
    assert tracked.invoked(700) == 3
    [newest, first] = tracked.scaling.describe_scaling_activities(
        ServiceNamespace="sagemaker", ResourceId=target(name)["ResourceId"]
    )["ScalingActivities"]
    assert (first["Description"], newest["StatusCode"]) == ("Setting desired instance count to 2.", "Successful")
    assert tracked.alarms["AlarmHigh"]["AlarmName"] in newest["Cause"]


def test_only_the_maximum_is_an_event_and_it_is_never_passed(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    inbox = Inbox(aws, name)
    resource = target(name)["ResourceId"]
    inbox.rule(name, {"source": ["aws.application-autoscaling"], "detail": {"resourceId": [resource]}})
    assert tracked.invoked(1200, minutes=3) == 2
    assert inbox.take() == []
    assert tracked.invoked(6000, minutes=2) == 4
    [event] = inbox.take()
    assert event["detail-type"] == SCALED_EVENT
    capacities = {name: event["detail"][name] for name in ("oldDesiredCapacity", "newDesiredCapacity", "scaledToMax")}
    assert capacities == {"oldDesiredCapacity": 2, "newDesiredCapacity": 4, "scaledToMax": True}
    assert tracked.invoked(6000, minutes=4) == 4
    assert inbox.take() == []


def test_a_deleted_endpoint_is_no_target(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    tracked.sagemaker.delete_endpoint(EndpointName=name)
    of = {"ServiceNamespace": "sagemaker", "ResourceIds": [target(name)["ResourceId"]]}
    assert tracked.scaling.describe_scalable_targets(**of)["ScalableTargets"] == []


@pytest.mark.parametrize(
    ("specification", "metric", "period"),
    [
        ({"CustomizedMetricSpecification": {**GPU, "Unit": "Percent"}}, "GPUUtilization", PERIOD),
        ({"PredefinedMetricSpecification": HIGH}, "ConcurrentRequestsPerModel", 10),
    ],
    ids=["of the instance", "high resolution"],
)
def test_each_kind_of_metric_has_its_alarms(
    aws: Emulator, name: str, specification: dict[str, Any], metric: str, period: int
) -> None:
    scaling = make_scaled(aws, name)
    made = scaling.put_scaling_policy(
        **target(name),
        PolicyName="p",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": 240.0, **specification},
    )["Alarms"]
    names = [each["AlarmName"] for each in made]
    found = aws.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    assert [(each["MetricName"], each["Period"]) for each in found] == [(metric, period)] * 2
    assert "ObjectNotFound" in refused(scaling.delete_scaling_policy, **target(name), PolicyName="other")
    scaling.delete_scaling_policy(**target(name), PolicyName="p")
    assert aws.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"] == []
