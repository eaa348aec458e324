"""Application Auto Scaling in a simulation: target tracking on metrics that come late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonstack.aws.sagemaker_rules import LOW_SHARE, Cooldowns, desired_instances, wanted_instances
from tritonstack.config.scaling import Scaling
from tritonstack_capacity.simulation.instance import Instance
from tritonstack_capacity.simulation.scenario import Autoscaling

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
    """The instances' counters at the last period's end."""

    def __init__(self) -> None:
        self.arrivals: dict[int, int] = {}
        self.busy: dict[int, float] = {}


class Autoscaler:
    """Decides the number of instances. ``wanted`` is its last decision."""

    def __init__(self, scaling: Scaling, speed: Autoscaling, *, wanted: int) -> None:
        """Begins with ``wanted`` instances."""
        self.wanted = wanted
        self._scaling = scaling
        self._speed = speed
        self._metrics = [_Metric(name, target, PERIODS[name], [], [], []) for name, target in scaling.targets.items()]
        self._counters = {name: _Counters() for name in scaling.targets}
        self._cooldowns = Cooldowns()

    def look(self, now: float, serving: Sequence[Instance], *, starting: int) -> int:
        """Measure and decide, every ``FINEST`` seconds. Returns the wanted number of instances.

        While instances are ``starting`` the endpoint is Updating, and nothing is decided; the cooldown begins after it.
        """
        for metric in self._metrics:
            if now % metric.period == 0:
                metric.values.append(_MEASURES[metric.name](serving, self._counters[metric.name], metric.period))
                metric.ends.append(now)
                metric.counts.append(len(serving))
        if starting:
            return self.wanted
        more, fewer = ([self._wish(metric, now, above=above) for metric in self._metrics] for above in (True, False))
        wanted = wanted_instances(self.wanted, more=more, fewer=fewer)
        quiet = self._cooldowns.allow_scale_in(now, cooldown=self._scaling.scale_in_cooldown_seconds)
        if wanted > self.wanted:
            self._grow(wanted, now)
        elif wanted < self.wanted and quiet:
            self._cooldowns.scaled_in, self.wanted = now, wanted
        return self.wanted

    def _grow(self, wanted: int, now: float) -> None:
        added, cooldown = wanted - self.wanted, self._scaling.scale_out_cooldown_seconds
        if self._cooldowns.allow_scale_out(now, added=added, cooldown=cooldown):
            self._cooldowns.scale_out(now, added=added)
            self.wanted = wanted

    def started(self, now: float) -> None:
        """An instance takes requests from now on: the cooldown of its scale-out begins."""
        self._cooldowns.scaled_out = now

    def _wish(self, metric: _Metric, now: float, *, above: bool) -> int | None:
        """The number of instances that a metric's policy wants; None where its alarm is off.

        In proportion to the last value, and to the instances that it was measured with.
        """
        count = self._speed.periods_out if above else self._speed.periods_in
        known = metric.known(now, delay=self._speed.metric_delay_seconds, count=count)
        if known is None:
            return None
        values, instances = known
        limit = metric.target if above else metric.target * LOW_SHARE
        if not all(value > limit if above else value < limit for value in values):
            return None
        desired = desired_instances(instances, value=values[-1], target=metric.target)
        return min(max(desired, self._scaling.minimum), self._scaling.maximum)


def _invocations(serving: Sequence[Instance], counters: _Counters, _: float) -> float:
    grown = sum(each.arrivals - counters.arrivals.get(each.number, 0) for each in serving)
    counters.arrivals = {each.number: each.arrivals for each in serving}
    return grown / len(serving)


def _gpu_utilization(serving: Sequence[Instance], counters: _Counters, period: float) -> float:
    """Executions that began in the period, in per cent of the GPU's capacity; at most 100."""
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
