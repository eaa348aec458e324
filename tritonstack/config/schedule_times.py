"""Times of scheduled scaling, as Application Auto Scaling writes them: ``cron(…)`` with six fields, and ``at(…)``.

Source: Application Auto Scaling user guide, "Schedule recurring scaling actions using cron expressions", and API
reference, PutScheduledAction.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass

AT = re.compile(r"at\((.*)\)")
CRON = re.compile(r"cron\((.*)\)")
AT_FORM = "yyyy-mm-ddThh:mm:ss"
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, kw_only=True)
class CronField:
    """A field of a cron expression: numbers or words, in lists, ranges and steps, or what ``special`` matches."""

    name: str
    least: int
    greatest: int
    words: tuple[str, ...] = ()
    special: str = "(?!)"

    def takes(self, value: str) -> bool:
        """Whether the field may hold ``value``."""
        return all(re.fullmatch(self.special, part) or self._takes_span(part) for part in value.split(","))

    def _takes_span(self, part: str) -> bool:
        span, slash, step = part.partition("/")
        if slash and not (step.isascii() and step.isdigit() and 1 <= int(step) <= self.greatest):
            return False
        return span == "*" or all(map(self._takes_one, span.split("-", 1)))

    def _takes_one(self, text: str) -> bool:
        if text.isascii() and text.isdigit():
            return self.least <= int(text) <= self.greatest
        return text.upper() in self.words


FIELDS = (
    CronField(name="minutes", least=0, greatest=59),
    CronField(name="hours", least=0, greatest=23),
    CronField(name="day-of-month", least=1, greatest=31, special=r"\?|LW?|([1-9]|[12][0-9]|3[01])W"),
    CronField(name="month", least=1, greatest=12, words=MONTHS),
    CronField(name="day-of-week", least=1, greatest=7, words=DAYS, special=r"\?|[1-7]?L|[1-7]#[1-5]"),
    CronField(name="year", least=1970, greatest=2199),
)


def time_problems(when: str) -> Iterator[str]:
    """What is wrong with a schedule's time, each as a sentence's end; nothing where it is right."""
    at, cron = AT.fullmatch(when), CRON.fullmatch(when)
    if at:
        if not _is_time(at[1]):
            yield f"{at[1]!r}, which is no time in the form {AT_FORM}"
    elif cron:
        yield from _cron_problems(cron[1])
    else:
        yield f"{when}, which is neither cron(…) nor at(…)"


def is_time_zone(name: str) -> bool:
    """Whether there is such a time zone."""
    return name in _time_zones()


@functools.cache
def _time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _is_time(text: str) -> bool:
    try:
        return text[10:11] == "T" and len(text) == len(AT_FORM) and dt.datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def _cron_problems(text: str) -> Iterator[str]:
    fields = text.split()
    if len(fields) != len(FIELDS):
        yield f"a cron expression with {len(fields)} fields; it has {len(FIELDS)}: {', '.join(f.name for f in FIELDS)}"
        return
    for value, field in zip(fields, FIELDS, strict=True):
        if not field.takes(value):
            yield f"{value!r} as the {field.name} of a cron expression ({field.least} to {field.greatest})"
    if [fields[2], fields[4]].count("?") != 1:
        yield f"day-of-month {fields[2]} with day-of-week {fields[4]}: exactly one of the two must be ?"
