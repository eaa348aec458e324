"""What was measured, as parts of the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tritonstack.bench.confidence import Interval
from tritonstack.bench.document import FiguresPart, IntervalPart, PointPart, ServerPart
from tritonstack.bench.figures import Figures
from tritonstack.bench.measuring import Point
from tritonstack.bench.settings import BenchSettings
from tritonstack.bench.triton_statistics import ServerFigures


def point_part(point: Point, server: Sequence[ServerFigures]) -> PointPart:
    """A load."""
    agreement = point.agreement
    return PointPart(
        load=point.load,
        users=point.users,
        rate_per_second=point.rate_per_second,
        stable=agreement.stable,
        per_minute=_interval(agreement.per_minute),
        latency_ms=None if agreement.latency_ms is None else _interval(agreement.latency_ms),
        all=_figures(point.all),
        rounds=[_figures(one) for one in point.rounds],
        failures=point.failures,
        server=[ServerPart(**asdict(one)) for one in server],
    )


def settings_part(settings: BenchSettings) -> dict[str, Any]:
    """The settings as JSON has them; loads by their names."""
    found = asdict(settings)
    found["loads"] = [load.name for load in settings.loads]
    found["phases"] = [phase.name for phase in settings.phases]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _figures(found: Figures) -> FiguresPart:
    shares = {f"{share:g}": value for share, value in found.percentiles_ms.items()}
    return FiguresPart(**{**asdict(found), "percentiles_ms": shares})


def _interval(found: Interval) -> IntervalPart:
    return IntervalPart(mean=found.mean, half_width=found.half_width)
