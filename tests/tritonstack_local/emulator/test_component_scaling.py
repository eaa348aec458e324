"""Copies of inference components: target tracking down to zero, and the alarm and step that bring one back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator, wait_until
from tests.tritonstack_local.emulator.scaled_variants import make_scaled, refused, target
from tests.tritonstack_local.emulator.test_components import (
    counts,
    instances,
    make_component,
    make_endpoint,
    no_component_stays,
    set_copies,
)

__all__ = ["no_component_stays"]  # a fixture of every test here

ONE_MORE = {
    "AdjustmentType": "ChangeInCapacity",
    "MetricAggregationType": "Maximum",
    "Cooldown": 900,
    "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
}
CONCURRENCY = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"


def copies_of(component: str) -> dict[str, str]:
    """The members that name a component as a scalable target."""
    return {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"inference-component/{component}",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }


class Sleeping(Watching):
    """A component of 0 to 4 copies with the policies that put it to sleep and wake it."""

    def __init__(self, aws: Emulator, name: str) -> None:
        super().__init__(aws, name)
        make_endpoint(aws, name, InstanceType="ml.g5.xlarge")
        self.component = f"{name}-a"
        make_component(aws, self.component, of=name)
        self.scaling = aws.client("application-autoscaling")
        self.scaling.register_scalable_target(**copies_of(self.component), MinCapacity=0, MaxCapacity=4)
        self.put_policy("concurrency", TargetTrackingScalingPolicyConfiguration=tracking(CONCURRENCY, 4.0))
        wake = self.put_policy("wake", StepScalingPolicyConfiguration=ONE_MORE)
        assert wake["Alarms"] == []
        self.wake_alarm = f"{self.component}-wake"
        self.cloudwatch.put_metric_alarm(
            AlarmName=self.wake_alarm,
            AlarmActions=[wake["PolicyARN"]],
            Namespace="AWS/SageMaker",
            MetricName="NoCapacityInvocationFailures",
            Dimensions=[{"Name": "InferenceComponentName", "Value": self.component}],
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1.0,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
        )

    def put_policy(self, policy: str, **configuration: Any) -> Any:
        kind = "StepScaling" if "StepScalingPolicyConfiguration" in configuration else "TargetTrackingScaling"
        return self.scaling.put_scaling_policy(
            **copies_of(self.component), PolicyName=policy, PolicyType=kind, **configuration
        )

    def called(self, metric: str, value: float, *, seconds_ago: int = 0) -> None:
        """One value of a component's metric, now, in a caller's time (``shifted_start``)."""
        self.cloudwatch.put_metric_data(
            Namespace="AWS/SageMaker",
            MetricData=[
                {
                    "MetricName": metric,
                    "Dimensions": [{"Name": "InferenceComponentName", "Value": self.component}],
                    "Timestamp": self.now() - self._ahead() // 60 * 60 - seconds_ago,
                    "Value": value,
                }
            ],
        )

    def busy(self, concurrent: float) -> None:
        """A minute with so many concurrent requests a copy, measured each ten seconds."""
        for seconds in range(0, 60, 10):
            self.called("ConcurrentRequestsPerCopy", concurrent, seconds_ago=seconds)
        self.emulator.advance(10)

    @property
    def copies(self) -> int:
        return counts(self.emulator, self.component)[1]


def tracking(metric: str, value: float) -> dict[str, Any]:
    return {"TargetValue": value, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}}


@pytest.fixture
def sleeping(aws: Emulator, name: str) -> Sleeping:
    return Sleeping(aws, name)


def test_fifteen_idle_minutes_put_a_component_to_sleep_and_its_instance_later(sleeping: Sleeping) -> None:
    sleeping.pass_minutes(14)
    assert sleeping.copies == 1
    sleeping.pass_minutes(3)
    assert sleeping.copies == 0
    sleeping.pass_minutes(22)
    assert instances(sleeping.emulator, sleeping.name) == 0


def test_a_refused_request_wakes_one_copy_and_ten_minutes_of_them_no_second(sleeping: Sleeping) -> None:
    set_copies(sleeping.emulator, sleeping.component, 0)
    for minute in range(10):
        sleeping.called("NoCapacityInvocationFailures", 5.0)
        sleeping.pass_minutes(1)
        if minute > 1:
            assert sleeping.copies == 1, minute


def test_an_alarm_that_is_still_on_wakes_what_was_put_to_sleep_by_hand(sleeping: Sleeping) -> None:
    set_copies(sleeping.emulator, sleeping.component, 0)
    sleeping.called("NoCapacityInvocationFailures", 1.0)
    sleeping.pass_minutes(1)
    assert sleeping.copies == 1
    sleeping.scaling.delete_scaling_policy(**copies_of(sleeping.component), PolicyName="concurrency")
    set_copies(sleeping.emulator, sleeping.component, 0)
    for _ in range(17):  # the cooldown, and a little more
        sleeping.called("NoCapacityInvocationFailures", 1.0)
        sleeping.pass_minutes(1)
    assert sleeping.copies == 1


def test_concurrent_requests_add_copies_and_none_leave_zero_by_tracking(sleeping: Sleeping) -> None:
    sleeping.busy(12.0)
    wait_until(lambda: sleeping.copies, lambda seen: seen == 3)
    set_copies(sleeping.emulator, sleeping.component, 0)
    sleeping.pass_minutes(1)
    sleeping.busy(12.0)
    sleeping.pass_minutes(1)
    assert sleeping.copies == 0


def test_invocations_alone_never_put_a_component_to_sleep(aws: Emulator, name: str) -> None:
    made = Sleeping(aws, name)
    made.scaling.delete_scaling_policy(**copies_of(made.component), PolicyName="concurrency")
    by_calls = tracking("SageMakerInferenceComponentInvocationsPerCopy", 600.0)
    made.put_policy("calls", TargetTrackingScalingPolicyConfiguration=by_calls)
    made.pass_minutes(40)
    assert made.copies == 1


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "needs AdjustmentType and StepAdjustments"),
        ([(0, 0, 1)], "upper bound of a step adjustment must be greater"),
        ([(0, 10, 1), (5, None, 2)], "must not overlap or have a gap"),
        ([(0, 10, 1), (20, None, 2)], "must not overlap or have a gap"),
    ],
    ids=["none", "empty", "overlap", "gap"],
)
def test_steps_without_an_order_are_refused(
    sleeping: Sleeping, steps: list[tuple[float | None, float | None, int]], words: str
) -> None:
    names = ("MetricIntervalLowerBound", "MetricIntervalUpperBound", "ScalingAdjustment")
    given = [{n: v for n, v in zip(names, step, strict=True) if v is not None} for step in steps]
    with pytest.raises(ClientError, match=words):
        sleeping.put_policy("wake", StepScalingPolicyConfiguration={**ONE_MORE, "StepAdjustments": given})


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("ChangeInCapacity", 2, 4),
        ("ExactCapacity", 1, 1),
        ("ExactCapacity", 9, 4),
        ("PercentChangeInCapacity", 50, 3),
        ("PercentChangeInCapacity", 10, 3),
        ("ChangeInCapacity", -5, 1),
    ],
)
def test_a_step_changes_the_capacity_by_its_kind_within_the_limits(
    aws: Emulator, name: str, kind: str, value: int, expected: int
) -> None:
    watched, scaling = Watching(aws, name), make_scaled(aws, name)
    set_instances(aws, name, 2)
    policy = scaling.put_scaling_policy(
        **target(name),
        PolicyName="steps",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": kind,
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": value}],
        },
    )
    watched.cloudwatch.put_metric_alarm(
        AlarmName=name,
        AlarmActions=[policy["PolicyARN"]],
        Namespace=name,
        MetricName="m",
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        TreatMissingData="notBreaching",
    )
    watched.cloudwatch.put_metric_data(
        Namespace=name, MetricData=[{"MetricName": "m", "Timestamp": time.time(), "Value": 3.0}]
    )
    watched.pass_minutes(1)
    assert instances(aws, name) == expected


def set_instances(aws: Emulator, name: str, count: int) -> None:
    aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=name, DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredInstanceCount": count}]
    )


def test_a_component_that_is_not_there_is_no_target(aws: Emulator, name: str) -> None:
    scaling = aws.client("application-autoscaling")
    message = refused(scaling.register_scalable_target, **copies_of(name), MinCapacity=0, MaxCapacity=1)
    assert f"Inference component does not exist: inference-component/{name}" in message
