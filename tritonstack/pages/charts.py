"""Charts as SVG: lines or bars over time or over values, on straight or logarithmic axes.

Colours are classes of the page's style, which has a light and a dark value for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from markupsafe import Markup

WIDTH, HEIGHT = 392, 190
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 8, 22
LABEL_ROOM = 16
"""Pixels below the marks for the label of the horizontal axis."""
COLOURS, DASHES = 8, 4
"""Classes ``c0`` to ``c7`` and ``d0`` to ``d3``."""
HEADROOM = 1.05
"""A line along the upper edge would look cut off."""
LETTER = 6.0
"""Width of a letter, pixels, about."""
LETTER_HEIGHT, ABOVE_LINE = 10.0, 3.0
"""Height of a letter, pixels, about; and the space between a limit's line and its label."""
STEPS = (1.0, 2.0, 5.0, 10.0)
TIME_STEPS = tuple(minutes * 60 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080))
A_DAY = 86_400
WIDEST_BAR, NARROWEST_BAR, LEAST_BAR, BETWEEN = 14.0, 2.0, 1.5, 0.5
"""Of bars over time, pixels: widths, height of a zero, space between two."""
WHISKER = 3.0
"""Pixels of the stroke that ends an interval, on each side."""

Range = tuple[float, float]
"""Least and greatest value of an interval."""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a chart, its points from left to right. Colours and dashes repeat beyond those of the style."""

    label: str
    points: Points
    colour: int = 0
    dash: int = 0
    intervals: Sequence[tuple[Range | None, Range | None]] = ()  # of each point, across and up; None: not known

    @property
    def look(self) -> str:
        """Classes of the style."""
        return f"c{self.colour % COLOURS} d{(self.dash + self.colour // COLOURS * 2) % DASHES}"


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis from ``least`` to ``greatest``; ``marks``: values and their text."""

    least: float
    greatest: float
    marks: Sequence[tuple[float, str]]
    label: str = ""
    log: bool = False

    def share(self, value: float) -> float:
        """Position of a value, 0 to 1; values outside are at the edge."""
        least, greatest = self.least, self.greatest
        if self.log:
            value, least, greatest = (math.log10(max(each, self.least)) for each in (value, least, greatest))
        return min(max((value - least) / (greatest - least), 0.0), 1.0)


def linear_axis(values: Iterable[float], *, top: float | None = None, label: str = "") -> Axis:
    """From 0 to a round value above all; ``top``: to exactly there."""
    found = [*values, 0.0]
    whole = all(value == int(value) for value in found)
    marks = value_marks(max(found) * HEADROOM if top is None else top, whole=whole)
    greatest = marks[-1] if top is None else top
    shown = [(mark, mark_text(mark)) for mark in marks if mark <= greatest]
    return Axis(least=0.0, greatest=greatest, marks=shown, label=label)


def time_axis(start: float, end: float) -> Axis:
    """Of seconds since 1970, marked in UTC: ``14:05``, or ``21 Nov 14:05`` beyond a day."""
    most, form = (3, "%-d %b %H:%M") if end - start > A_DAY else (5, "%H:%M")
    marks = time_marks(start, end, most=most)
    return Axis(
        least=start, greatest=end, marks=[(mark, datetime.fromtimestamp(mark, tz=UTC).strftime(form)) for mark in marks]
    )


def value_marks(largest: float, *, most: int = 5, whole: bool = False) -> list[float]:
    """Round values from 0 to at or above ``largest``, at most ``most`` steps of them; ``whole``: no parts of one."""
    if largest <= 0:
        return [0.0, 1.0]
    power = 10 ** math.floor(math.log10(largest / most))
    step = next(power * each for each in STEPS if power * each * most >= largest * (1 - 1e-9))
    step = max(step, 1.0) if whole else step
    steps = min(most, math.ceil(largest / step * (1 - 1e-9)))
    return [step * number for number in range(steps + 1)]


def value_text(value: float) -> str:
    """A value for reading: three significant digits, thousands by a thin space, no exponent."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f")
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}" if size >= 0.01 else f"{value:.2g}"


def mark_text(value: float) -> str:
    """A value short enough for the space next to an axis: ``20k``, ``1.5M``."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return value_text(value)


def time_marks(start: float, end: float, *, most: int = 5) -> list[float]:
    """Round times (UTC) between two times in seconds since 1970, at most ``most`` of them."""
    step = next((each for each in TIME_STEPS if (end - start) / each <= most), TIME_STEPS[-1])
    first = math.ceil(start / step) * step
    return [first + step * number for number in range(int((end - first) // step) + 1)]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Lines between two axes, or bars."""

    title: str
    unit: str  # of the vertical axis
    lines: Sequence[Line]
    x: Axis
    y: Axis
    limits: Sequence[tuple[float, str]] = field(default_factory=tuple)  # values with a dashed line across, and labels
    gap: float | None = None  # distance between points from which on they are connected by dots; None: lines alone
    dots: bool = False  # whether each point is marked, with its label and values as a tooltip
    bars: float | None = None  # how much of the horizontal axis a group of bars may take; None: lines


def line_chart(chart: Chart) -> Markup:
    """The SVG element. Points that a logarithmic axis cannot show (zero or less) are left out."""
    parts = [*_marks_up(chart.y), *_marks_across(chart.x)]
    for number, line in enumerate(chart.lines):
        parts += _line(chart, line) if chart.bars is None else _bars(chart, line, number=number, width=chart.bars)
    for value, label in chart.limits:
        y = _y(chart, value)
        parts.append(Markup('<line class="limit" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(LEFT, _EDGE, y, y))
        text = Markup('<text class="limit" x="{}" y="{:.1f}" text-anchor="end">{}</text>')
        fits = y - ABOVE_LINE - LETTER_HEIGHT >= 0  # at the upper edge it is cut off
        parts.append(text.format(_EDGE - 2, y - ABOVE_LINE if fits else y + ABOVE_LINE + LETTER_HEIGHT, label))
    return picture(parts, title=f"{chart.title}, {chart.unit}", height=HEIGHT + (LABEL_ROOM if chart.x.label else 0))


_EDGE = WIDTH - RIGHT


def _x(chart: Chart, value: float) -> float:
    return LEFT + chart.x.share(value) * (_EDGE - LEFT)


def _y(chart: Chart, value: float) -> float:
    return TOP + (1 - chart.y.share(value)) * (HEIGHT - TOP - BOTTOM)


def _marks_up(axis: Axis) -> Iterator[Markup]:
    for value, text in axis.marks:
        y = TOP + (1 - axis.share(value)) * (HEIGHT - TOP - BOTTOM)
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(LEFT, _EDGE, y, y)
        yield label_at(LEFT - 6, y + 3.5, text, anchor="end")


def _marks_across(axis: Axis) -> Iterator[Markup]:
    bottom = HEIGHT - BOTTOM
    for value, text in axis.marks:
        x = LEFT + axis.share(value) * (_EDGE - LEFT)
        yield Markup('<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(x, x, bottom, bottom + 4)
        fits = x + LETTER / 2 * len(text) <= WIDTH
        yield label_at(x if fits else WIDTH, HEIGHT - 6, text, anchor="middle" if fits else "end")
    if axis.label:
        yield label_at((LEFT + _EDGE) / 2, HEIGHT + LABEL_ROOM - 6, axis.label, anchor="middle")


def label_at(x: float, y: float, text: str, *, anchor: str) -> Markup:
    """A text in the style of an axis's marks; ``anchor``: which part of it is at ``x`` (start, middle, end)."""
    return Markup('<text class="mark" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _line(chart: Chart, line: Line) -> Iterator[Markup]:
    shown = [(x, y) for x, y in line.points if (x > 0 or not chart.x.log) and (y > 0 or not chart.y.log)]
    last: tuple[float, float] | None = None
    for run in runs(shown, gap=chart.gap):
        places = [(_x(chart, x), _y(chart, y)) for x, y in run]
        if last is not None:
            yield _polyline([last, places[0]], look=f"{line.look} gap")
        if len(places) > 1:
            yield _polyline(places, look=line.look)
        if len(places) == 1 or chart.dots:
            for (x, y), values in zip(places, run, strict=True):
                dot = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.5" class="{}">{}</circle>')
                told = f"{line.label}: {value_text(values[0])}, {value_text(values[1])}"
                yield dot.format(x, y, line.look, Markup("<title>{}</title>").format(told) if chart.dots else "")
        last = places[-1]
    for (x, y), (across, up) in zip(line.points, line.intervals, strict=False):
        if across is not None:
            yield interval_stroke(_x(chart, across[0]), _x(chart, across[1]), _y(chart, y), look=line.look)
        if up is not None:
            yield interval_stroke(_y(chart, up[1]), _y(chart, up[0]), _x(chart, x), look=line.look, upright=True)


def _polyline(places: Points, *, look: str) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return Markup('<polyline points="{}" class="{}"/>').format(path, look)


def interval_stroke(start: float, end: float, at: float, *, look: str, upright: bool = False) -> Markup:
    """A stroke from ``start`` to ``end`` with a short one across each end, in pixels."""
    strokes = [((start, at), (end, at)), *(((each, at - WHISKER), (each, at + WHISKER)) for each in (start, end))]
    turned = [((y, x), (v, u)) for (x, y), (u, v) in strokes] if upright else strokes
    path = "".join(f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}" for (x, y), (u, v) in turned)
    return Markup('<path d="{}" class="interval {}"/>').format(path, look)


def _bars(chart: Chart, line: Line, *, number: int, width: float) -> Iterator[Markup]:
    """One line's bars; those of several lines are next to each other. A zero is a stroke on the axis."""
    room = width / (chart.x.greatest - chart.x.least) * (_EDGE - LEFT) * 0.8
    one = min(max(room / len(chart.lines), NARROWEST_BAR), WIDEST_BAR)
    bar = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"><title>{}</title></rect>')
    for x, y in line.points:
        left = _x(chart, x) + one * (number - len(chart.lines) / 2)
        height = max(HEIGHT - BOTTOM - _y(chart, y), LEAST_BAR)
        told = f"{line.label}: {value_text(y)}"
        yield bar.format(left, HEIGHT - BOTTOM - height, one - BETWEEN, height, line.look, told)


def runs(points: Points, *, gap: float | None) -> Iterator[Points]:
    """Points in a row, split where two are farther apart than ``gap``: nothing was measured between them."""
    run: list[tuple[float, float]] = []
    for point in points:
        if run and gap is not None and point[0] - run[-1][0] > gap:
            yield run
            run = []
        run.append(point)
    if run:
        yield run


def picture(parts: Iterable[Markup], *, title: str, height: float) -> Markup:
    """The SVG element of these parts, ``WIDTH`` wide."""
    head = Markup('<svg viewBox="0 0 {} {:g}" role="img" aria-label="{}">').format(WIDTH, height, title)
    return head + Markup().join(parts) + Markup("</svg>")


def key(line: Line) -> Markup:
    """A piece of the line, for a legend."""
    svg = Markup('<svg viewBox="0 0 26 8" class="key"><polyline points="1,4 25,4" class="{}"/></svg>')
    return svg.format(line.look)
