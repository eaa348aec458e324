"""Application Auto Scaling in a simulation: target tracking on metrics that come late, and scheduled actions."""

from __future__ import annotations

import calendar
import datetime as dt
import itertools
import re
import zoneinfo
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tritonstack.config.scaling import AT, CRON, FIELDS, CronField, Scaling, Schedule
from tritonstack.sagemaker_rules.target_tracking import Cooldowns, alarm_high, alarm_low, desired_instances
from tritonstack_capacity.simulation.instance import Instance
from tritonstack_capacity.simulation.scenario import Autoscaling

# A scheduled action sets the limits from its time on, and what lies outside of them is brought in at once (Application
# Auto Scaling user guide, "How scheduled scaling works"). ``tritonstack.config.scaling`` defines and checks
# the form of times.
SATURDAY, SUNDAY = 6, 7
"""As ``isoweekday`` counts."""


@dataclass(frozen=True, kw_only=True)
class LimitChange:
    """Other limits from a moment on; None leaves one as it is."""

    seconds: float
    minimum: int | None
    maximum: int | None


def limit_changes(schedules: Sequence[Schedule], *, starts: dt.datetime, seconds: float) -> tuple[LimitChange, ...]:
    """Limit changes by schedules from ``starts`` (with a time zone) for ``seconds``, in the order of time."""
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


PERIODS = {"invocations_per_instance": 60.0, "gpu_utilization": 60.0, "gpu_memory": 60.0, "concurrency": 10.0}
"""Seconds that one value of a metric covers."""
FINEST = 10.0


@dataclass
class _Metric:
    """Values of one metric, the oldest first; each with the end of its period and the instances that it is of."""

    name: str
    target: float
    period: float
    values: list[float]
    ends: list[float]
    counts: list[int]

    def known(self, now: float, *, delay: float, count: int) -> tuple[list[float], int] | None:
        """The last ``count`` values that have come by ``now``, and the instances of the last; None for fewer values."""
        last = len(self.ends)
        while last and self.ends[last - 1] + delay > now:
            last -= 1
        return (self.values[last - count : last], self.counts[last - 1]) if last >= count else None


class _Counters:
    """What instances counted until the last period's end."""

    def __init__(self) -> None:
        self.arrivals: dict[int, int] = {}
        self.busy: dict[int, float] = {}


class Autoscaler:
    """Decides how many instances there shall be. ``wanted`` is its last decision."""

    def __init__(
        self, scaling: Scaling, speed: Autoscaling, *, wanted: int, changes: Sequence[LimitChange] = ()
    ) -> None:
        """Begins with ``wanted`` instances and the limits of ``scaling``; ``changes`` of them in the order of time."""
        self.wanted = wanted
        self._least, self._most = scaling.minimum, scaling.maximum
        self._changes = deque(changes)
        self._scaling = scaling
        self._speed = speed
        self._metrics = [_Metric(name, target, PERIODS[name], [], [], []) for name, target in scaling.targets.items()]
        self._counters = {name: _Counters() for name in scaling.targets}
        self._cooldowns = Cooldowns()
        self._growing = False  # whether its instances still start

    def look(self, now: float, serving: Sequence[Instance], *, starting: int) -> int:
        """Every ``FINEST`` seconds: measure, and decide. How many instances there shall be.

        What a schedule asks for waits for no cooldown, and begins none. While instances are ``starting`` the endpoint
        is Updating, and nothing is decided; the cooldown begins after it.
        """
        for metric in self._metrics:
            if now % metric.period == 0:
                metric.values.append(_MEASURES[metric.name](serving, self._counters[metric.name], metric.period))
                metric.ends.append(now)
                metric.counts.append(len(serving))
        self._follow_schedule(now)
        if starting:
            return self.wanted
        within = self._within(self.wanted)
        if within != self.wanted:
            self._growing, self.wanted = False, within
            return within
        more = max(
            (self._wish(metric, now, above=True) for metric in self._metrics), default=None, key=lambda w: w or 0
        )
        if more is not None and more > self.wanted:
            self._grow(more, now)
            return self.wanted
        fewer = [self._wish(metric, now, above=False) for metric in self._metrics]
        least = max((each for each in fewer if each is not None), default=None)
        quiet = self._cooldowns.allow_scale_in(now, cooldown=self._scaling.scale_in_cooldown_seconds)
        if quiet and None not in fewer and least is not None and least < self.wanted:
            self._cooldowns.scaled_in, self.wanted = now, least
        return self.wanted

    def _grow(self, wanted: int, now: float) -> None:
        added, cooldown = wanted - self.wanted, self._scaling.scale_out_cooldown_seconds
        if self._cooldowns.allow_scale_out(now, added=added, cooldown=cooldown):
            self._cooldowns.scale_out(now, added=added)
            self._growing, self.wanted = True, wanted

    def _follow_schedule(self, now: float) -> None:
        while self._changes and self._changes[0].seconds <= now:
            change = self._changes.popleft()
            self._least = self._least if change.minimum is None else change.minimum
            self._most = self._most if change.maximum is None else change.maximum

    def _within(self, count: int) -> int:
        return min(max(count, self._least), self._most)

    def started(self, now: float) -> None:
        """An instance takes calls from now on: the cooldown of the scale-out that asked for it begins."""
        if self._growing:
            self._cooldowns.scaled_out = now

    def _wish(self, metric: _Metric, now: float, *, above: bool) -> int | None:
        """How many instances a metric asks for; None where its alarm is off.

        In proportion to the last value, and to the instances that it was measured with.
        """
        count = self._speed.periods_out if above else self._speed.periods_in
        known = metric.known(now, delay=self._speed.metric_delay_seconds, count=count)
        if known is None:
            return None
        values, instances = known
        if not (alarm_high if above else alarm_low)(values, target=metric.target):
            return None
        return self._within(desired_instances(instances, value=values[-1], target=metric.target))


def _invocations(serving: Sequence[Instance], counters: _Counters, _: float) -> float:
    grown = sum(each.arrivals - counters.arrivals.get(each.number, 0) for each in serving)
    counters.arrivals = {each.number: each.arrivals for each in serving}
    return grown / len(serving)


def _gpu_utilization(serving: Sequence[Instance], counters: _Counters, period: float) -> float:
    """Executions that began in the period, as a share of what the GPU could do at once; at most 100."""
    grown = sum(each.busy - counters.busy.get(each.number, 0.0) for each in serving)
    counters.busy = {each.number: each.busy for each in serving}
    return min(100.0, 100 * grown / (period * sum(each.machine.executions for each in serving)))


def _gpu_memory(serving: Sequence[Instance], _: _Counters, __: float) -> float:
    size = sum(each.machine.memory for each in serving)
    return 100 * (1 - sum(each.memory_left for each in serving) / size)


def _concurrency(serving: Sequence[Instance], _: _Counters, __: float) -> float:
    return sum(each.in_flight for each in serving) / len(serving)


_MEASURES: dict[str, Callable[[Sequence[Instance], _Counters, float], float]] = {
    "invocations_per_instance": _invocations,
    "gpu_utilization": _gpu_utilization,
    "gpu_memory": _gpu_memory,
    "concurrency": _concurrency,
}
