"""SVG that is the same bytes for the same drawing, in light and in dark, with nothing from outside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

LINE = 16
"""Pixels from one line of text to the next."""
LETTER, BOLD_LETTER, BOLD_MARGIN = 6.6, 7.2, 16
"""Pixels that a letter of 12 px takes at most on average in a sans-serif typeface."""
PADDING = 10
STYLE = """
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-weight: 600 } .small { fill: #59636e } .page { fill: #ffffff }
.group { fill: #f6f8fa; stroke: #d1d9e0 } .box { fill: #ffffff; stroke: #8c959f }
.line { fill: none; stroke: #59636e; stroke-width: 1.2 } .tip { fill: #59636e }
.strong { stroke: #0969da; stroke-width: 1.6 } .said { paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small { fill: #9198a1 } .page { fill: #0d1117 }
.group { fill: #151b23; stroke: #3d444d } .box { fill: #0d1117; stroke: #656c76 }
.line { stroke: #9198a1 } .tip { fill: #9198a1 } .strong { stroke: #4493f8 } .said { stroke: #0d1117 }
}
"""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle with a title and lines under it; ``x`` and ``y`` are its upper left corner, in pixels."""

    x: float
    y: float
    width: float
    title: str
    lines: Sequence[str] = ()
    style: str = "box"
    least_height: float = 0

    @property
    def height(self) -> float:
        """As its text needs, or more where more is asked for."""
        return max(self.least_height, box_height(self.lines))

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return self.y + self.height / 2

    @property
    def centre(self) -> float:
        """How far to the right its middle is."""
        return self.x + self.width / 2


def box_height(lines: Sequence[str]) -> float:
    """The height of a box with a title and these lines."""
    return 2 * PADDING - 4 + LINE * (1 + len(lines))


def text_width(text: str) -> float:
    """About the width of a text, rather more than less."""
    return LETTER * len(text)


def title_width(text: str) -> float:
    """The same for a box's title, which is bold; short ones may have wide letters alone."""
    return BOLD_LETTER * len(text) + BOLD_MARGIN


class Drawing:
    """A picture; what is drawn later lies above."""

    def __init__(self, *, title: str, description: str) -> None:
        """Title and description are what people get who do not see it."""
        self._head = f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>"
        self._parts: list[str] = []
        self._right = self._bottom = 0.0

    def box(self, box: Box) -> None:
        """Draw a rectangle with its text."""
        self._reach(box.x + box.width, box.y + box.height)
        place = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
        self._parts.append(f'<rect class="{box.style}" {place} rx="6"/>')
        self.text(box.x + PADDING, box.y + PADDING + 8, box.title, style="title")
        for number, line in enumerate(box.lines, start=1):
            self.text(box.x + PADDING, box.y + PADDING + 8 + LINE * number, line, style="small")

    def text(self, x: float, y: float, text: str, *, style: str = "", anchor: str = "start") -> None:
        """Draw a line of text that begins, or has its middle or end, at ``x``."""
        self._reach(x + (text_width(text) if anchor == "start" else 0), y)
        self._parts.append(f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')

    def arrow(self, path: str, *, style: str = "") -> None:
        """Draw a path of SVG with a tip at its end."""
        self._parts.append(f'<path class="line {style}" marker-end="url(#tip)" d="{path}"/>')

    def svg(self) -> str:
        """The whole file."""
        width, height = round(self._right + 20), round(self._bottom + 20)
        return "\n".join([*self._opening(width, height), *self._parts, "</svg>", ""])

    def _opening(self, width: int, height: int) -> Iterator[str]:
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        yield self._head
        yield f"<style>{STYLE}</style>"
        yield (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
        )
        yield f'<rect class="page" width="{width}" height="{height}"/>'

    def _reach(self, x: float, y: float) -> None:
        self._right, self._bottom = max(self._right, x), max(self._bottom, y)
