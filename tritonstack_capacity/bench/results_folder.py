"""The folder of results: document, measurements.csv and a self-contained page, written anew after each load."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pydantic import ValidationError

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.monitoring.page.axis import value_marks, value_text
from tritonstack.monitoring.page.style import STYLE
from tritonstack_capacity.bench.document import (
    BenchDocument,
    IntervalPart,
    PointPart,
    ResultPart,
    best_point,
    measurements_csv,
    result_notes,
    where,
)
from tritonstack_capacity.bench.subject import FORMATS

WIDTH, HEIGHT = 392, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 22, 8, 34
COLOURS, DASHES = 8, 4
"""Classes ``c0`` to ``c7`` and ``d0`` to ``d3`` of the page's style."""
HEADROOM = 1.05
FARTHEST_LIMIT = 3.0
"""Times the largest value: a line farther up would leave the values no room."""
BAR = 20
LABEL = 150
LETTER = 6.0
"""Width of a letter, about: what is too long for its place is cut, and told whole by its title."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Places to connect in their order.

    Attributes:
        label: what it is of.
        colour, dash: its look; both go round where there are more than the page's style has.
        points: across and up.
    """

    label: str
    colour: int
    dash: int
    points: Sequence[tuple[float, float]]

    @property
    def look(self) -> str:
        """Its classes."""
        return f"c{self.colour % COLOURS} d{(self.dash + self.colour // COLOURS * 2) % DASHES}"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A value; ``colour`` as a line's."""

    label: str
    colour: int
    value: float


def xy_plot(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    limit: float | None = None,
    x_marks: Sequence[tuple[float, str]] = (),
) -> str:
    """Both axes begin at 0.

    Args:
        lines: at least one, of at least one point.
        title: what the picture shows.
        x_label: below the horizontal axis.
        limit: a value across, which nothing should be above; not drawn where it is far above all.
        x_marks: place and text of each mark; without them round values.
    """
    places = [point for line in lines for point in line.points]
    across = list(x_marks) or [(mark, value_text(mark)) for mark in value_marks(max(x for x, _ in places) * HEADROOM)]
    most = max(y for _, y in places)
    limit = None if limit is None or limit > FARTHEST_LIMIT * most else limit
    up = value_marks(max(most, limit or 0.0) * HEADROOM)
    frame = _Frame(right=across[-1][0], top=up[-1])
    parts = [*_grid(frame, across, up, x_label)]
    if limit is not None:
        y = frame.y(limit)
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="limit" x="{WIDTH - RIGHT - 2}" y="{y - 3:.1f}" text-anchor="end">limit</text>')
    for line in lines:
        path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{path}" class="{line.look}"/>')
        parts += [
            f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="2.6" class="{line.look}">'
            f"<title>{escape(line.label)}: {value_text(x)}, {value_text(y)}</title></circle>"
            for x, y in line.points
        ]
    return _svg(parts, title=title, height=HEIGHT)


def bars(values: Sequence[Bar], *, title: str, unit: str) -> str:
    """One below the other, their values behind them."""
    most = max(one.value for one in values) or 1.0
    room = WIDTH - LABEL - 60
    parts = []
    for number, one in enumerate(values):
        y = TOP + number * BAR
        width = max(1.0, one.value / most * room)
        place = f'x="{LABEL - 6}" y="{y + 11:.1f}" text-anchor="end"'
        parts.append(f'<text class="mark" {place}>{escape(_cut(one.label))}<title>{escape(one.label)}</title></text>')
        look = f"c{one.colour % COLOURS}"
        parts.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR - 6}" rx="2" class="{look}"/>')
        at = f'x="{LABEL + width + 5:.1f}" y="{y + 11:.1f}"'
        parts.append(f'<text class="mark" {at}>{value_text(one.value)}{unit}</text>')
    return _svg(parts, title=title, height=TOP * 2 + len(values) * BAR)


def legend(lines: Sequence[Line]) -> str:
    """Which line is what."""
    items = "".join(
        f'<li><svg viewBox="0 0 26 8" class="key"><polyline points="1,4 25,4" class="{line.look}"/></svg>'
        f"{escape(line.label)}</li>"
        for line in lines
    )
    return f'<ul class="legend">{items}</ul>'


class _Frame:
    def __init__(self, *, right: float, top: float) -> None:
        self._right, self._top = right, top

    def x(self, value: float) -> float:
        return LEFT + value / self._right * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (1 - value / self._top) * (HEIGHT - TOP - BOTTOM)


def _grid(frame: _Frame, across: Sequence[tuple[float, str]], up: Sequence[float], x_label: str) -> Iterator[str]:
    for mark in up:
        y = frame.y(mark)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="mark" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{value_text(mark)}</text>'
    for place_of_mark, text in across:
        place = f'x="{frame.x(place_of_mark):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle"'
        yield f'<text class="mark" {place}>{text}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text class="mark" x="{middle:.0f}" y="{HEIGHT - 5}" text-anchor="middle">{escape(x_label)}</text>'


def _cut(text: str) -> str:
    most = int((LABEL - 6) / LETTER)
    return text if len(text) <= most else f"…{text[1 - most :]}"


def _svg(parts: Sequence[str], *, title: str, height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


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


MORE_STYLE = """
:root { --c4: #a3194a; --c5: #00788a; --c6: #6b6f00; --c7: #555f6b; }
@media (prefers-color-scheme: dark) { :root { --c4: #f0709b; --c5: #43c3d6; --c6: #bfc43a; --c7: #9aa6b3; } }
.c4 { --own: var(--c4); } .c5 { --own: var(--c5); } .c6 { --own: var(--c6); } .c7 { --own: var(--c7); }
polyline.d1 { stroke-dasharray: 6 3; } polyline.d2 { stroke-dasharray: 2 2.5; }
polyline.d3 { stroke-dasharray: 8 3 2 3; }
rect { fill: var(--own); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 6px 0 0; padding: 0; list-style: none;
          font-size: 12px; color: var(--soft); }
.legend li, .note { overflow-wrap: anywhere; }
svg.key { display: inline-block; width: 26px; height: 8px; margin: 0 6px 0 0; vertical-align: middle; }
.wide { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 9px 11px; margin-top: 10px;
        overflow-x: auto; }
.wide table { width: auto; font-variant-numeric: tabular-nums; }
.wide td, .wide th { padding: 3px 0 3px 18px; }
.wide td:first-child, .wide th:first-child { padding-left: 0; width: auto; }
.wide td:nth-child(2), .wide th:nth-child(2) { text-align: left; }
.wide tr.first td { border-top: 1px solid var(--line); }
.wide td.bad { color: var(--fault); }
.notes { margin: 10px 0 0; padding-left: 18px; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
"""


def page(document: BenchDocument) -> str:
    """The whole document, whole or not."""
    notes = [line for result in document.results for line in result_notes(result)]
    when = f"{document.started}, commit {document.versions.get('commit', 'unknown')}"
    return framed(
        title=f"Bench of environment {document.environment}{'' if document.complete else ' (not complete)'}",
        told=(when, where(document)),
        figures=pictures(document),
        table=_table(document),
        notes=notes,
    )


def framed(
    *, title: str, told: Iterable[str], figures: Iterable[str], table: Iterable[str], notes: Iterable[str]
) -> str:
    """A page around figures and a table, which are HTML; ``told`` stands below the title, ``notes`` at the end."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in notes)
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}{MORE_STYLE}</style></head><body><main>",
        f"<header><h1>{escape(title)}</h1><p>{'<br>'.join(map(escape, told))}</p></header>",
        '<section><div class="graphs">',
        *figures,
        "</div></section>",
        *table,
        f'<ul class="notes">{lines}</ul>' if lines else "",
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _table(document: BenchDocument) -> Iterator[str]:
    percentile = f"{document.settings['rule']['percentile']:g}"
    names = ("configuration", "load", "a minute", "± %", "p50 ms", f"p{percentile} ms", "± %", "p99 ms", "rounds")
    more = ("failed", "Triton ms", "queue ms", "compute ms", "batch")
    yield '<section><h2>Every load</h2><div class="wide"><table><tr>'
    yield "".join(f"<th>{name}</th>" for name in (*names, *more))
    yield "</tr>"
    for result in document.results:
        for number, point in enumerate(result.points):
            begins = "" if number else ' class="first"'
            yield f"<tr{begins}>{''.join(_cells(document, result, point, percentile))}</tr>"
    yield "</table></div></section>"


def _cells(document: BenchDocument, result: ResultPart, point: PointPart, percentile: str) -> Iterator[str]:
    values = point.all.percentiles_ms
    numbers = [
        *(point.all.per_minute, _spread_text(point.per_minute), values.get("50")),
        *(values.get(percentile), _spread_text(point.latency_ms), values.get("99")),
    ]
    yield f"<td>{escape(name(document.results, result))}</td><td>{escape(point.load)}</td>"
    yield from (f"<td>{'' if value is None else value_text(value)}</td>" for value in numbers)
    unstable = len(point.rounds) > 1 and not point.stable
    yield f"<td>{len(point.rounds)}{', unstable' if unstable else ''}</td>"
    yield f'<td class="bad">{point.all.failed}</td>' if point.all.failed else "<td>0</td>"
    server = point.server[0] if point.server else None
    told = [] if server is None else [server.request_ms, server.queue_ms, server.compute_ms, server.mean_batch]
    yield from (f"<td>{value_text(value)}</td>" for value in told)


def _spread_text(interval: IntervalPart | None) -> float | None:
    """Half the width of the confidence interval, per cent of the mean."""
    if interval is None or interval.half_width is None or not interval.mean:
        return None
    return round(interval.half_width / interval.mean * 100, 1)


JSON, CSV, PAGE = "results.json", "measurements.csv", "index.html"


class ResultsFolder:
    """One folder of results."""

    def __init__(self, folder: Path) -> None:
        """The folder is made when something is written."""
        self.folder = folder

    def make(self) -> None:
        """Make the folder, and see that it can be written to. Raises InputError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            found = f"{self.folder}: {error.strerror}"
            problem = Problem(field="--to", found=found, allowed="a folder that can be made and written to")
            raise InputError([problem]) from error

    def write(self, document: BenchDocument) -> None:
        """The document, its table for `tritonstack capacity size`, and its page.

        Raises:
            WorkFailedError: they cannot be written, as on a full disk; what was written before is still there.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._put(JSON, json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
            self._put(CSV, measurements_csv(document))
            self._put(PAGE, page(document))
        except OSError as error:
            raise WorkFailedError(f"{self.folder}: results cannot be written: {error.strerror}") from error

    def _put(self, name: str, text: str) -> None:
        temporary = self.folder / f".{name}.{os.getpid()}"
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self.folder / name)
        finally:
            temporary.unlink(missing_ok=True)


def results_file(named: Path) -> Path:
    """The file of results that a person names by itself, or by its folder."""
    # Path.is_dir() raises where a folder above may not be entered; reading the file says that as a problem.
    return named / JSON if os.path.isdir(named) else named  # noqa: PTH112


def read_results(file: Path) -> BenchDocument:
    """Results that were written earlier. Raises InputError."""
    try:
        return BenchDocument.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            [Problem(file=str(file), found=_unreadable(error), allowed="results of tritonstack capacity bench")]
        ) from error
    except ValidationError as error:
        problems = [
            Problem(
                file=str(file),
                field=".".join(map(str, one["loc"])),
                found=one["msg"],
                allowed="results of tritonstack capacity bench, schema_version 1",
            )
            for one in error.errors()[:10]
        ]
        raise InputError(problems) from error


def _unreadable(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, OSError):
        return error.strerror or "unreadable"
    return f"no UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
