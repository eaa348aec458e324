"""A load measured: rounds until they agree or a ramp step by step, their rates and percentiles, when to stop."""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tritonstack_capacity.bench.load import (
    SECONDS_A_MINUTE,
    Ask,
    Budget,
    ClosedLoop,
    Load,
    Numbers,
    OpenLoop,
    Phase,
    Rate,
    RequestTimes,
    Users,
    due_times,
    steps,
)

SHARES = (50.0, 90.0, 95.0, 99.0)
"""The percentiles that are kept."""


class DocumentPart(BaseModel):
    """A part of the results' document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FiguresPart(DocumentPart):
    """Some time of load. Latencies are milliseconds, of successful responses alone, from when each request was due."""

    seconds: float
    answered: int = Field(description="Successful responses.")
    failed: int = Field(description="Requests without one.")
    per_minute: float = Field(description="Successful responses a minute.")
    mean_ms: float | None
    least_ms: float | None
    most_ms: float | None
    percentiles_ms: dict[str, float] = Field(description="Percentile → latency, linear between the nearest requests.")
    late_ms: float = Field(description="99th percentile of how late requests were sent: the generator's share.")


class IntervalPart(DocumentPart):
    """A mean over rounds, and half the width of its confidence interval (Student's t)."""

    mean: float
    half_width: float | None = Field(description="Null where one round says nothing of it.")

    @property
    def share(self) -> float | None:
        """Half the width as a share of the mean; None without an interval, or where the mean is 0."""
        return None if self.half_width is None or self.mean == 0 else self.half_width / abs(self.mean)


class ServerPart(DocumentPart):
    """Triton's own figures of one of its models during the load, milliseconds a request."""

    model: str
    requests: int
    mean_batch: float = Field(description="Inferences in one execution.")
    request_ms: float
    queue_ms: float
    input_ms: float
    compute_ms: float
    output_ms: float


class UtilizationPart(DocumentPart):
    """Utilization in CloudWatch's units: of several vCPUs or GPUs the sum. Null: not measured, as without a GPU."""

    source: str
    cpu_percent: float | None = Field(None, description="CPUUtilization: 100 for each vCPU, locally for each core.")
    memory_percent: float | None = Field(None, description="MemoryUtilization, of the machine's.")
    gpu_percent: float | None = Field(None, description="GPUUtilization: 100 for each GPU.")
    gpu_memory_percent: float | None = Field(None, description="GPUMemoryUtilization: 100 for each GPU.")


class StreamPart(DocumentPart):
    """The events of a load's streams, its warm-up included. Milliseconds, from when a request was sent."""

    streams: int = Field(description="Successful responses with an event at least.")
    events: float = Field(description="Events of a response, on average: of a text generator its tokens.")
    events_per_second: float = Field(description="Of all streams together.")
    first_ms: dict[str, float] = Field(description="Percentile → time to the first event.")
    gap_ms: dict[str, float] = Field(description="Percentile → a stream's mean time from one event to the next.")


class PointPart(DocumentPart):
    """A load and its results."""

    load: str = Field(description="In words: 4 users; 50/s poisson.")
    users: int | None = Field(description="Of a closed loop.")
    rate_per_second: float | None = Field(description="Of an open loop, as it was asked for.")
    stable: bool = Field(description="Whether the rounds agree as the settings ask for.")
    per_minute: IntervalPart
    latency_ms: IntervalPart | None = Field(description="Of the settings' percentile, over the rounds.")
    all: FiguresPart = Field(description="All rounds' requests together.")
    rounds: list[FiguresPart]
    failures: dict[str, int] = Field(description="What went wrong → how often, warm-up included.")
    server: list[ServerPart] = Field(
        description="Triton's own figures of the load, its warm-up included; of a local endpoint alone."
    )
    stream: StreamPart | None = Field(None, description="Null where responses are no streams.")
    utilization: UtilizationPart | None = Field(
        None,
        description="Mean of the load: of the minutes in CloudWatch of which it fills at least half, locally of all of "
        "it, its warm-up included; of Inference Recommender what it expects at the most invocations.",
    )


def percentiles(values: Numbers, shares: tuple[float, ...] = SHARES) -> dict[str, float]:
    """Percentile → value; empty without values."""
    if not len(values):
        return {}
    return {f"{share:g}": float(value) for share, value in zip(shares, np.percentile(values, shares), strict=True)}


def figures(
    part: RequestTimes,
    *,
    begin: float,
    end: float,
    shares: tuple[float, ...] = SHARES,
    by: Literal["due", "ended"] = "due",
) -> FiguresPart:
    """The figures of a time (seconds of the requests' clock).

    The rate counts what was done within it. Latencies are of the requests that were *due* within it, whenever they
    ended: one that was sent before, as a warm-up's, is not of it, and to leave out those that took longer would leave
    out the slowest. Where requests are still under way, ``by="ended"`` takes those that ended within it.
    """
    moment = part.due if by == "due" else part.ended
    chosen = part.where((moment >= begin) & (moment < end))
    answered_within = (part.ended >= begin) & (part.ended <= end) & ~part.failed
    latencies = chosen.latencies_ms
    seconds = end - begin
    some = len(latencies) > 0
    return FiguresPart(
        seconds=seconds,
        answered=len(latencies),
        failed=int(np.count_nonzero(chosen.failed)),
        per_minute=int(np.count_nonzero(answered_within)) / seconds * SECONDS_A_MINUTE if seconds > 0 else 0.0,
        mean_ms=float(latencies.mean()) if some else None,
        least_ms=float(latencies.min()) if some else None,
        most_ms=float(latencies.max()) if some else None,
        percentiles_ms=percentiles(latencies, shares),
        late_ms=percentiles(chosen.lateness_ms, (99.0,)).get("99", 0.0),
    )


CONFIDENCE = 0.95
STUDENTS_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Its 97.5th percentile for 1 to 30 degrees of freedom, after which the last is hardly too wide."""


def mean_interval(values: Sequence[float]) -> IntervalPart:
    """The mean of independent values and its two-sided interval at ``CONFIDENCE``. Raises ValueError: no value."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return IntervalPart(mean=mean, half_width=None)
    quantile = STUDENTS_T[min(len(values) - 1, len(STUDENTS_T)) - 1]
    return IntervalPart(mean=mean, half_width=quantile * statistics.stdev(values) / math.sqrt(len(values)))


@dataclass(frozen=True, kw_only=True)
class StabilityRule:
    """Rounds are repeated until rate and latency are this precise."""

    within: float  # half of the confidence interval's width, as a share of the mean (0.1)
    # rounds
    least: int
    most: int
    percentile: float  # of the latency whose precision counts


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of rounds: invocations a minute, and the latency's percentile in ms (None without responses)."""

    per_minute: IntervalPart
    latency_ms: IntervalPart | None
    stable: bool


def agreement(rounds: Sequence[FiguresPart], rule: StabilityRule) -> Agreement:
    """Agreement of at least one round. One round alone is never stable."""
    rates = mean_interval([one.per_minute for one in rounds])
    share = f"{rule.percentile:g}"
    known = [one.percentiles_ms[share] for one in rounds if share in one.percentiles_ms]
    latencies = mean_interval(known) if known else None
    intervals = [rates, latencies] if len(known) == len(rounds) else []
    enough = len(rounds) >= rule.least
    close = [one is not None and one.share is not None and one.share <= rule.within for one in intervals]
    return Agreement(per_minute=rates, latency_ms=latencies, stable=enough and bool(close) and all(close))


@dataclass(frozen=True, kw_only=True)
class StopConditions:
    """Stopping conditions as Inference Recommender's: beyond one of them, load is not increased."""

    latency_ms: float | None = None  # of ``percentile``; None for none
    percentile: float = 95.0  # whose latency counts
    per_minute: float | None = None  # successful responses; None for none
    failed_share: float = 0.1  # of requests without a successful response, above which figures mean nothing

    def reason(self, found: FiguresPart) -> str | None:
        """Why no more load follows; None where it does."""
        if self.too_many_failed(found):
            return f"{found.failed} of {found.answered + found.failed} requests failed"
        latency = found.percentiles_ms.get(f"{self.percentile:g}")
        if self.latency_ms is not None and latency is not None and latency > self.latency_ms:
            return f"p{self.percentile:g} {latency:.4g} ms is above {self.latency_ms:g} ms"
        if self.per_minute is not None and found.per_minute >= self.per_minute:
            return f"{found.per_minute:.0f} a minute reach {self.per_minute:g}"
        return None

    def too_many_failed(self, found: FiguresPart) -> bool:
        """Whether more than ``failed_share`` of the requests failed, so that their figures mean nothing."""
        made = found.answered + found.failed
        return made > 0 and found.failed / made > self.failed_share


TICK_SECONDS = 0.05
"""How often a test looks whether its requests or its time are spent."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds."""

    warm_up: float  # load before the first round, which is left out
    round: float  # of one round


def point_part(
    load: Load, rounds: Sequence[FiguresPart], *, whole: FiguresPart, rule: StabilityRule, failures: dict[str, int]
) -> PointPart:
    """A load and its results, without Triton's own figures; ``whole``: of all rounds together."""
    found = agreement(rounds, rule)
    return PointPart(
        load=load.name,
        users=load.count if isinstance(load, Users) else None,
        rate_per_second=load.per_second if isinstance(load, Rate) else None,
        stable=found.stable,
        per_minute=found.per_minute,
        latency_ms=found.latency_ms,
        all=whole,
        rounds=list(rounds),
        failures=failures,
        server=[],
    )


class Measuring:
    """Measures loads on one target, all within one budget."""

    def __init__(
        self,
        ask: Ask,
        *,
        timing: Timing,
        rule: StabilityRule,
        budget: Budget,
        seed: int,
        most_under_way: int,
        now: Callable[[], float],
        on_round: Callable[[str], object] = lambda _: None,
    ) -> None:
        """``ask`` sends one request; ``now``: seconds of a monotonic clock; ``on_round`` gets a line on each round."""
        self._ask = ask
        self._on_round = on_round
        self._timing = timing
        self._rule = rule
        self._budget = budget
        self._seed = seed
        self._most_under_way = most_under_way
        self._now = now
        self._shares = tuple(sorted({*SHARES, rule.percentile}))
        self._latencies: list[Numbers] = []

    def latencies_ms(self) -> Numbers:
        """Latencies of all loads so far, without warm-ups, of successful responses."""
        return np.concatenate(self._latencies) if self._latencies else np.empty(0)

    async def level(self, load: Load) -> PointPart | None:
        """Rounds of one load until they agree; None where the budget was spent before a whole round."""
        loop = self._loop(load)
        try:
            await self._wait(self._timing.warm_up)
            times, first = [self._now()], len(loop.samples)
            so_far: list[FiguresPart] = []
            while len(so_far) < self._rule.most and await self._wait(self._timing.round):
                times.append(self._now())
                so_far.append(self._figures(loop.samples.part(first), times[-2:]))
                first = len(loop.samples)
                found = agreement(so_far, self._rule)
                rate = found.per_minute
                spread = "" if rate.share is None else f" ±{rate.share * 100:.0f} %"
                self._on_round(f"{load.name}, round {len(so_far)}: {rate.mean:,.0f} a minute{spread}")
                if found.stable:
                    break
            await loop.stop()
        except BaseException:
            loop.cancel()
            raise
        if len(times) < 2:
            return None
        # Once more, with the requests that were under way at each round's end: they may be its slowest.
        part = loop.samples.part()
        rounds = [self._figures(part, both) for both in itertools.pairwise(times)]
        whole = self._figures(part, [times[0], times[-1]])
        self._latencies.append(part.where((part.due >= times[0]) & (part.due < times[-1])).latencies_ms)
        return point_part(load, rounds, whole=whole, rule=self._rule, failures=dict(loop.samples.failures))

    async def ramp(
        self, phases: tuple[Phase, ...], stop: StopConditions
    ) -> AsyncGenerator[tuple[PointPart, str | None], None]:
        """A point for each number of users, with why it was the last; the warm-up is a load of the first users."""
        loop = ClosedLoop(self._ask, budget=self._budget, now=self._now)
        try:
            if self._timing.warm_up:
                loop.set_users(phases[0].initial_users)
                await self._wait(self._timing.warm_up)
            began = self._now()
            for step in steps(phases):
                loop.set_users(step.users)
                first, before, start = len(loop.samples), Counter(loop.samples.failures), self._now()
                whole = await self._wait(max(0.0, began + step.end - self._now()))
                if not whole:
                    break
                part = loop.samples.part(first)
                found = self._figures(part, [start, self._now()], by="ended")
                self._latencies.append(part.latencies_ms)
                reason = stop.reason(found)
                failures = dict(loop.samples.failures - before)
                users = Users(count=step.users)
                yield point_part(users, [found], whole=found, rule=self._rule, failures=failures), reason
                if reason is not None:
                    break
            await loop.stop()
        except BaseException:
            loop.cancel()
            raise

    def _loop(self, load: Load) -> ClosedLoop | OpenLoop:
        if isinstance(load, Users):
            closed = ClosedLoop(self._ask, budget=self._budget, now=self._now)
            closed.set_users(load.count)
            return closed
        opened = OpenLoop(
            self._ask,
            due=due_times(load, seed=self._seed),
            most_under_way=self._most_under_way,
            budget=self._budget,
            now=self._now,
        )
        opened.start()
        return opened

    def _figures(
        self, part: RequestTimes, times: Sequence[float], *, by: Literal["due", "ended"] = "due"
    ) -> FiguresPart:
        begin, end = times
        return figures(part, begin=begin, end=end, shares=self._shares, by=by)

    async def _wait(self, seconds: float) -> bool:
        """Let the load go on for so long; False where the budget was spent meanwhile."""
        end = self._now() + seconds
        while (left := end - self._now()) > 0:
            if self._budget.spent:
                return False
            await asyncio.sleep(min(left, TICK_SECONDS))
        return True


def load_line(title: str, point: PointPart) -> str:
    """``title``: the subject."""
    latency = "".join(f", p{share} {value:.4g} ms" for share, value in point.all.percentiles_ms.items())
    several = len(point.rounds) > 1
    rounds = f"{len(point.rounds)} round{'s' if several else ''}"
    stable = ", not stable" if several and not point.stable else ""
    failed = f", {point.all.failed} failed" if point.all.failed else ""
    return f"{title}: {point.load}: {point.all.per_minute:,.0f} a minute{latency} ({rounds}{stable}{failed})"
