"""Alarm state from the points of an evaluation range (M out of N, missing points), and the StateReason of it.

Source: CloudWatch user guide, "How alarm state is evaluated when data is missing" and "Avoiding premature transitions
to alarm state", whose tables are this module's tests. The guide's range is 5 points for 3 evaluation periods and
depends on more: here it is always two points longer than the evaluation periods (UNVERIFIED).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

EXTRA_POINTS = 2
OK, ALARM, INSUFFICIENT_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"
COMPARISONS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "GreaterThanOrEqualToThreshold": (operator.ge, "greater than or equal to"),
    "GreaterThanThreshold": (operator.gt, "greater than"),
    "LessThanThreshold": (operator.lt, "less than"),
    "LessThanOrEqualToThreshold": (operator.le, "less than or equal to"),
}
"""Comparison operators of static thresholds, and their words."""


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """When an alarm fires."""

    breaches: Callable[[float], bool]  # whether a value is beyond the threshold
    periods: int  # EvaluationPeriods, N
    to_alarm: int  # DatapointsToAlarm, M
    missing: str  # TreatMissingData

    @property
    def range_points(self) -> int:
        """How many points are looked at."""
        return self.periods + EXTRA_POINTS


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an evaluation finds."""

    state: str | None  # None where the alarm keeps its own
    used: tuple[int, ...]  # positions in the range of the points that decided, the oldest first
    filled: int  # how many missing points were filled in


def evaluate(points: Sequence[float | None], criteria: Criteria) -> Verdict:
    """The verdict on the points of the evaluation range, the oldest first, None where one is missing."""
    existing = [at for at, value in enumerate(points) if value is not None]
    used = tuple(existing[-criteria.periods :])
    filled = criteria.periods - len(used)
    breaching = [at for at in used if criteria.breaches(points[at] or 0.0)]
    return Verdict(state=_state(points, criteria, used=used, breaching=breaching), used=used, filled=filled)


def _state(
    points: Sequence[float | None], criteria: Criteria, *, used: Sequence[int], breaching: Sequence[int]
) -> str | None:
    filled = criteria.periods - len(used)
    if len(breaching) >= criteria.to_alarm:
        return ALARM
    if filled == 0 or criteria.missing == "notBreaching":
        return OK
    if criteria.missing == "breaching":
        return ALARM if len(breaching) + filled >= criteria.to_alarm else OK
    if len(breaching) < len(used):
        return OK
    if criteria.missing == "ignore":
        return None
    # Nothing but breaching points, too few of them: they suffice once the oldest is as old as M points would be.
    return ALARM if breaching and len(points) - breaching[0] >= criteria.to_alarm else INSUFFICIENT_DATA


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was looked at."""

    times: Sequence[int]  # the beginning of each period of the range, the oldest first
    points: Sequence[float | None]  # their values; None where one is missing
    verdict: Verdict  # what they mean

    def used(self) -> list[tuple[int, float]]:
        """Time and value of the points that decided, the newest first."""
        found = [(self.times[at], self.points[at] or 0.0) for at in self.verdict.used]
        return found[::-1]


def iso(seconds: float) -> str:
    """``2019-10-02T17:04:40.985+0000``."""
    at = datetime.fromtimestamp(seconds, tz=UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}+0000"


def sentence(alarm: dict[str, Any], seen: Observation, state: str) -> str:
    """StateReason of an alarm that goes to ``state``: the points that decided, and what missing ones counted as."""
    filled, treatment = seen.verdict.filled, alarm.get("TreatMissingData", "missing")
    if state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {filled} of the last {alarm['EvaluationPeriods']} datapoints unknown."
    shown = ", ".join(
        f"{value} ({datetime.fromtimestamp(time, tz=UTC):%d/%m/%y %H:%M:%S})" for time, value in seen.used()
    )
    missing = f" and {filled} missing, treated as {treatment}" if filled else ""
    return (
        f"Threshold Crossed: of the last {alarm['EvaluationPeriods']} datapoints [{shown}]{missing},"
        f" {alarm.get('DatapointsToAlarm', alarm['EvaluationPeriods'])} must be"
        f" {COMPARISONS[alarm['ComparisonOperator']][1]} the threshold ({alarm['Threshold']}) for ALARM; now {state}."
    )


def period(alarm: dict[str, Any]) -> int:
    """The alarm's period in seconds; that of its metrics where it is on an expression."""
    if "Period" in alarm:
        return int(alarm["Period"])
    periods = [query["MetricStat"]["Period"] for query in alarm["Metrics"] if "MetricStat" in query]
    return max(periods) if periods else 60
