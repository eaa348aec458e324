"""Alarm state from the points of an evaluation range (M out of N, missing points), and the StateReason of it.

Source: CloudWatch user guide, "How alarm state is evaluated when data is missing" and "Avoiding premature transitions
to alarm state", whose tables are this module's tests. The guide's range is 5 points for 3 evaluation periods and
depends on more: here it is always two points longer than the evaluation periods (UNVERIFIED).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Result of an evaluation."""

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


def iso(seconds: float) -> str:
    """``2019-10-02T17:04:40.985+0000``."""
    at = datetime.fromtimestamp(seconds, tz=UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}+0000"


def sentence(alarm: dict[str, Any], verdict: Verdict, points: Mapping[int, float | None]) -> str:
    """StateReason of an alarm that changes: the points that decided, and what missing ones counted as.

    ``points``: those of the range by the beginning of their period, the oldest first.
    """
    filled, treatment = verdict.filled, alarm.get("TreatMissingData", "missing")
    if verdict.state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {filled} of the last {alarm['EvaluationPeriods']} datapoints unknown."
    deciding = [list(points.items())[at] for at in reversed(verdict.used)]
    shown = ", ".join(f"{each} ({datetime.fromtimestamp(time, tz=UTC):%d/%m/%y %H:%M:%S})" for time, each in deciding)
    missing = f" and {filled} missing, treated as {treatment}" if filled else ""
    return (
        f"Threshold Crossed: of the last {alarm['EvaluationPeriods']} datapoints [{shown}]{missing},"
        f" {alarm.get('DatapointsToAlarm', alarm['EvaluationPeriods'])} must be"
        f" {COMPARISONS[alarm['ComparisonOperator']][1]} the threshold ({alarm['Threshold']}) for ALARM;"
        f" now {verdict.state}."
    )


def period(alarm: dict[str, Any]) -> int:
    """The alarm's period in seconds; that of its metrics where it is on an expression."""
    if "Period" in alarm:
        return int(alarm["Period"])
    periods = [
        query.get("MetricStat", query)["Period"]
        for query in alarm["Metrics"]
        if "MetricStat" in query or "Period" in query
    ]
    return max(periods) if periods else 60
