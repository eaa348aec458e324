"""A graph as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tritonstack.monitoring.graph import Graph
from tritonstack.monitoring.page.axis import time_marks, time_text, value_marks, value_text
from tritonstack.monitoring.page.samples import Lines, Points, Span

WIDTH, HEIGHT = 392, 190
LEFT, RIGHT, TOP, BOTTOM = 48, 10, 8, 22
COLOURS = ("c0", "c1", "c2", "c3")
"""Classes of the style, which has a light and a dark colour for each; told apart by colour-blind people too."""
HEADROOM = 1.05
"""A line along the upper edge would look cut off."""
A_DAY = 86_400


class Plane:
    """Where times and values lie in the picture."""

    def __init__(self, *, span: Span, top: float) -> None:
        """``top``: the value at the upper edge; 0 is at the lower one."""
        self.start, self.end, self.top = span.start.timestamp(), span.end.timestamp(), top

    def x(self, moment: float) -> float:
        """Of a time, within the frame."""
        share = (min(max(moment, self.start), self.end) - self.start) / (self.end - self.start)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Of a value."""
        return TOP + (1 - value / self.top) * (HEIGHT - TOP - BOTTOM)


def plot(graph: Graph, lines: Lines, span: Span) -> str:
    """The SVG element of a graph that has data."""
    values = [value for points in lines.values() for _, value in points] + [each.value for each in graph.limits]
    whole = all(value == int(value) for value in values)
    marks = value_marks(max([*values, 0.0]) * HEADROOM if graph.maximum is None else graph.maximum, whole=whole)
    plane = Plane(span=span, top=marks[-1])
    parts = [*_grid(plane, marks), *_times(plane, span)]
    for limit in graph.limits:
        parts += _limit(plane, limit.value, limit.label)
    for colour, series in zip(COLOURS, graph.series, strict=False):
        parts += _line(plane, lines[series.key], period=span.period, colour=colour)
    label = escape(f"{graph.title}, {graph.unit}")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _grid(plane: Plane, marks: Sequence[float]) -> Iterator[str]:
    for mark in marks:
        y = plane.y(mark)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="mark" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{value_text(mark)}</text>'


def _times(plane: Plane, span: Span) -> Iterator[str]:
    days = (span.end - span.start).total_seconds() > A_DAY
    for mark in time_marks(plane.start, plane.end, most=3 if days else 5):
        x = plane.x(mark)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}"/>'
        anchor = "end" if x > WIDTH - RIGHT - 30 else "middle"
        yield (
            f'<text class="mark" x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">'
            f"{time_text(mark, days=days)}</text>"
        )


def _limit(plane: Plane, value: float, label: str) -> Iterator[str]:
    y = plane.y(value)
    yield f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield f'<text class="limit" x="{WIDTH - RIGHT - 2}" y="{y - 3:.1f}" text-anchor="end">{escape(label)}</text>'


def _line(plane: Plane, points: Points, *, period: int, colour: str) -> Iterator[str]:
    """Runs of periods that follow each other; a gap is a gap, for there nothing was measured."""
    for run in runs(points, period=period):
        places = [(plane.x(moment + period / 2), plane.y(min(value, plane.top))) for moment, value in run]
        if len(places) == 1:
            [(x, y)] = places
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" class="{colour}"/>'
        else:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline points="{path}" class="{colour}"/>'


def runs(points: Points, *, period: int) -> Iterator[list[tuple[float, float]]]:
    """Points of which each is one period after the one before."""
    run: list[tuple[float, float]] = []
    for point in points:
        if run and point[0] - run[-1][0] > period * 1.5:
            yield run
            run = []
        run.append(point)
    if run:
        yield run
