"""What is told of a load in one line: each round while it runs, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence

from tritonstack_capacity.bench.figures import Figures
from tritonstack_capacity.bench.measuring import Point
from tritonstack_capacity.bench.stability import Agreement


def round_line(title: str, load: str, rounds: Sequence[Figures], agreement: Agreement) -> str:
    """``title``: what is measured."""
    rate = agreement.per_minute
    spread = "" if rate.share is None else f" ±{rate.share * 100:.0f} %"
    return f"{title}: {load}, round {len(rounds)}: {rate.mean:,.0f} a minute{spread}"


def load_line(title: str, point: Point) -> str:
    """``title``: what is measured."""
    latency = "".join(f", p{share:g} {value:.4g} ms" for share, value in point.all.percentiles_ms.items())
    several = len(point.rounds) > 1
    rounds = f"{len(point.rounds)} round{'s' if several else ''}"
    stable = ", not stable" if several and not point.agreement.stable else ""
    failed = f", {point.all.failed} failed" if point.all.failed else ""
    return f"{title}: {point.load}: {point.all.per_minute:,.0f} a minute{latency} ({rounds}{stable}{failed})"
