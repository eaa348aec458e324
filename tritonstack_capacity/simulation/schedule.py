"""When scheduled scaling changes the limits: its times, as seconds of a simulation.

A scheduled action sets the limits from its time on, and what lies outside of them is brought in at once (Application
Auto Scaling user guide, "How scheduled scaling works"). ``tritonstack.settings.schedule_times`` says what times look
like, and has checked them.
"""

from __future__ import annotations

import calendar
import datetime as dt
import itertools
import re
import zoneinfo
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonstack.settings.scaling import Schedule
from tritonstack.settings.schedule_times import AT, CRON, FIELDS, CronField

SATURDAY, SUNDAY = 6, 7
"""As ``isoweekday`` counts."""


@dataclass(frozen=True, kw_only=True)
class LimitChange:
    """Other limits from a moment on; None leaves one as it is."""

    seconds: float
    minimum: int | None
    maximum: int | None


def limit_changes(schedules: Sequence[Schedule], *, starts: dt.datetime, seconds: float) -> tuple[LimitChange, ...]:
    """What the schedules change from ``starts`` (which knows its time zone) for ``seconds``, in the order of time."""
    found = [
        LimitChange(seconds=moment, minimum=each.minimum, maximum=each.maximum)
        for each in schedules
        for moment in _moments(each, starts=starts, seconds=seconds)
    ]
    return tuple(sorted(found, key=lambda change: change.seconds))


def _moments(schedule: Schedule, *, starts: dt.datetime, seconds: float) -> Iterator[float]:
    zone = zoneinfo.ZoneInfo(schedule.time_zone)
    for local in _local_times(schedule.when, zone=zone, starts=starts, seconds=seconds):
        moment = local.replace(tzinfo=zone).timestamp() - starts.timestamp()
        if 0 <= moment <= seconds:
            yield moment


def _local_times(when: str, *, zone: zoneinfo.ZoneInfo, starts: dt.datetime, seconds: float) -> Iterator[dt.datetime]:
    at = AT.fullmatch(when)
    if at is not None:
        yield dt.datetime.fromisoformat(at[1])
        return
    cron = CRON.fullmatch(when)
    if cron is None:
        raise ValueError(f"{when} passed the checks")
    minutes, hours, days_of_month, months, days_of_week, years = cron[1].split()
    minute_field, hour_field, _, month_field, _, year_field = FIELDS
    first = starts.astimezone(zone).date()
    last = (starts + dt.timedelta(seconds=seconds)).astimezone(zone).date()
    for number in range(first.toordinal(), last.toordinal() + 1):
        day = dt.date.fromordinal(number)
        if (
            day.month in _numbers(months, month_field)
            and day.year in _numbers(years, year_field)
            and _is_day_of_month(day, days_of_month)
            and _is_day_of_week(day, days_of_week)
        ):
            times = itertools.product(sorted(_numbers(hours, hour_field)), sorted(_numbers(minutes, minute_field)))
            yield from (dt.datetime.combine(day, dt.time(hour, minute)) for hour, minute in times)


def _numbers(text: str, field: CronField) -> set[int]:
    """What a field's lists, ranges and steps name, its special parts aside."""
    found: set[int] = set()
    for part in text.split(","):
        if re.fullmatch(field.special, part):
            continue
        span, _, step = part.partition("/")
        if span == "*":
            first, last = field.least, field.greatest
        else:
            ends = [_number(each, field) for each in span.split("-", 1)]
            first, last = ends[0], field.greatest if step and len(ends) == 1 else ends[-1]
        if last < first:  # FRI-MON goes on from the beginning
            last += field.greatest - field.least + 1
        size = field.greatest - field.least + 1
        found |= {(each - field.least) % size + field.least for each in range(first, last + 1, int(step or 1))}
    return found


def _number(text: str, field: CronField) -> int:
    return int(text) if text.isdigit() else field.words.index(text.upper()) + field.least


def _is_day_of_month(day: dt.date, text: str) -> bool:
    if text == "?":
        return True
    length = calendar.monthrange(day.year, day.month)[1]
    special = {"L": day.replace(day=length), "LW": _working_day(day.replace(day=length))}
    for part in text.split(","):
        if part in special and day == special[part]:
            return True
        near = re.fullmatch(r"(\d+)W", part)
        if near and int(near[1]) <= length and day == _working_day(day.replace(day=int(near[1]))):
            return True
    return day.day in _numbers(text, FIELDS[2])


def _working_day(day: dt.date) -> dt.date:
    """The nearest day from Monday to Friday in the same month."""
    length = calendar.monthrange(day.year, day.month)[1]
    move = 0
    if day.isoweekday() == SATURDAY:
        move = 2 if day.day == 1 else -1
    elif day.isoweekday() == SUNDAY:
        move = -2 if day.day == length else 1
    return day + dt.timedelta(days=move)


def _is_day_of_week(day: dt.date, text: str) -> bool:
    if text == "?":
        return True
    number = day.isoweekday() % 7 + 1  # from Sunday, as Application Auto Scaling counts
    length = calendar.monthrange(day.year, day.month)[1]
    for part in text.split(","):
        last = re.fullmatch(r"([1-7]?)L", part)
        if last and (number == int(last[1]) and day.day + 7 > length if last[1] else number == SATURDAY + 1):
            return True
        nth = re.fullmatch(r"([1-7])#([1-5])", part)
        if nth and (number, (day.day - 1) // 7 + 1) == (int(nth[1]), int(nth[2])):
            return True
    return number in _numbers(text, FIELDS[4])
