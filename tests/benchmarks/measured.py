"""What tests hold claims and reports against: ways with figures that are given."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.scenarios.measuring import Load, Measured
from benchmarks.scenarios.served import ColdStart
from benchmarks.scenarios.table import Scenario


def way(
    name: str, *, rates: Sequence[float] = (), loads: Sequence[float] = (), archive: int = 10**6, request: int = 1000
) -> Measured:
    """A way with so many responses a second in each turn, and cold starts with so many seconds of load."""
    return Measured(
        way=name,
        archive_bytes=archive,
        request_bytes=request,
        cold=[ColdStart(unpack=0.25, load=load, first_call=0.05) for load in loads],
        load=Load(rates=list(rates), p50_ms=1.5, p95_ms=2.5, mean_batch=1.0) if rates else None,
    )


def measured(scenario: Scenario) -> list[Measured]:
    """What might have come of a scenario: each way a little better than the one before."""
    return [
        way(
            one.name,
            rates=[100.0 * (1 + place) + turn for turn in range(scenario.repeats.turns)],
            loads=[2.0 / (1 + place) + start / 100 for start in range(scenario.repeats.cold_starts)],
        )
        for place, one in enumerate(scenario.ways)
    ]
