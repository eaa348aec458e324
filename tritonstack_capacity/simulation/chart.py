"""A chart of lines as SVG, in the look of the observability's page; either axis may be logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from tritonstack.observability.page.axis import value_marks, value_text
from tritonstack.observability.page.plot import BOTTOM, COLOURS, HEADROOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What a chart shows.

    Attributes:
        key: unique on the page.
        title, unit: above it; the unit is that of the values.
        lines: label → points from left to right, at most four lines.
        across: what the horizontal axis is, below it.
        top: the greatest value shown; None: a little above the values.
        log_x, log_y: logarithmic axes: values of zero or less are left out.
        limit: a value with a dashed line, and its label.
    """

    key: str
    title: str
    unit: str
    lines: dict[str, Points]
    across: str = "minutes"
    top: float | None = None
    log_x: bool = False
    log_y: bool = False
    limit: tuple[float, str] | None = None

    def with_points(self) -> Chart:
        """Without the lines that have none."""
        return replace(self, lines={label: points for label, points in self.lines.items() if points})


class Scale:
    """From values to pixels."""

    def __init__(
        self, values: Sequence[float], *, low: float, high: float, log: bool, top: float | None, most: int = 5
    ) -> None:
        """``low`` and ``high``: pixels of the smallest and greatest value; ``top`` overrides the greatest.

        ``most``: steps between the marks of an axis that is not logarithmic.
        """
        self._low, self._high, self._log = low, high, log
        if log:
            least, greatest = min(values, default=1.0), max(values, default=10.0)
            first = math.floor(math.log10(least))
            last = max(math.ceil(math.log10(greatest) - 1e-9), first + 1)
            step = max(1, math.ceil((last - first) / 6))
            self.marks = [10.0**power for power in range(first, last + 1, step)]
            self._from, self._to = float(first), float(last)
            return
        whole = all(value == int(value) for value in values)
        self.marks = value_marks(max([*values, 0.0]) * HEADROOM if top is None else top, most=most, whole=whole)
        self._from, self._to = 0.0, self.marks[-1] if top is None else top

    def __call__(self, value: float) -> float:
        """The pixel, within the frame."""
        shown = math.log10(value) if self._log else value
        share = (shown - self._from) / (self._to - self._from)
        return self._low + min(max(share, 0.0), 1.0) * (self._high - self._low)


def svg(chart: Chart) -> str:
    """The SVG element; of a chart with a point at least."""
    lines = {label: _shown(points, chart) for label, points in chart.lines.items()}
    across = [x for points in lines.values() for x, _ in points]
    values = [y for points in lines.values() for _, y in points]
    if chart.limit is not None:
        values.append(chart.limit[0])
    end = None if chart.log_x else max(across, default=1.0)
    x = Scale(across, low=LEFT, high=WIDTH - RIGHT, log=chart.log_x, top=end, most=8)
    y = Scale(values, low=HEIGHT - BOTTOM, high=TOP, log=chart.log_y, top=chart.top)
    parts = [*_rows(y), *_columns(x, chart.across)]
    if chart.limit is not None:
        parts += _limit(y(chart.limit[0]), chart.limit[1])
    for colour, points in zip(COLOURS, lines.values(), strict=False):
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        if len(points) == 1:
            [(at, value)] = points
            parts.append(f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="2.5" class="{colour}"/>')
        elif points:
            parts.append(f'<polyline points="{path}" class="{colour}"/>')
    label = escape(f"{chart.title}, {chart.unit}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _shown(points: Points, chart: Chart) -> Points:
    return [(x, y) for x, y in points if (x > 0 or not chart.log_x) and (y > 0 or not chart.log_y)]


def _rows(y: Scale) -> Iterator[str]:
    for mark in y.marks:
        at = y(mark)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text class="mark" x="{LEFT - 6}" y="{at + 3.5:.1f}" text-anchor="end">{_mark_text(mark)}</text>'


def _columns(x: Scale, across: str) -> Iterator[str]:
    """Marks below; the axis' name stands at the right end, in the place of a mark."""
    edge = WIDTH - RIGHT
    room = edge - 6 * len(across) - 14
    for mark in x.marks:
        at = x(mark)
        yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}"/>'
        if at <= room:
            yield f'<text class="mark" x="{at:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{_mark_text(mark)}</text>'
    yield f'<text class="mark" x="{edge}" y="{HEIGHT - 6}" text-anchor="end">{escape(across)}</text>'


def _mark_text(value: float) -> str:
    """Short enough for the space beside an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return value_text(value)


def _limit(at: float, label: str) -> Iterator[str]:
    yield f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
    yield f'<text class="limit" x="{WIDTH - RIGHT - 2}" y="{at - 3:.1f}" text-anchor="end">{escape(label)}</text>'
