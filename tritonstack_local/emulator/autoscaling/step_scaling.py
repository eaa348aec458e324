"""Step scaling: an alarm of the user's own triggers a policy, and the breach of its threshold picks the step.

Sources: Application Auto Scaling API reference (StepScalingPolicyConfiguration, StepAdjustment) and user guide, "How
step scaling works". "The alarm continues to invoke the action each minute" while it is on (CloudWatch user guide,
"Alarm actions").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tritonstack_local.emulator.autoscaling.activities import Activities, ScalableTarget
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import metric_of
from tritonstack_local.emulator.cloudwatch.metric_math import Span
from tritonstack_local.emulator.ministack_adapter import cloudwatch
from tritonstack_local.emulator.request_validation import RefusedError

CONFIGURATION = "StepScalingPolicyConfiguration"
EVERY_SECONDS = 60
"""How often an alarm that stays on triggers its policies."""
_API = "Application Auto Scaling API reference, StepScalingPolicyConfiguration"
Policy = dict[str, Any]


def check(configuration: Mapping[str, Any]) -> None:
    """Refuse steps that have no order: of ranges that overlap, leave a gap, or are empty."""
    steps = configuration.get("StepAdjustments") or []
    if not steps or "AdjustmentType" not in configuration:
        raise _refused("StepScalingPolicyConfiguration needs AdjustmentType and StepAdjustments")
    ranges = sorted(_bounds(step) for step in steps)
    if any(low >= high for low, high in ranges):
        raise _refused("The upper bound of a step adjustment must be greater than its lower bound")
    if any(before[1] != after[0] for before, after in itertools.pairwise(ranges)):
        raise _refused("The ranges of step adjustments must not overlap or have a gap")


def follow(target: ScalableTarget, policies: Iterable[Policy], *, count: int | None, activities: Activities) -> None:
    """Carry out the policies whose alarms are on; ``count``: the target's capacity, None while it may not be scaled."""
    for policy in policies:
        for alarm in _alarms_of(policy):
            if count is not None and alarm["StateValue"] == "ALARM" and _is_due(policy, alarm):
                policy["_triggered"][alarm["AlarmName"]] = clock.now()
                after = _capacity(policy, target, count=count, breach=_breach(alarm))
                if after != count and _is_allowed(policy, added=after - count):
                    cause = f"monitor alarm {alarm['AlarmName']} in state ALARM triggered policy {policy['PolicyName']}"
                    if activities.set_count(target, before=count, after=after, cause=cause):
                        policy["_scaled"], policy["_added"] = clock.now(), after - count
                    return


def _bounds(step: Mapping[str, Any]) -> tuple[float, float]:
    return step.get("MetricIntervalLowerBound", -math.inf), step.get("MetricIntervalUpperBound", math.inf)


def _alarms_of(policy: Policy) -> list[dict[str, Any]]:
    """The alarms that have the policy as an action."""
    named = [each for each in cloudwatch.alarms().values() if policy["PolicyARN"] in each.get("AlarmActions", [])]
    return [each for each in named if each.get("ActionsEnabled", True)]


def _is_due(policy: Policy, alarm: Mapping[str, Any]) -> bool:
    """Whether an alarm that is on triggers now: when it came on, and each minute from then on."""
    triggered = policy.setdefault("_triggered", {}).get(alarm["AlarmName"], -math.inf)
    return bool(clock.now() - triggered >= EVERY_SECONDS)


def _breach(alarm: dict[str, Any]) -> float:
    """How far the metric is beyond the alarm's threshold; 0 where it has no value of late."""
    period = int(alarm["Period"])
    end = int(clock.now() // period + 1) * period
    span = Span(start=end - (alarm["EvaluationPeriods"] + 1) * period, end=end, period=period)
    points = metrics.series(metric_of(alarm), span, alarm.get("Statistic", "Average"), label="").points
    return max(points.values(), default=alarm["Threshold"]) - float(alarm["Threshold"])


def _capacity(policy: Policy, target: ScalableTarget, *, count: int, breach: float) -> int:
    """The capacity that the step of a breach leads to, within the target's limits."""
    configuration = policy[CONFIGURATION]
    step = next((each for each in configuration["StepAdjustments"] if _holds(each, breach)), None)
    if step is None:
        return count
    adjustment = int(step["ScalingAdjustment"])
    match configuration["AdjustmentType"]:
        case "ExactCapacity":
            wanted = adjustment
        case "PercentChangeInCapacity":
            change = count * adjustment / 100
            rounded = math.trunc(change) if abs(change) >= 1 or change == 0 else int(math.copysign(1, change))
            least = configuration.get("MinAdjustmentMagnitude", 0)
            wanted = count + (rounded if abs(rounded) >= least else int(math.copysign(least, adjustment)))
        case _:
            wanted = count + adjustment
    return int(min(max(wanted, target["MinCapacity"]), target["MaxCapacity"]))


def _holds(step: Mapping[str, Any], breach: float) -> bool:
    """The lower bound is inclusive above the threshold, the upper one below it (StepAdjustment)."""
    low, high = _bounds(step)
    return low <= breach < high if breach >= 0 else low < breach <= high


def _is_allowed(policy: Policy, *, added: int) -> bool:
    """Whether the cooldown lets the change pass: "unless a larger scale out is triggered"."""
    cooldown = policy[CONFIGURATION].get("Cooldown", 0)
    over = clock.now() - policy.get("_scaled", -math.inf) >= cooldown
    return bool(over or added > policy.get("_added", 0))


def _refused(sentence: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=_API)
