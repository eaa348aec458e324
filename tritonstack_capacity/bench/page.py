"""The page of a load test, and its table, which the terminal shows too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tritonstack.pages.charts import (
    COLOURS,
    LETTER,
    TOP,
    WIDTH,
    Axis,
    Chart,
    Line,
    Range,
    interval_stroke,
    label_at,
    line_chart,
    linear_axis,
    picture,
    value_text,
)
from tritonstack.pages.page import Figure, Page, Section, Table, render
from tritonstack_capacity.bench.document import (
    UTILIZATION_NAMES,
    BenchDocument,
    ResultPart,
    best_point,
    is_recommended,
    notes,
    utilization_at,
    where,
)
from tritonstack_capacity.bench.measuring import CONFIDENCE, IntervalPart, PointPart
from tritonstack_capacity.bench.subject import FORMATS

FARTHEST_LIMIT = 3.0
"""Times the largest value: a limit farther up would leave the values no room, and is not drawn."""
PERCENTILES = ("50", "90", "95", "99")
Measured = tuple[ResultPart, PointPart]
"""A result and its best load."""


def results_page(document: BenchDocument) -> str:
    """The page of a test that may still run."""
    recommended = is_recommended(document)
    figures = list(_recommended_figures(document) if recommended else _figures(document))
    table = results_table(document)
    sections = [
        Section(figures=figures) if figures else Section(notes=["Nothing was measured yet."]),
        *([Section(title="Every job" if recommended else "Every load", table=table)] if table.groups else []),
        Section(items=notes(document)),
    ]
    title = f"{'Load test' if recommended else 'Bench'} of environment {document.environment}"
    state = "" if document.complete else " (not complete)"
    commit = document.versions.get("commit")
    started = document.started if commit is None else f"{document.started}, commit {commit}"
    return render(Page(title=title + state, lines=(started, where(document)), sections=sections))


def results_table(document: BenchDocument) -> Table:
    """A row for each load, or for each job of Inference Recommender; no column without a figure."""
    return _jobs(document) if is_recommended(document) else _loads(document)


def _table(columns: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]) -> Table:
    """A table without the columns that are empty in every row, its first two of text, and without empty groups."""
    filled = [any(row[place] for group in groups for row in group) for place in range(len(columns))]

    def kept(row: Sequence[str]) -> list[str]:
        return [cell for cell, keep in zip(row, filled, strict=True) if keep]

    return Table(columns=kept(columns), groups=[[kept(row) for row in group] for group in groups if group], left=2)


def _figures(document: BenchDocument) -> Iterator[Figure]:
    """A configuration has one colour; the payload format is how its line is drawn."""
    percentile = f"{document.settings['rule']['percentile']:g}"
    limit = document.settings["stop"]["latency_ms"]
    results = [result for result in document.results if any(point.all.percentiles_ms for point in result.points)]
    if not results:
        return
    named = _Named(results)
    curves = [named.line(result, percentile=percentile) for result in results]
    has_intervals = any(each for line in curves for pair in line.intervals for each in pair)
    confidence = f"Strokes: {CONFIDENCE:.0%} confidence intervals over the rounds."
    note = confidence if has_intervals else ""
    yield _latency_against_throughput(
        curves, limit=limit, unit=f"p{percentile}, ms", across="responses a minute", note=note
    )
    best = [
        (result, point)
        for result in results
        if (point := best_point(result, percentile=percentile, limit_ms=limit)) is not None
    ]

    def is_within(point: PointPart) -> bool:
        return limit is None or point.all.percentiles_ms[percentile] <= limit

    within = [(result, point) for result, point in best if is_within(point)]
    above = [named.name(result) for result, point in best if not is_within(point)]
    left_out = f"Above the limit at every load, and left out: {', '.join(above)}." if above else ""
    yield _percentiles(
        named, within, unit="ms" if limit is None else f"p{percentile} within the limit, ms", note=left_out
    )
    if len(within) > 1:
        yield _highest_throughput(named, within, limit=limit, note=left_out)


class _Named:
    """Names and looks of results next to each other."""

    def __init__(self, results: Sequence[ResultPart]) -> None:
        self._several = len({each.payload_format for each in results}) > 1
        self._configurations = list(dict.fromkeys(each.configuration for each in results))

    def name(self, result: ResultPart) -> str:
        return f"{result.configuration}, {result.payload_format}" if self._several else result.configuration

    def colour(self, result: ResultPart) -> int:
        return self._configurations.index(result.configuration)

    def line(self, result: ResultPart, *, percentile: str) -> Line:
        """Latency against throughput."""
        points = [each for each in result.points if each.all.percentiles_ms]
        return Line(
            label=self.name(result),
            points=[(each.all.per_minute, each.all.percentiles_ms[percentile]) for each in points],
            intervals=[(_range(each.per_minute), _range(each.latency_ms)) for each in points],
            colour=self.colour(result),
            dash=self.dash(result),
        )

    def dash(self, result: ResultPart) -> int:
        return FORMATS.index(result.payload_format)


def _range(interval: IntervalPart | None) -> Range | None:
    """The confidence interval; None where one round has none."""
    if interval is None or not interval.half_width:
        return None
    return interval.mean - interval.half_width, interval.mean + interval.half_width


def _model(result: ResultPart) -> str:
    """The model folder of a result: that of its overlay, where it is one."""
    return result.model.removesuffix(f"-{result.configuration}")


def _latency_against_throughput(
    lines: Sequence[Line],
    *,
    limit: float | None,
    unit: str,
    across: str,
    legend: Sequence[Line] | None = None,
    note: str = "",
) -> Figure:
    known = [pair for line in lines for pair in line.intervals]
    values = [*(y for line in lines for _, y in line.points), *(up[1] for _, up in known if up)]
    rates = [*(x for line in lines for x, _ in line.points), *(across[1] for across, _ in known if across)]
    limits = [] if limit is None or limit > FARTHEST_LIMIT * max(values) else [(limit, "limit")]
    chart = Chart(
        title="Latency against throughput",
        unit=unit if limit is None else f"{unit}, limit {limit:g}",
        lines=lines,
        x=linear_axis(rates, label=across),
        y=linear_axis([*values, *(value for value, _ in limits)]),
        limits=limits,
        dots=True,
    )
    return Figure(title=chart.title, unit=chart.unit, picture=line_chart(chart), legend=legend or lines, note=note)


def _percentiles(named: _Named, best: Sequence[Measured], *, unit: str, note: str) -> Figure:
    """Percentiles of each result's best load; results above the limit at every load are named instead."""
    lines = [
        Line(
            label=named.name(result),
            points=[(float(place), point.all.percentiles_ms[share]) for place, share in enumerate(PERCENTILES)],
            colour=named.colour(result),
            dash=named.dash(result),
        )
        for result, point in best
    ]
    marks = [(float(place), f"p{share}") for place, share in enumerate(PERCENTILES)]
    chart = Chart(
        title="Percentiles of the best load",
        unit=unit,
        lines=lines,
        x=Axis(least=0.0, greatest=marks[-1][0], marks=marks, label="percentile"),
        y=linear_axis([y for line in lines for _, y in line.points]),
        dots=True,
    )
    return Figure(title=chart.title, unit=unit, picture=line_chart(chart) if lines else "", legend=lines, note=note)


def _highest_throughput(named: _Named, best: Sequence[Measured], *, limit: float | None, note: str) -> Figure:
    """Throughput of each, and where all are of one model, as a multiple of the first."""
    base = best[0][1].all.per_minute
    same = base > 0 and len({_model(result) for result, _ in best}) == 1
    bars = [
        Bar(
            label=named.name(result),
            value=point.all.per_minute,
            text=value_text(point.all.per_minute) + (f" ({point.all.per_minute / base:.2f} \u00d7)" if same else ""),
            colour=named.colour(result),
            interval=_range(point.per_minute),
        )
        for result, point in best
    ]
    heading = "Highest throughput" if limit is None else "Highest throughput within the limit"
    notes = [f"{named.name(best[0][0])} = 1 \u00d7."] * same + [note] * bool(note)
    return Figure(title=heading, unit="requests a minute", picture=bar_chart(bars, title=heading), note=" ".join(notes))


def _loads(document: BenchDocument) -> Table:
    percentile = f"{document.settings['rule']['percentile']:g}"
    columns = ("configuration", "load", "a minute", "± %", "p50 ms", f"p{percentile} ms", "± %", "p99 ms", "rounds")
    more = ("failed", "Triton ms", "queue ms", "compute ms", "batch", *UTILIZATION_COLUMNS)
    named = _Named(document.results)
    groups = [
        [[*_cells(named.name(result), point, percentile), *_utilization(result, point)] for point in result.points]
        for result in document.results
    ]
    return _table((*columns, *more), groups)


def _cells(name: str, point: PointPart, percentile: str) -> Iterator[str]:
    values = point.all.percentiles_ms
    numbers = [
        *(point.all.per_minute, _spread(point.per_minute), values.get("50")),
        *(values.get(percentile), _spread(point.latency_ms), values.get("99")),
    ]
    yield from (name, point.load)
    yield from ("" if value is None else value_text(value) for value in numbers)
    yield f"{len(point.rounds)}{', unstable' if len(point.rounds) > 1 and not point.stable else ''}"
    yield Markup('<span class="bad">{}</span>').format(point.all.failed) if point.all.failed else "0"
    servers = [(each.request_ms, each.queue_ms, each.compute_ms, each.mean_batch) for each in point.server[:1]]
    yield from map(value_text, servers[0]) if servers else [""] * 4


UTILIZATION_COLUMNS = tuple(f"{name} %" for name in UTILIZATION_NAMES.values())


def _utilization(result: ResultPart, point: PointPart) -> Iterator[str]:
    used = utilization_at(result, point)
    for field in UTILIZATION_NAMES:
        value = getattr(used, field, None)
        yield "" if value is None else value_text(value)


def _spread(interval: IntervalPart | None) -> float | None:
    """Half the width of the confidence interval, per cent of the mean."""
    return None if interval is None or interval.share is None else round(interval.share * 100, 1)


def _recommended_figures(document: BenchDocument) -> Iterator[Figure]:
    """A point for each configuration and instance type, at the most invocations that Inference Recommender found."""
    measured = [
        (each, rate, latency)
        for each in document.results
        if (rate := _rate(each)) and (latency := _latency(each)) is not None
    ]
    if not measured:
        return
    colours = {name: number for number, name in enumerate(dict.fromkeys(each.configuration for each, _, _ in measured))}
    points = [
        Line(label=_label(each), colour=colours[each.configuration], points=[(rate, latency)])
        for each, rate, latency in measured
    ]
    keys = [Line(label=name, colour=number, points=()) for name, number in colours.items()]
    across = "invocations a minute and instance"
    limit = document.settings["stop"]["latency_ms"]
    yield _latency_against_throughput(points, limit=limit, unit="ms", across=across, legend=keys)
    heading = "Throughput of an instance"
    bars = [
        Bar(label=_label(each), value=rate, text=value_text(rate), colour=colours[each.configuration])
        for each, rate, _ in measured
    ]
    yield Figure(title=heading, unit="invocations a minute", picture=bar_chart(bars, title=heading))


def _jobs(document: BenchDocument) -> Table:
    limit = document.settings["stop"]["latency_ms"]
    rows: list[tuple[str, ...]] = []
    for result in document.results:
        rate, latency = _rate(result), _latency(result)
        rows.append(
            (
                *(result.configuration, result.instance_type, str(result.instance_count)),
                *(value_text(rate * result.instance_count) if rate else "", value_text(rate) if rate else ""),
                "" if latency is None else value_text(latency),
                "" if latency is None else "yes" if latency <= limit else "no",
                *(_utilization(result, result.points[0]) if result.points else [""] * len(UTILIZATION_COLUMNS)),
            )
        )
    columns = ("configuration", "instance type", "instances", "a minute", "a minute each", "latency ms", "within limit")
    return _table((*columns, *UTILIZATION_COLUMNS), [rows])


def _rate(result: ResultPart) -> float:
    """Invocations a minute and instance; 0 where the job has none."""
    return result.points[0].all.per_minute / result.instance_count if result.points else 0.0


def _latency(result: ResultPart) -> float | None:
    """Milliseconds as Inference Recommender gives them; the percentile is not stated."""
    found = result.points[0].latency_ms if result.points else None
    return None if found is None else found.mean


def _label(result: ResultPart) -> str:
    return f"{result.configuration}, {result.instance_type.removeprefix('ml.')}"


BAR = 20
BAR_LABEL = 150


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A horizontal bar."""

    label: str
    value: float
    text: str  # behind the bar
    colour: int = 0
    interval: Range | None = None


def bar_chart(bars: Sequence[Bar], *, title: str) -> Markup:
    """Bars one below the other, with their texts; long labels are cut."""
    most = max(value for bar in bars for value in (bar.value, *(bar.interval or ()))) or 1.0
    room = WIDTH - BAR_LABEL - 12 - LETTER * max(len(bar.text) for bar in bars)
    parts: list[Markup] = []
    for number, bar in enumerate(bars):
        y = TOP + number * BAR
        width = end = max(1.0, bar.value / most * room)
        letters = int((BAR_LABEL - 6) / LETTER)
        short = bar.label if len(bar.label) <= letters else f"…{bar.label[1 - letters :]}"
        parts.append(label_at(BAR_LABEL - 6, y + 11, short, anchor="end"))
        shape = Markup('<rect x="{}" y="{}" width="{:.1f}" height="{}" rx="2" class="c{}"><title>{}</title></rect>')
        parts.append(shape.format(BAR_LABEL, y, width, BAR - 6, bar.colour % COLOURS, bar.label))
        if bar.interval is not None:
            least, greatest = (max(each, 0.0) / most * room for each in bar.interval)
            parts.append(interval_stroke(BAR_LABEL + least, BAR_LABEL + greatest, y + BAR / 2 - 3, look="over"))
            end = max(width, greatest)
        parts.append(label_at(BAR_LABEL + end + 5, y + 11, bar.text, anchor="start"))
    return picture(parts, title=title, height=TOP * 2 + len(bars) * BAR)
