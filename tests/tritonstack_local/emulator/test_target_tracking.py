"""Target tracking in the local AWS: a policy's alarms, more instances, the cooldown, and the event at the maximum."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Inbox, Watching
from tests.tritonstack_local.emulator.running import Emulator
from tests.tritonstack_local.emulator.test_scaling import INVOCATIONS, make_scaled, refused, target

SCALED_EVENT = "Application Auto Scaling Scaling Activity State Change"


class Tracked(Watching):
    """An endpoint of 1 to 4 instances with a policy: 600 calls a minute for each of them."""

    def __init__(self, aws: Emulator, name: str, **configuration: Any) -> None:
        super().__init__(aws, name)
        self.scaling = make_scaled(aws, name)
        self.sagemaker = aws.client("sagemaker")
        self.of = {"EndpointName": name, "VariantName": "main"}
        self.put_policy(**configuration)

    def put_policy(self, **configuration: Any) -> list[str]:
        """Put the policy; the names of its alarms."""
        made = self.scaling.put_scaling_policy(
            **target(self.name),
            PolicyName="calls",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={**INVOCATIONS, "ScaleOutCooldown": 120, **configuration},
        )
        return [alarm["AlarmName"] for alarm in made["Alarms"]]

    def called(self, each: int, *, minutes: int = 1) -> int:
        """So many calls of each instance in each of some minutes; the number of instances then."""
        for _ in range(minutes):
            datum = {
                "MetricName": "InvocationsPerInstance",
                "Timestamp": self.told_start + 1,
                "Dimensions": [{"Name": key, "Value": value} for key, value in self.of.items()],
                "Value": float(each),
            }
            self.cloudwatch.put_metric_data(Namespace="AWS/SageMaker", MetricData=[datum])
            self.pass_minutes()
        return self.instances

    @property
    def instances(self) -> int:
        [variant] = self.sagemaker.describe_endpoint(EndpointName=self.name)["ProductionVariants"]
        return int(variant["DesiredInstanceCount"])

    @property
    def alarms(self) -> dict[str, dict[str, Any]]:
        """The policy's alarms by their kind."""
        prefix = f"TargetTracking-{target(self.name)['ResourceId']}-"
        found = self.cloudwatch.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
        return {each["AlarmName"].removeprefix(prefix).partition("-")[0]: each for each in found}


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
    assert tracked.called(1100, minutes=2) == 1, "three minutes above the target are needed"
    assert tracked.called(1100) == 2
    assert tracked.called(700) == 2, "within two minutes"
    assert tracked.called(700) == 3
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
    assert tracked.called(1200, minutes=3) == 2
    assert inbox.take() == []
    assert tracked.called(6000, minutes=2) == 4
    [event] = inbox.take()
    assert event["detail-type"] == SCALED_EVENT
    told = {name: event["detail"][name] for name in ("oldDesiredCapacity", "newDesiredCapacity", "scaledToMax")}
    assert told == {"oldDesiredCapacity": 2, "newDesiredCapacity": 4, "scaledToMax": True}
    assert tracked.called(6000, minutes=4) == 4
    assert inbox.take() == []


def test_load_above_the_target_never_takes_instances_away(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    assert tracked.called(6000, minutes=3) == 4
    tracked.scaling.register_scalable_target(**target(name), MaxCapacity=2)
    assert tracked.called(6000, minutes=4) == 4


def test_what_a_rule_hands_on_is_counted_by_its_name(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    Inbox(aws, name).rule(name, {"detail": {"resourceId": [target(name)["ResourceId"]]}})
    tracked.called(6000, minutes=4)
    tracked.put(
        Namespace="AWS/Events", MetricName="Invocations", Threshold=0, Dimensions=[{"Name": "RuleName", "Value": name}]
    )
    assert tracked.state() == "ALARM"


def test_too_little_load_takes_no_instance_away(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    tracked.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=name, DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredInstanceCount": 3}]
    )
    assert tracked.called(1, minutes=16) == 3
    assert tracked.alarms["AlarmLow"]["StateValue"] == "ALARM"


@pytest.mark.parametrize(
    ("specification", "metric", "period"),
    [
        (
            {
                "CustomizedMetricSpecification": {
                    "Namespace": "/aws/sagemaker/Endpoints",
                    "MetricName": "GPUUtilization",
                    "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "v"}],
                    "Statistic": "Average",
                    "Unit": "Percent",
                }
            },
            "GPUUtilization",
            PERIOD,
        ),
        (
            {
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
                }
            },
            "ConcurrentRequestsPerModel",
            10,
        ),
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
