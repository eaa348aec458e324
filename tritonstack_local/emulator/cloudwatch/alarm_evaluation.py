"""Alarm state from the points of an evaluation range (M out of N, missing points), and the StateReason of it.

Source: CloudWatch user guide, "How alarm state is evaluated when data is missing" and "Avoiding premature transitions
to alarm state", whose tables are this module's tests. The guide's range is 5 points for 3 evaluation periods and
depends on more: here it is always two points longer than the evaluation periods (UNVERIFIED).
"""

from __future__ import annotations

import json
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
TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")


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


# Source: the events shown in CloudWatch user guide, "Alarm events and EventBridge". The sentences for missing points
# are those that CloudWatch's users report (UNVERIFIED).
_TREATED = {"breaching": "Breaching", "notBreaching": "NonBreaching"}


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was looked at, and when."""

    times: Sequence[int]  # the beginning of each period of the range, the oldest first
    points: Sequence[float | None]  # their values; None where one is missing
    verdict: Verdict  # what they mean
    at: float  # seconds since the epoch

    def used(self) -> list[tuple[int, float]]:
        """Time and value of the points that decided, the newest first."""
        found = [(self.times[at], self.points[at] or 0.0) for at in self.verdict.used]
        return found[::-1]


def iso(seconds: float) -> str:
    """``2019-10-02T17:04:40.985+0000``."""
    at = datetime.fromtimestamp(seconds, tz=UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}+0000"


def sentence(alarm: dict[str, Any], seen: Observation, state: str) -> str:
    """StateReason of an alarm that goes to ``state``."""
    used, filled = seen.used(), seen.verdict.filled
    if state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {filled} {_datapoints(filled)} {_were(filled)} unknown."
    treatment = _TREATED.get(alarm.get("TreatMissingData", "missing"))
    if not used and treatment:
        return (
            f"Threshold Crossed: no datapoints were received for {filled} period{'s' * (filled != 1)} and {filled} "
            f"missing {_datapoints(filled)} {_were(filled)} treated as [{treatment}]."
        )
    relation, words = COMPARISONS[alarm["ComparisonOperator"]]
    threshold, periods = alarm["Threshold"], alarm["EvaluationPeriods"]
    to_alarm = alarm.get("DatapointsToAlarm", periods)
    # The points that speak for the new state: the breaching ones for ALARM, the others for OK.
    speaking = [(time, value) for time, value in used if relation(value, threshold) == (state == ALARM)] or used
    shown = ", ".join(f"{value} ({datetime.fromtimestamp(time, tz=UTC):%d/%m/%y %H:%M:%S})" for time, value in speaking)
    least = to_alarm if state == ALARM else periods - to_alarm + 1
    before = OK if state == ALARM else ALARM
    negation = "" if state == ALARM else "not "
    missing = (
        f" and {filled} missing {_datapoints(filled)} {_were(filled)} treated as [{treatment}]"
        if (filled and treatment)
        else ""
    )
    return (
        f"Threshold Crossed: {len(speaking)} out of the last {periods} datapoints [{shown}] {_were(len(speaking))} "
        f"{negation}{words} the threshold ({threshold}){missing} "
        f"(minimum {least} {_datapoints(least)} for {before} -> {state} transition)."
    )


def data(alarm: dict[str, Any], seen: Observation) -> str:
    """StateReasonData, as JSON."""
    used = seen.used()
    statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    found: dict[str, Any] = {"version": "1.0", "queryDate": iso(seen.at)}
    if used:
        found["startDate"] = iso(used[-1][0])
    found |= {"statistic": statistic} if statistic else {}
    found |= {"unit": alarm["Unit"]} if alarm.get("Unit") else {}
    found |= {"period": period(alarm), "recentDatapoints": [value for _, value in reversed(used)]}
    found["threshold"] = alarm["Threshold"]
    found["evaluatedDatapoints"] = [
        {"timestamp": iso(time), **({"value": value} if value is not None else {})}
        for time, value in list(zip(seen.times, seen.points, strict=True))[::-1][: alarm["EvaluationPeriods"]]
    ]
    return json.dumps(found, separators=(",", ":"))


def period(alarm: dict[str, Any]) -> int:
    """The alarm's period in seconds; that of its metrics where it is on an expression."""
    if "Period" in alarm:
        return int(alarm["Period"])
    periods = [query["MetricStat"]["Period"] for query in alarm["Metrics"] if "MetricStat" in query]
    return max(periods) if periods else 60


def _datapoints(count: int) -> str:
    return "datapoint" if count == 1 else "datapoints"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
