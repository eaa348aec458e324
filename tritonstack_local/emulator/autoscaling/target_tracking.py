"""Target tracking of endpoint variants: two alarms a policy, and the instance count that follows them.

As Application Auto Scaling does it (user guide, "How target tracking scaling works"): the policy makes its alarms, any
policy whose *AlarmHigh* is on adds instances, and all whose scale-in is not disabled must have their *AlarmLow* on for
instances to be removed. The decision itself is ``tritonstack.aws.sagemaker_rules``, which the simulation uses too.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonstack import aws_names
from tritonstack.aws.sagemaker_rules import (
    DEFAULT_COOLDOWN_SECONDS,
    HIGH_PERIODS,
    LOW_PERIODS,
    LOW_SHARE,
    Cooldowns,
    desired_instances,
    wanted_instances,
)
from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarms, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import iso
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import arn, find, metric_of
from tritonstack_local.emulator.cloudwatch.metric_math import Span
from tritonstack_local.emulator.ministack_adapter.core import account_region_table
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.fleets import LIMIT

Request = dict[str, Any]
_PREDEFINED = {
    aws_names.PREDEFINED_INVOCATIONS_PER_INSTANCE: (aws_names.INVOCATIONS_PER_INSTANCE, "Sum", 60),
    # Which statistic AWS's alarm reads is UNVERIFIED.
    aws_names.PREDEFINED_CONCURRENT_REQUESTS: (aws_names.CONCURRENT_REQUESTS_PER_MODEL, "Maximum", 10),
}
_HIGH, _LOW = 0, 1
"""Places of the two alarms in a policy's ``Alarms``."""


def put_alarms(policy: Mapping[str, Any]) -> list[dict[str, str]]:
    """Make the alarms of a target tracking policy of an endpoint variant; ``Alarms`` of PutScalingPolicy's response."""
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    metric = _metric(policy["ResourceId"], configuration)
    target = configuration["TargetValue"]
    kinds = (
        ("AlarmHigh", "GreaterThanThreshold", target, HIGH_PERIODS),
        ("AlarmLow", "LessThanThreshold", target * LOW_SHARE, LOW_PERIODS),
    )
    made = []
    for kind, comparison, threshold, periods in kinds:
        name = f"TargetTracking-{policy['ResourceId']}-{kind}-{uuid.uuid4()}"
        alarms.put_metric_alarm(
            {
                "AlarmName": name,
                "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {policy['PolicyARN']}.",
                "AlarmActions": [policy["PolicyARN"]],
                "ComparisonOperator": comparison,
                "Threshold": threshold,
                "EvaluationPeriods": periods,
                **metric,
            }
        )
        made.append({"AlarmName": name, "AlarmARN": arn(name)})
    return made


def drop_alarms(policy: Mapping[str, Any]) -> None:
    """Delete the alarms of a policy that is deleted or put again."""
    alarms.delete_alarms({"AlarmNames": [alarm["AlarmName"] for alarm in policy.get("Alarms", [])]})


def _metric(resource: str, configuration: Mapping[str, Any]) -> Request:
    """The metric of an alarm, as PutMetricAlarm takes it."""
    _, endpoint, _, variant = resource.split("/")
    if "PredefinedMetricSpecification" in configuration:
        kind = configuration["PredefinedMetricSpecification"]["PredefinedMetricType"]
        name, stat, period = _PREDEFINED[kind]
        of = aws_names.dimension_list(aws_names.variant_dimensions(endpoint, variant))
        what = {"Namespace": aws_names.SAGEMAKER, "MetricName": name, "Statistic": stat}
        return {**what, "Dimensions": of, "Period": period}
    customized = configuration["CustomizedMetricSpecification"]
    names = ("Namespace", "MetricName", "Statistic", "Dimensions", "Unit")
    return {"Period": 60, **{name: customized[name] for name in names if name in customized}}


def write_idle(policies: Sequence[dict[str, Any]]) -> None:
    """Zeros of the policies' own metrics, one for each whole period since the last call.

    "If a variant's traffic becomes zero, SageMaker automatically scales in to the minimum number of instances […]. In
    this case, SageMaker emits metrics with a value of zero" (developer guide, "Instructions for editing a scaling
    policy"). A zero changes neither the sum nor the maximum of a period with requests. Those of the last whole period
    may still come, so that it waits.
    """
    for policy in policies:
        alarm = find(policy["Alarms"][_HIGH]["AlarmName"])
        if alarm is None or "PredefinedMetricSpecification" not in _configuration(policy):
            continue
        period = int(alarm["Period"])
        end = int(clock.now() // period) - 1
        zero = {"MetricName": alarm["MetricName"], "Dimensions": alarm["Dimensions"], "Value": 0.0}
        numbers = range(max(policy.get("_idle", end), end - LOW_PERIODS), end)
        metrics.write(alarm["Namespace"], [{**zero, "Timestamp": number * period} for number in numbers])
        policy["_idle"] = end


def follow(target: ScalableTarget, policies: Sequence[dict[str, Any]], *, count: int, activities: Activities) -> None:
    """Add or remove instances by the alarms of a target's policies; ``count``: its instances now."""
    removing = [policy for policy in policies if not _configuration(policy).get("DisableScaleIn")]
    more = {policy["PolicyName"]: _wish(policy, _HIGH, target=target, count=count) for policy in policies}
    fewer = {policy["PolicyName"]: _wish(policy, _LOW, target=target, count=count) for policy in removing}
    wanted = wanted_instances(count, more=list(more.values()), fewer=list(fewer.values()))
    if wanted == count:
        return
    out = wanted > count
    after = min(wanted, target["MaxCapacity"]) if out else max(wanted, target["MinCapacity"])
    wishes, side = (more, _HIGH) if out else (fewer, _LOW)
    policy = next(each for each in policies if wishes.get(each["PolicyName"]) == wanted)
    cooldowns: Cooldowns = target.setdefault("_cooldowns", Cooldowns())
    cooldown = _configuration(policy).get(f"Scale{'Out' if out else 'In'}Cooldown", DEFAULT_COOLDOWN_SECONDS)
    now = clock.now()
    if out:
        allowed = after > count and cooldowns.allow_scale_out(now, added=after - count, cooldown=cooldown)
    else:
        allowed = after < count and cooldowns.allow_scale_in(now, cooldown=cooldown)
    cause = (
        f"monitor alarm {policy['Alarms'][side]['AlarmName']} in state ALARM triggered policy {policy['PolicyName']}"
    )
    if not allowed or not activities.set_count(target, before=count, after=after, cause=cause):
        return
    if out:
        cooldowns.scale_out(now, added=after - count)
    else:
        cooldowns.scaled_in = now


def _configuration(policy: Mapping[str, Any]) -> dict[str, Any]:
    configuration: dict[str, Any] = policy["TargetTrackingScalingPolicyConfiguration"]
    return configuration


def _wish(policy: Mapping[str, Any], side: int, *, target: ScalableTarget, count: int) -> int | None:
    """Instances that a policy demands; None where its alarm is off, or was measured with another number."""
    alarm = find(policy["Alarms"][side]["AlarmName"])
    if alarm is None or alarm["StateValue"] != "ALARM":
        return None
    period = int(alarm["Period"])
    end = int(clock.now() // period * period)
    span = Span(start=end - HIGH_PERIODS * period, end=end, period=period)
    series = metrics.series(metric_of(alarm), span, alarm["Statistic"], label="")
    measured_at, value = max(series.points.items(), default=(0.0, 0.0))
    if not series.points or measured_at < target.get("_scaled_at", 0.0):
        return None
    return desired_instances(count, value=value, target=_configuration(policy)["TargetValue"])


# --- Scaling activities: changes of instance counts and limits, as DescribeScalingActivities lists them ---

ScalableTarget = dict[str, Any]
_AGAIN_SECONDS = 60
"""After a failed activity: CloudWatch looks at an alarm once a minute, and a failed activity starts no cooldown."""
_KEY = ("ServiceNamespace", "ResourceId", "ScalableDimension")
logger = logging.getLogger("tritonstack.emulator.scaling")


class Activities:
    """Changes the instance counts of scalable targets, and lists the changes.

    The sentences are those of the user guide ("View scaling activities for a specified service") and, of a failure, of
    the SageMaker developer guide ("Check the status of a scaling activity").
    """

    def __init__(self, *, scale: Callable[[Request], Any], failure: Callable[[str], str | None]) -> None:
        """``scale``: UpdateEndpointWeightsAndCapacities. ``failure``: an endpoint's FailureReason, by its name."""
        self._scale, self._failure = scale, failure
        self._done = account_region_table()

    def set_count(self, target: ScalableTarget, *, before: int, after: int, cause: str) -> bool:
        """Give the target's variant another number of instances; whether it has it now."""
        _, endpoint, _, variant = target["ResourceId"].split("/")
        began = clock.now()
        try:
            wanted = [{"VariantName": variant, "DesiredInstanceCount": after}]
            self._scale({"EndpointName": endpoint, "DesiredWeightsAndCapacities": wanted})
            failed = self._failure(endpoint)
        except RefusedError as refusal:
            if refusal.code != LIMIT:  # an update began meanwhile: the next look is after it
                logger.warning("%s is not scaled: %s", target["ResourceId"], refusal)
                return False
            failed = str(refusal)
        self.add(target, f"desired instance count to {after}", cause=cause, began=began, failed=failed, end=".")
        target["_failed_at" if failed else "_scaled_at"] = began
        if failed is None and before < after == target["MaxCapacity"]:
            _emit_scaled_to_max(target, before=before, began=began)
        return failed is None

    def add(
        self, target: ScalableTarget, what: str, *, cause: str, began: float, failed: str | None = None, end: str = ""
    ) -> None:
        """List an activity: ``what`` was set to which value, and why it failed if it did."""
        done = f"Successfully set {what}" + (". Change successfully fulfilled by sagemaker." if end else "")
        if failed is not None:
            logger.warning("%s is not scaled: %s", target["ResourceId"], failed)
        identity = str(uuid.uuid4())
        self._done[identity] = {
            "ActivityId": identity,
            **{name: target[name] for name in _KEY},
            "Description": f"Setting {what}{end}",
            "Cause": cause,
            "StartTime": began,
            "EndTime": clock.now(),
            "StatusCode": "Successful" if failed is None else "Failed",
            "StatusMessage": done if failed is None else f"Failed to set {what}. Reason: {failed}",
        }

    def describe_scaling_activities(self, request: Request) -> dict[str, Any]:
        """DescribeScalingActivities, the newest first, in one page."""
        wanted = {name: request[name] for name in _KEY if name in request}
        found = [activity for activity in self._done.values() if wanted.items() <= activity.items()]
        return {"ScalingActivities": found[::-1]}


def failed_lately(target: ScalableTarget) -> bool:
    """Whether an activity of the target failed so recently that it is not tried again."""
    return bool(clock.now() < target.get("_failed_at", -math.inf) + _AGAIN_SECONDS)


def _emit_scaled_to_max(target: Mapping[str, Any], *, before: int, began: float) -> None:
    """The one event of Application Auto Scaling: "Event for state change: scaled to max" (its user guide)."""
    service_events.emit(
        "aws.application-autoscaling",
        "Application Auto Scaling Scaling Activity State Change",
        {
            "startTime": iso(began),
            "endTime": iso(clock.now()),
            "newDesiredCapacity": target["MaxCapacity"],
            "oldDesiredCapacity": before,
            **{name[0].lower() + name[1:]: target[name] for name in ("MinCapacity", "MaxCapacity", *_KEY)},
            "statusCode": "Successful",
            "scaledToMax": True,
            "direction": "scale-out",
        },
        [],
    )
