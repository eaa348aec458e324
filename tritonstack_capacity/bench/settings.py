"""Settings of a bench, and the interface that it reports its progress to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tritonstack_capacity.bench.load import Load, Phase
from tritonstack_capacity.bench.measuring import StabilityRule, StopConditions, Timing
from tritonstack_capacity.bench.subject import Format


class Progress(Protocol):
    """Where a test's words go."""

    def note(self, line: str, /) -> None:
        """A line that stays."""

    def say(self, text: str, /) -> None:
        """What is done now, until something else is."""


Generator = Literal["client", "perf-analyzer"]


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """Everything that a person may choose.

    Attributes:
        names: the models, ``[endpoint/]model``.
        configurations: overlays of the named folders; empty: the models as they are named.
        loads: levels, one after the other; empty for a ramp.
        phases: of a ramp; empty for levels.
        formats: payload formats.
        container: straight at the local endpoint's container.
        cold_starts: how many are measured for each model.
        files, outputs: what is sent and asked for; empty: the recipe's sample, the output with a meaning.
        max_calls, max_seconds: of each model and format.
        timeout_seconds: of one call.
        most_under_way: calls of an open loop at once.
        publish_metric: tell CloudWatch the end-to-end latencies.
        cloudwatch_wait_seconds: how long SageMaker's figures are waited for.
    """

    names: tuple[str, ...]
    environment: str
    configurations: tuple[str, ...]
    loads: tuple[Load, ...]
    phases: tuple[Phase, ...]
    formats: tuple[Format, ...]
    timing: Timing
    rule: StabilityRule
    stop: StopConditions
    container: bool
    cold_starts: int
    files: tuple[str, ...]
    outputs: tuple[str, ...]
    max_calls: int
    max_seconds: float
    timeout_seconds: float
    most_under_way: int
    seed: int
    generator: Generator
    publish_metric: bool
    cloudwatch_wait_seconds: float
