"""Settings of a bench: read from the command line's options, with every problem at once, before any request."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tritonstack.client.inputs import InputFile
from tritonstack.errors import Problem, refuse
from tritonstack_capacity.bench.load import Arrivals, Load, Phase, Rate, Users
from tritonstack_capacity.bench.measuring import StabilityRule, StopConditions, Timing
from tritonstack_capacity.bench.subject import FORMATS, Format


@dataclass
class Progress:
    """Receiver of a test's progress messages."""

    note: Callable[[str], object]  # takes a line that stays
    say: Callable[[str], object]  # takes what is done now, until something else is


Generator = Literal["client", "perf-analyzer"]


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """Everything that a person may choose."""

    names: tuple[str, ...]  # the models, ``[endpoint/]model``
    environment: str
    configurations: tuple[str, ...]  # overlays of the named folders; empty: the models as they are named
    loads: tuple[Load, ...]  # levels, one after the other; empty for a ramp
    phases: tuple[Phase, ...]  # of a ramp; empty for levels
    formats: tuple[Format, ...]  # payload formats
    timing: Timing
    rule: StabilityRule
    stop: StopConditions
    container: bool  # straight at the local endpoint's container
    cold_starts: int  # how many are measured for each model
    # inputs and requested outputs; empty: the recipe's sample, the output with a meaning
    files: tuple[str, ...]
    outputs: tuple[str, ...]
    # of each model and format
    max_calls: int
    max_seconds: float
    timeout_seconds: float  # of one request
    most_under_way: int  # calls of an open loop at once
    seed: int
    generator: Generator
    cloudwatch_wait_seconds: float  # how long SageMaker's figures are waited for
    publish_metric: bool = False  # latencies are published as EndToEndLatency


MOST_USERS = 1000
MOST_THREADS = 512
"""Most calls of perf_analyzer at once through the proxy."""
MOST_PER_SECOND = 10_000.0
"""Requests a second: more than one process of this generator makes."""
_PHASE = re.compile(r"(\d+)(?:\+(\d+(?:\.\d+)?))?:(\d+(?:\.\d+)?)")


class OptionReader:
    """Reads options and collects their problems."""

    def __init__(self, problems: Sequence[Problem] = ()) -> None:
        """``problems``: those found earlier."""
        self.problems = list(problems)

    def refuse(self, field: str, *, found: str, allowed: str, advice: str = "") -> None:
        """Keep a problem."""
        self.problems.append(Problem(field=field, found=found, allowed=allowed, advice=advice))

    def users(self, text: str | None) -> tuple[Load, ...]:
        """``1,4,16``."""
        counts = self._numbers("--users", text)
        right = [each for each in counts if each.is_integer() and 1 <= each <= MOST_USERS]
        for each in counts:
            if each not in right:
                self.refuse("--users", found=f"{each:g}", allowed=f"whole numbers from 1 to {MOST_USERS}, as 1,4,16")
        return tuple(Users(count=int(each)) for each in right)

    def rates(self, text: str | None, arrivals: Arrivals) -> tuple[Load, ...]:
        """``10,50``: calls a second."""
        rates = self._numbers("--rate", text)
        right = [each for each in rates if 0 < each <= MOST_PER_SECOND]
        for each in rates:
            if each not in right:
                allowed = f"requests a second, above 0 and up to {MOST_PER_SECOND:g}, as 10,50"
                self.refuse("--rate", found=f"{each:g}", allowed=allowed)
        return tuple(Rate(per_second=each, arrivals=arrivals) for each in right)

    def phases(self, texts: Sequence[str]) -> tuple[Phase, ...]:
        """``2+2:1500``: two users, two more each minute, 1,500 seconds."""
        found = []
        for text in texts:
            parts = _PHASE.fullmatch(text)
            allowed = "users[+users a minute]:seconds, as 2+2:1500; at least one user and one second"
            if parts is None or int(parts[1]) < 1 or float(parts[3]) < 1:
                self.refuse("--phase", found=repr(text), allowed=allowed)
                continue
            phase = Phase(initial_users=int(parts[1]), users_per_minute=float(parts[2] or 0), seconds=float(parts[3]))
            if phase.initial_users + phase.users_per_minute * phase.seconds / 60 > MOST_USERS:
                self.refuse("--phase", found=repr(text), allowed=f"at most {MOST_USERS} users at its end")
            found.append(phase)
        return tuple(found)

    def formats(self, text: str) -> tuple[Format, ...]:
        """``binary``, ``json``, or ``both``."""
        return FORMATS if text == "both" else tuple(each for each in FORMATS if each == text)

    def _numbers(self, field: str, text: str | None) -> list[float]:
        if text is None:
            return []
        try:
            return list(dict.fromkeys(float(part) for part in text.split(",")))
        except ValueError:
            self.refuse(field, found=repr(text), allowed="numbers with commas between, as 1,4,16")
            return []


def check(settings: BenchSettings, reader: OptionReader, *, local: bool) -> None:
    """Refuse contradictions, together with the reader's problems, all at once.

    ``local``: the local AWS is called.

    Raises InputError: every problem.
    """
    _check_bounds(settings, reader)
    _check_load(settings, reader)
    _check_container(settings, reader, local=local)
    if settings.generator == "perf-analyzer":
        _check_perf_analyzer(settings, reader)
    if settings.configurations and len(settings.names) > 1:
        reader.refuse("--configurations", found=f"{len(settings.names)} names", allowed="one folder's name")
    twice = sorted({name for name in settings.names if settings.names.count(name) > 1})
    if twice:
        reader.refuse("NAME", found=f"{', '.join(twice)} twice", allowed="each model once")
    for file in settings.files:
        if not InputFile.parse(file).path.is_file():
            reader.refuse("--input", found=f"{file}, which is no file", allowed="a file")
    refuse(reader.problems)


def _check_load(settings: BenchSettings, reader: OptionReader) -> None:
    kinds = {type(load).__name__ for load in settings.loads} | ({"Phase"} if settings.phases else set())
    if len(kinds) > 1:
        allowed = "one: a test is one kind of load"
        reader.refuse("--users, --rate, --phase", found="more than one of them", allowed=allowed)
    most = _most_users(settings)
    if settings.most_under_way < most:
        found = f"{settings.most_under_way}, and {most} users"
        reader.refuse("--most-under-way", found=found, allowed="a request for each user")


def _most_users(settings: BenchSettings) -> int:
    return max((load.count for load in settings.loads if isinstance(load, Users)), default=0)


def _check_container(settings: BenchSettings, reader: OptionReader, *, local: bool) -> None:
    if settings.container and not local:
        found, advice = f"environment {settings.environment}, in the cloud", "--local, where local deploy deployed it"
        allowed = "an endpoint on the local AWS: SageMaker gives no access to a container"
        reader.refuse("--container", found=found, allowed=allowed, advice=advice)
    if settings.container and settings.cold_starts:
        allowed = "without: it is the endpoint that loads a model"
        reader.refuse("--cold-starts", found="with --container", allowed=allowed)


def _check_perf_analyzer(settings: BenchSettings, reader: OptionReader) -> None:
    if settings.container:
        allowed = "without: nothing in the container speaks its protocol"
        reader.refuse("--container", found="with perf-analyzer", allowed=allowed)
    if settings.formats != ("binary",):
        reader.refuse("--format", found="json with perf-analyzer", allowed="binary, which the proxy gets from it")
    if (most := _most_users(settings)) > MOST_THREADS:
        allowed = f"up to {MOST_THREADS}: the proxy has no more requests in progress"
        reader.refuse("--users", found=f"{most} with perf-analyzer", allowed=allowed)
    if settings.phases:
        reader.refuse("--generator", found="perf-analyzer with --phase", allowed="client, which has ramps")
    if not settings.rule.percentile.is_integer():
        found = f"{settings.rule.percentile:g} with perf-analyzer"
        reader.refuse("--percentile", found=found, allowed="a whole number")


def _check_bounds(settings: BenchSettings, reader: OptionReader) -> None:
    rule, timing = settings.rule, settings.timing
    if rule.least > rule.most:
        reader.refuse("--rounds", found=f"{rule.least} to {rule.most} rounds", allowed="no more than --max-rounds")
    needed = timing.warm_up + timing.round
    if settings.max_seconds < needed:
        allowed = f"at least warm-up and a round: {needed:g} s"
        reader.refuse("--max-seconds", found=f"{settings.max_seconds:g}", allowed=allowed)
