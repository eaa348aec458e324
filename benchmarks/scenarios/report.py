"""What came out, as Markdown: the claims with their verdicts, then each scenario's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scenarios.claims import Interval, Tried, median_interval, tried
from benchmarks.scenarios.measuring import Load, Measured
from benchmarks.scenarios.table import Scenario

QUIET = 0.25
"""Cores that something else may keep busy before figures are marked."""
NOT_HERE = "cannot be tried here"
SIZES: Mapping[str, Callable[[Measured], str]] = {
    "archive MB": lambda one: _value(one.archive_bytes / 1e6),
    "request KB": lambda one: _value(one.request_bytes / 1e3),
}
"""Told where ways differ in them."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A scenario and what was measured of each of its ways."""

    scenario: Scenario
    found: Sequence[Measured]

    @property
    def tried(self) -> list[Tried]:
        """Its claims, held against its figures."""
        found = {one.way: one for one in self.found}
        return [tried(claim, found) for claim in self.scenario.claims]


def page(sections: Sequence[Section], *, where: str, others: float) -> str:
    """All of it, from the same machine and code.

    ``where``: machine, time and commit in a line; ``others``: how many cores something else kept busy.
    """
    if others > QUIET:
        where += f" **Taken beside other load** ({others:.1f} cores busy with it): only what is far apart counts."
    parts = [where, "\n".join(claims_table(sections)), *("\n".join(section_lines(section)) for section in sections)]
    return "\n\n".join(parts)


def claims_table(sections: Sequence[Section]) -> Iterator[str]:
    """A row for each claim, and for what cannot be tried here."""
    yield "| claim | claimed | here: times, 95 % interval | of | verdict |"
    yield "|---|---|---|---|---|"
    for section in sections:
        for one in section.tried:
            claimed = "better" if one.claim.times == 1 else f"≥ {one.claim.times:g}"
            figures = f"{_value(one.better)} against {_value(one.than)} {one.claim.by}"
            yield f"| {one.claim.said} | {claimed} | {ratio_text(one.ratio)} | {figures} | **{one.verdict}** |"
        for what in section.scenario.not_here:
            yield f"| {what} | | | | {NOT_HERE} |"


def section_lines(section: Section) -> Iterator[str]:
    """A scenario's heading, what was published, and its figures."""
    scenario, found = section.scenario, section.found
    yield f"### {scenario.title}"
    yield ""
    yield f"Published: {scenario.published}"
    yield ""
    first = found[0].load
    sizes = [(name, size) for name, size in SIZES.items() if len({size(one) for one in found}) > 1]
    head = ["configuration", *(name for name, _ in sizes)]
    head += [] if first is None else ["responses/s", "± %", "times first", "p50 ms", "p95 ms", "mean batch"]
    head += ["unpack s", "load s", "first call ms", "cold start s", "± %"] if found[0].cold else []
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for one in found:
        cells = [one.way, *(size(one) for _, size in sizes)]
        cells += [] if first is None or one.load is None else _load_cells(one.load, first)
        cells += _cold_cells(one) if one.cold else []
        yield f"| {' | '.join(cells)} |"


def ratio_text(ratio: Interval) -> str:
    """``2.31 (2.05 to 2.60)``; without the interval where there is none."""
    if ratio.low is None or ratio.high is None:
        return f"{_value(ratio.median)} (too few turns)"
    return f"{_value(ratio.median)} ({_value(ratio.low)} to {_value(ratio.high)})"


def _load_cells(load: Load, first: Load) -> list[str]:
    rates = median_interval(load.rates)
    ratio = median_interval([own / other for own, other in zip(load.rates, first.rates, strict=True)])
    return [
        _value(rates.median),
        _share(rates),
        "1" if load is first else ratio_text(ratio),
        _value(load.p50_ms),
        _value(load.p95_ms),
        "" if load.mean_batch is None else f"{load.mean_batch:.1f}",
    ]


def _cold_cells(measured: Measured) -> list[str]:
    whole = median_interval([one.whole for one in measured.cold])
    parts = [
        median_interval([one.unpack for one in measured.cold]).median,
        median_interval([one.load for one in measured.cold]).median,
        median_interval([one.first_call * 1000 for one in measured.cold]).median,
    ]
    return [*map(_value, parts), _value(whole.median), _share(whole)]


def _share(interval: Interval) -> str:
    """Half the interval's width in percent of the median; empty without an interval, or where the median is 0."""
    if interval.low is None or interval.high is None or interval.median == 0:
        return ""
    return f"{(interval.high - interval.low) / 2 / interval.median * 100:.0f}"


def _value(value: float) -> str:
    """Three figures that mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.{2 if value >= 0.1 else 3}f}"
