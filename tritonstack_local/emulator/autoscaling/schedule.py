"""Schedule expressions of scheduled actions: ``at(…)``, ``rate(…)``, ``cron(…)``, and the moments that they mean.

Source: API reference, PutScheduledAction. The syntax of cron is EventBridge's (user guide, "Schedule recurring scaling
actions"), which MiniStack reads. A local time that a change to summer time leaves out is taken as if the clocks had not
changed, and one that occurs twice is its first (UNVERIFIED).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tritonstack_local.emulator.ministack_adapter import eventbridge


def moments(action: Mapping[str, Any], *, after: float) -> Iterator[float]:
    """The moments of a scheduled action after ``after``, seconds since the epoch, the earliest first.

    A recurring one is performed at its StartTime too, "and then … based on the specified recurrence", until its EndTime
    (user guide). Raises ``ValueError`` for an expression or a time zone that is none.
    """
    start, end = action.get("StartTime", -math.inf), action.get("EndTime", math.inf)
    expression = action.get("Schedule", "")
    kind, _, text = expression.removesuffix(")").partition("(")
    try:
        zone = ZoneInfo(action["Timezone"])
    except (KeyError, ValueError, OSError) as error:  # an unknown name, none, a folder's
        raise ValueError(f"{action['Timezone']}: no time zone (IANA: Europe/Berlin)") from error
    found: Iterator[float]
    if kind == "at":
        found = iter([datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=zone).timestamp()])
    elif kind == "cron":
        found = _cron(expression, begin=datetime.fromtimestamp(max(after, start), tz=zone))
    else:
        seconds = eventbridge.parse_rate_seconds(expression)
        if not seconds:
            raise ValueError("at(yyyy-mm-ddThh:mm:ss), rate(5 minutes), of hours or days, or cron(fields)")
        origin = start if "StartTime" in action else action["CreationTime"]
        found = (origin + number * seconds for number in itertools.count(1))
    if start > after and kind != "at":
        found = itertools.chain([start], found)
    return itertools.takewhile(lambda moment: moment <= end, (moment for moment in found if moment > after))


def _cron(expression: str, *, begin: datetime) -> Iterator[float]:
    fields = eventbridge.parse_cron_fields(expression)
    if fields is None or fields[6] == fields[7]:
        raise ValueError("minutes hours day-of-month month day-of-week year, and exactly one of the two days is ?")
    minutes, hours, days, months, weekdays, years = fields[:6]
    allowed = (
        ("Minutes", minutes, minutes, range(60)),
        ("Hours", hours, hours, range(24)),
        ("Day-of-month", days["days"], any(days.values()), range(1, 32)),
        ("Month", months, months, range(1, 13)),
        ("Day-of-week", weekdays["days"], any(weekdays.values()), range(1, 8)),
        ("Year", years or frozenset(), years is None or years, range(1970, 2200)),
    )
    for name, values, is_set, numbers in allowed:  # which MiniStack does not look at
        if not is_set or not values <= set(numbers):
            raise ValueError(f"{name}: {numbers[0]} to {numbers[-1]}, in rising order")

    def following(at: datetime | None) -> Iterator[float]:
        while (at := eventbridge.cron_next_fire(fields, at)) is not None:
            yield at.timestamp()

    return following(begin)


class Moments:
    """The moments of a scheduled action, one after the other."""

    def __init__(self, found: Iterator[float]) -> None:
        """``found``: the earliest first."""
        self._found = found
        self._next = next(found, math.inf)

    def passed(self, now: float) -> float | None:
        """The last moment that came since the last call, however many did; None where none came."""
        last = None
        while self._next <= now:
            last, self._next = self._next, next(self._found, math.inf)
        return last
