"""Lines and bars as SVG, in the look of the dashboard's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tritonstack.observability.page.axis import value_marks, value_text

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
