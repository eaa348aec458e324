"""The results as pictures: latency against throughput, percentiles, speed-up by configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tritonstack_capacity.bench.document import BenchDocument, PointPart, ResultPart
from tritonstack_capacity.bench.measurements_csv import best_point
from tritonstack_capacity.bench.payload import FORMATS
from tritonstack_capacity.bench.xy_plot import Bar, Line, bars, legend, xy_plot

DRAWN = ("50", "90", "95", "99")
MARKS = [(float(place), f"p{share}") for place, share in enumerate(DRAWN)]

_Measured = tuple[ResultPart, PointPart]
"""A result and its best load."""


def pictures(document: BenchDocument) -> Iterator[str]:
    """A figure each. A configuration has one colour; the format is how its line is drawn."""
    percentile = f"{document.settings['rule']['percentile']:g}"
    limit = document.settings["stop"]["latency_ms"]
    results = [result for result in document.results if any(point.all.percentiles_ms for point in result.points)]
    if not results:
        yield '<p class="note">Nothing was answered yet.</p>'
        return
    curves = [_line(results, result, _curve(result, percentile)) for result in results]
    title = "Latency against throughput"
    plot = xy_plot(curves, title=title, x_label="answers a minute", limit=limit)
    told = "" if limit is None else f", limit {limit:g}"
    yield figure(title, f"p{percentile}, ms{told}", plot + legend(curves))
    best = [(result, point) for result in results if (point := _best(result, percentile, limit)) is not None]
    within = [one for one in best if _is_within(one, percentile, limit)]
    above = [name(results, one[0]) for one in best if not _is_within(one, percentile, limit)]
    unit = "ms" if limit is None else f"p{percentile} within the limit, ms"
    yield _spread(results, within, above, unit=unit)
    if len(within) > 1:
        yield _speed_up(results, within, above, limit=limit)


def name(results: Sequence[ResultPart], result: ResultPart) -> str:
    """A result among others: its configuration, and its format where there are several."""
    several = len({each.payload_format for each in results}) > 1
    return f"{result.configuration}, {result.payload_format}" if several else result.configuration


def _spread(results: Sequence[ResultPart], best: Sequence[_Measured], above: Sequence[str], *, unit: str) -> str:
    """The percentiles of each; those above the limit at every load are named instead."""
    lines = [_line(results, result, _percentiles(point)) for result, point in best]
    title = "Percentiles of the best load"
    drawn = xy_plot(lines, title=title, x_label="percentile", x_marks=MARKS) + legend(lines) if lines else ""
    return figure(title, unit, drawn + _note(above))


def _speed_up(
    results: Sequence[ResultPart], best: Sequence[_Measured], above: Sequence[str], *, limit: float | None
) -> str:
    """The highest throughput of each, as so many times the first's that is within the limit."""
    first = best[0][1].all.per_minute
    values = [
        Bar(
            label=name(results, result),
            colour=_colour(results, result),
            value=point.all.per_minute / first if first else 0.0,
        )
        for result, point in best
    ]
    title = "Speed-up" if limit is None else "Speed-up within the limit"
    one, usual = values[0].label, name(results, results[0])
    instead = "" if one == usual else f" Compared with {one} in place of {usual}."
    return figure(title, f"throughput of {one} = 1", bars(values, title=title, unit=" &times;") + _note(above, instead))


def _note(above: Sequence[str], more: str = "") -> str:
    if not above:
        return ""
    told = f"Above the limit at every load, and left out: {', '.join(above)}.{more}"
    return f'<p class="note">{escape(told)}</p>'


def _best(result: ResultPart, percentile: str, limit: float | None) -> PointPart | None:
    return best_point(result, percentile=percentile, limit_ms=limit)


def _is_within(one: _Measured, percentile: str, limit: float | None) -> bool:
    """Where no load is within the limit, the best is that of the lowest latency, which is above it."""
    return limit is None or one[1].all.percentiles_ms[percentile] <= limit


def _line(results: Sequence[ResultPart], result: ResultPart, points: Sequence[tuple[float, float]]) -> Line:
    return Line(
        label=name(results, result),
        colour=_colour(results, result),
        dash=FORMATS.index(result.payload_format),
        points=points,
    )


def _colour(results: Sequence[ResultPart], result: ResultPart) -> int:
    return list(dict.fromkeys(each.configuration for each in results)).index(result.configuration)


def _curve(result: ResultPart, percentile: str) -> list[tuple[float, float]]:
    points = [point.all for point in result.points]
    return [(one.per_minute, one.percentiles_ms[percentile]) for one in points if one.percentiles_ms]


def _percentiles(point: PointPart) -> list[tuple[float, float]]:
    return [(place, point.all.percentiles_ms[share]) for place, share in enumerate(DRAWN)]


def figure(title: str, unit: str, body: str) -> str:
    """A picture with its title and what its values are."""
    return f"<figure><figcaption>{escape(title)}<span>{escape(unit)}</span></figcaption>{body}</figure>"
