"""From the points of an evaluation range to an alarm's state: M out of N, and what missing points count for.

Source: CloudWatch user guide, "How alarm state is evaluated when data is missing" and "Avoiding premature transitions
to alarm state", whose tables are this module's tests. The guide's range is 5 points for 3 evaluation periods and
depends, it says, on more: here it is always two points longer than the evaluation periods (UNVERIFIED).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    """When an alarm fires.

    Attributes:
        breaches: whether a value is beyond the threshold.
        periods: EvaluationPeriods, N.
        to_alarm: DatapointsToAlarm, M.
        missing: TreatMissingData.
    """

    breaches: Callable[[float], bool]
    periods: int
    to_alarm: int
    missing: str

    @property
    def range_points(self) -> int:
        """How many points are looked at."""
        return self.periods + EXTRA_POINTS


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an evaluation finds.

    Attributes:
        state: None where the alarm keeps its own.
        used: positions in the range of the points that decided, the oldest first.
        filled: how many missing points were filled in.
    """

    state: str | None
    used: tuple[int, ...]
    filled: int


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
