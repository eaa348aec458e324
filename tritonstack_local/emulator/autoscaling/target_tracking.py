"""Target tracking: two alarms a policy, and the capacity that follows them.

As Application Auto Scaling does it (user guide, "How target tracking scaling works"): the policy makes its alarms, any
policy whose *AlarmHigh* is on adds instances, and all whose scale-in is not disabled must have their *AlarmLow* on for
instances to be removed. The decision itself is ``tritonstack.aws.sagemaker_rules``, which the simulation uses too.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
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
from tritonstack_local.emulator.autoscaling.activities import Activities, ScalableTarget
from tritonstack_local.emulator.autoscaling.scalable import Predefined, Scalable, Scalables
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarms, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import arn, find, metric_of
from tritonstack_local.emulator.cloudwatch.metric_math import Span

Request = dict[str, Any]
CONFIGURATION = "TargetTrackingScalingPolicyConfiguration"
_HIGH, _LOW = 0, 1
"""Places of the two alarms in a policy's ``Alarms``."""


def put_alarms(policy: Mapping[str, Any], kind: Scalable) -> list[dict[str, str]]:
    """Make the alarms of a target tracking policy; ``Alarms`` of PutScalingPolicy's response."""
    configuration = policy[CONFIGURATION]
    metric = _metric(policy["ResourceId"], configuration, kind)
    is_predefined = "PredefinedMetricSpecification" in configuration
    low_periods = _predefined(configuration, kind).low_periods if is_predefined else LOW_PERIODS
    target = configuration["TargetValue"]
    sides = (
        ("AlarmHigh", "GreaterThanThreshold", target, HIGH_PERIODS),
        ("AlarmLow", "LessThanThreshold", target * LOW_SHARE, low_periods),
    )
    made = []
    for side, comparison, threshold, periods in sides:
        name = f"TargetTracking-{policy['ResourceId']}-{side}-{uuid.uuid4()}"
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


def _metric(resource: str, configuration: Mapping[str, Any], kind: Scalable) -> Request:
    """The metric of an alarm, as PutMetricAlarm takes it."""
    if "PredefinedMetricSpecification" in configuration:
        predefined = _predefined(configuration, kind)
        of = aws_names.dimension_list(kind.metric_dimensions(resource))
        what = {"Namespace": aws_names.SAGEMAKER, "MetricName": predefined.name, "Statistic": predefined.statistic}
        return {**what, "Dimensions": of, "Period": predefined.period}
    customized = configuration["CustomizedMetricSpecification"]
    names = ("Namespace", "MetricName", "Statistic", "Dimensions", "Unit")
    return {"Period": 60, **{name: customized[name] for name in names if name in customized}}


def _predefined(configuration: Mapping[str, Any], kind: Scalable) -> Predefined:
    return kind.predefined[configuration["PredefinedMetricSpecification"]["PredefinedMetricType"]]


def write_idle(policies: Iterable[dict[str, Any]], kinds: Scalables) -> None:
    """Zeros of the policies' own metrics, one for each whole period since the last call.

    "If a variant's traffic becomes zero, SageMaker automatically scales in to the minimum number of instances […]. In
    this case, SageMaker emits metrics with a value of zero" (developer guide, "Instructions for editing a scaling
    policy"). A zero changes neither the sum nor the maximum of a period with requests. Those of the last whole period
    may still come, so that it waits. What has no capacity has nothing that could write any.
    """
    for policy in policies:
        configuration = policy.get(CONFIGURATION) or {}
        if "PredefinedMetricSpecification" not in configuration:
            continue
        alarm = find(policy["Alarms"][_HIGH]["AlarmName"])
        kind = kinds[policy["ScalableDimension"]]
        predefined = _predefined(configuration, kind)
        if alarm is None or not predefined.idle_zeros:
            continue
        period = int(alarm["Period"])
        since, end = int(policy["CreationTime"] // period), int(clock.now() // period) - 1
        if kind.count(policy["ResourceId"]) == 0:
            policy["_idle"] = end
            continue
        zero = {"MetricName": alarm["MetricName"], "Dimensions": alarm["Dimensions"], "Value": 0.0}
        numbers = range(max(policy.get("_idle", since), end - predefined.low_periods), end)
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
    configuration: dict[str, Any] = policy[CONFIGURATION]
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
