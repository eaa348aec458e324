"""Target tracking of Application Auto Scaling: when a policy's alarms are on, how many instances it wants, cooldowns.

Documented: capacity changes in proportion to the metric, and both cooldowns (user guide, "How target tracking scaling
works"; API reference, TargetTrackingScalingPolicyConfiguration). Not published, so assumed: the number of periods of
both alarms, and the share of the target below which the low one is on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HIGH_PERIODS = 3
"""Periods above the target before AlarmHigh is on."""
LOW_PERIODS = 15
"""Periods below ``LOW_SHARE`` of the target before AlarmLow is on."""
LOW_SHARE = 0.9
DEFAULT_COOLDOWN_SECONDS = 300
"""ScaleOutCooldown and ScaleInCooldown of SageMaker variants."""


def alarm_high(values: Sequence[float], *, target: float) -> bool:
    """Whether every value is above the target."""
    return all(value > target for value in values)


def alarm_low(values: Sequence[float], *, target: float) -> bool:
    """Whether every value is low enough to remove instances."""
    return all(value < target * LOW_SHARE for value in values)


def desired_instances(instances: int, *, value: float, target: float) -> int:
    """In proportion to a per-instance metric, rounded up. ``instances``: those that ``value`` was measured with."""
    return math.ceil(instances * value / target)


@dataclass
class Cooldowns:
    """Cooldowns of one scalable target or policy. Times are seconds of the caller's clock."""

    # when the cooldown began
    scaled_out: float = -math.inf
    scaled_in: float = -math.inf
    added: int = 0  # instances that the scale-out in cooldown added

    def allow_scale_out(self, now: float, *, added: int, cooldown: float) -> bool:
        """Whether ``added`` more instances may come now.

        ScaleOutCooldown: capacity is not increased again "unless either a larger scale out is triggered or the cooldown
        period ends". AWS does not define larger; here: it adds more instances than the scale-out before.
        """
        return now - self.scaled_out >= cooldown or added > self.added

    def scale_out(self, now: float, *, added: int) -> None:
        """Begin the scale-out cooldown. "The scale-in cooldown period stops and doesn't complete" (ScaleInCooldown)."""
        self.scaled_out, self.scaled_in, self.added = now, -math.inf, added

    def allow_scale_in(self, now: float, *, cooldown: float) -> bool:
        """Whether instances may be removed now."""
        return now - self.scaled_in >= cooldown
