"""Target tracking of endpoint variants: two alarms a policy, and more instances while the higher one is on.

As Application Auto Scaling does it (user guide, "How target tracking scaling works"): the policy makes its alarms, and
the number of instances grows in proportion to what is measured, at most to the target's maximum. *AlarmLow* is made and
described, and removes nothing here: a local endpoint keeps what it was given. The decision itself is
``tritonstack.sagemaker_rules``, which the simulation uses too.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region, request_scope

from tritonstack import aws_names
from tritonstack.sagemaker_rules import (
    DEFAULT_COOLDOWN_SECONDS,
    HIGH_PERIODS,
    LOW_PERIODS,
    LOW_SHARE,
    Cooldowns,
    desired_instances,
)
from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarms, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import iso
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import arn, drop, find, metric_of, scopes
from tritonstack_local.emulator.cloudwatch.metric_math import Span, statistic
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.fleets import LIMIT

ALARM_PREFIX = "TargetTracking-"
"""So begin the names of the alarms that policies make."""
Request = dict[str, Any]
_PREDEFINED = {
    aws_names.PREDEFINED_INVOCATIONS_PER_INSTANCE: (aws_names.INVOCATIONS_PER_INSTANCE, "Sum", 60),
    # Which statistic AWS's alarm reads is UNVERIFIED.
    aws_names.PREDEFINED_CONCURRENT_REQUESTS: (aws_names.CONCURRENT_REQUESTS_PER_MODEL, "Maximum", 10),
}
_AGAIN_SECONDS = 60
"""After a failed activity: CloudWatch looks at an alarm once a minute, and a failed activity starts no cooldown."""
logger = logging.getLogger("tritonstack.emulator.scaling")


def put_alarms(policy: Mapping[str, Any]) -> list[dict[str, str]]:
    """Make the alarms of a target tracking policy of an endpoint variant; ``Alarms`` of PutScalingPolicy's answer."""
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    metric = _metric(policy["ResourceId"], configuration)
    target = configuration["TargetValue"]
    kinds = (
        ("AlarmHigh", "GreaterThanThreshold", target, HIGH_PERIODS),
        ("AlarmLow", "LessThanThreshold", target * LOW_SHARE, LOW_PERIODS),
    )
    made = []
    for kind, comparison, threshold, periods in kinds:
        name = f"{ALARM_PREFIX}{policy['ResourceId']}-{kind}-{uuid.uuid4()}"
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
    with metrics.lock:
        for alarm in policy.get("Alarms", []):
            drop(alarm["AlarmName"])


def _metric(resource: str, configuration: Mapping[str, Any]) -> Request:
    """What an alarm looks at, as PutMetricAlarm takes it."""
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


class TargetTracking:
    """Adds instances while a policy's AlarmHigh is on."""

    def __init__(
        self,
        *,
        policies: Callable[[], list[dict[str, Any]]],  # those of the calling context's account and region
        target: Callable[[Mapping[str, Any]], dict[str, Any]],  # the scalable target of a policy
        # desired instances of a variant of an endpoint; None where it is not InService
        count: Callable[[str, str], int | None],
        scale: Callable[[Request], Any],  # UpdateEndpointWeightsAndCapacities
        failure: Callable[[str], str | None],  # an endpoint's FailureReason
    ) -> None:
        """What it works on."""
        self._policies, self._target, self._count, self._scale = policies, target, count, scale
        self._failure = failure
        self._cooldowns: defaultdict[str, Cooldowns] = defaultdict(Cooldowns)
        self._failed_at: dict[str, float] = {}
        self._activities: list[dict[str, Any]] = []

    def look(self) -> None:
        """Scale where an alarm is on; called after each evaluation of the alarms."""
        for account, region in list(scopes()):
            with request_scope(account, region):
                for policy in self._policies():
                    self._follow(policy)

    def clear(self) -> None:
        """Forget every activity."""
        self._cooldowns.clear()
        self._failed_at.clear()
        self._activities.clear()

    def describe_activities(self, request: Request) -> dict[str, Any]:
        """DescribeScalingActivities, the newest first, in one page."""
        scope = f":{get_region()}:{get_account_id()}:"
        wanted = {name: request[name] for name in ("ResourceId", "ScalableDimension") if name in request}
        found = [
            {name: value for name, value in activity.items() if name != "_policy"}
            for activity in reversed(self._activities)
            if scope in activity["_policy"]
            and activity["ServiceNamespace"] == request["ServiceNamespace"]
            and wanted.items() <= activity.items()
        ]
        return {"ScalingActivities": found}

    def _follow(self, policy: dict[str, Any]) -> None:
        alarm = find(policy["Alarms"][0]["AlarmName"])
        if alarm is None or alarm["StateValue"] != "ALARM":
            return
        configuration = policy["TargetTrackingScalingPolicyConfiguration"]
        if clock.now() < self._failed_at.get(policy["PolicyARN"], -math.inf) + _AGAIN_SECONDS:
            return
        _, endpoint, _, variant = policy["ResourceId"].split("/")
        before, newest = self._count(endpoint, variant), _newest(alarm)
        if before is None or newest is None:
            return
        measured_at, measured = newest
        cooldowns = self._cooldowns[policy["PolicyARN"]]
        if measured_at < cooldowns.scaled_out:  # measured with fewer instances
            return
        target = self._target(policy)
        wanted = desired_instances(before, value=measured, target=configuration["TargetValue"])
        after = min(wanted, target["MaxCapacity"])
        cooldown = configuration.get("ScaleOutCooldown", DEFAULT_COOLDOWN_SECONDS)
        if after > before and cooldowns.allow_scale_out(clock.now(), added=after - before, cooldown=cooldown):
            self._scale_out(policy, target=target, before=before, after=after)

    def _scale_out(self, policy: dict[str, Any], *, target: dict[str, Any], before: int, after: int) -> None:
        _, endpoint, _, variant = policy["ResourceId"].split("/")
        began = clock.now()
        try:
            wanted = [{"VariantName": variant, "DesiredInstanceCount": after}]
            self._scale({"EndpointName": endpoint, "DesiredWeightsAndCapacities": wanted})
            failed = self._failure(endpoint)
        except RefusedError as refusal:
            if refusal.code != LIMIT:  # an update began meanwhile: the next look is after it
                logger.warning("%s is not scaled: %s", policy["ResourceId"], refusal)
                return
            failed = str(refusal)
        of = {name: policy[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
        # The sentence of a failure is that of the SageMaker developer guide, "Check the status of a scaling activity".
        status = {"StatusCode": "Successful"}
        if failed is not None:
            message = f"Failed to set desired instance count to {after}. Reason: {failed}"
            status = {"StatusCode": "Failed", "StatusMessage": message}
        self._activities.append(
            {
                "ActivityId": str(uuid.uuid4()),
                **of,
                "Description": f"Setting desired instance count to {after}.",
                "Cause": f"monitor alarm {policy['Alarms'][0]['AlarmName']} in state ALARM triggered policy "
                f"{policy['PolicyName']}",
                "StartTime": began,
                "EndTime": clock.now(),
                **status,
                "_policy": policy["PolicyARN"],
            }
        )
        if failed is not None:
            logger.warning("%s is not scaled: %s", policy["ResourceId"], failed)
            self._failed_at[policy["PolicyARN"]] = began
            return
        self._cooldowns[policy["PolicyARN"]].scale_out(began, added=after - before)
        if after == target["MaxCapacity"]:
            _emit_scaled_to_max(of, target=target, before=before, began=began)


def _newest(alarm: Mapping[str, Any]) -> tuple[float, float] | None:
    """The newest value of an alarm's metric within its evaluation periods, after the start of its period in seconds."""
    period = int(alarm["Period"])
    end = int(clock.now() // period * period)
    span = Span(start=end - HIGH_PERIODS * period, end=end, period=period)
    series = metrics.series(metric_of(dict(alarm)), span, statistic(alarm["Statistic"]), label="")
    return max(series.points.items(), default=None)


def _emit_scaled_to_max(of: dict[str, str], *, target: Mapping[str, Any], before: int, began: float) -> None:
    """The one event of Application Auto Scaling: "Event for state change: scaled to max" (its user guide)."""
    service_events.emit(
        "aws.application-autoscaling",
        "Application Auto Scaling Scaling Activity State Change",
        {
            "startTime": iso(began),
            "endTime": iso(clock.now()),
            "newDesiredCapacity": target["MaxCapacity"],
            "oldDesiredCapacity": before,
            "minCapacity": target["MinCapacity"],
            "maxCapacity": target["MaxCapacity"],
            "resourceId": of["ResourceId"],
            "scalableDimension": of["ScalableDimension"],
            "serviceNamespace": of["ServiceNamespace"],
            "statusCode": "Successful",
            "scaledToMax": True,
            "direction": "scale-out",
        },
        [],
    )
