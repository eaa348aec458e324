"""The claims as a picture: each ratio with its interval on one logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.scenarios.claims import Tried, Verdict
from benchmarks.scenarios.report import ratio_text

WIDTH, LABELS, VERDICTS, PAD = 1270, 480, 380, 20
TOP, ROW, BOTTOM = 50, 24, 52
MARKS = (0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""What is beyond the last one is drawn there, as an arrow: one large ratio would press all others together."""
AXIS = "times better (logarithmic)"
CLASSES = {Verdict.HOLDS: "good", Verdict.FAILS: "bad", Verdict.NO_DIFFERENCE: "even", Verdict.OPEN: "even"}
KEY = (
    "The median of the turns' ratios and its 95 % interval. Green: the claim holds; red: it does not here; "
    "grey: no difference, or open. Diamond: claimed, where that is not 1."
)
STYLE = """
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.small { fill: #59636e } .page { fill: #ffffff } .grid { stroke: #d1d9e0 } .one { stroke: #59636e }
.good { stroke: #1a7f37; fill: #1a7f37 } .bad { stroke: #cf222e; fill: #cf222e }
.even { stroke: #59636e; fill: #59636e }
line { stroke-width: 1 } line.span { stroke-width: 3 } .claimed { fill: none; stroke: #0969da; stroke-width: 1.6 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small { fill: #9198a1 } .page { fill: #0d1117 } .grid { stroke: #3d444d }
.one { stroke: #9198a1 } .good { stroke: #3fb950; fill: #3fb950 } .bad { stroke: #f85149; fill: #f85149 }
.even { stroke: #9198a1; fill: #9198a1 } .claimed { stroke: #4493f8 }
}"""


def picture(claims: Sequence[Tried]) -> str:
    """The SVG file; the same bytes for the same figures. Of at least one claim."""
    height = TOP + ROW * len(claims) + BOTTOM
    axis = _Axis([one.ratio.median for one in claims] + [end for one in claims for end in _ends(one)])
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>The published claims: times better, with 95 % intervals</title>",
        f"<desc>{KEY}</desc>",
        f"<style>{STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="small" x="{PAD}" y="24">{KEY}</text>',
        *_grid(axis, bottom=height - BOTTOM),
    ]
    for number, one in enumerate(claims):
        parts += _row(one, axis, y=TOP + ROW * number + ROW / 2)
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """From ratios to pixels, logarithmic, from mark to mark."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min([*values, 0.9]), max([*values, 2.0])
        least = max((mark for mark in MARKS if mark <= low), default=MARKS[0])
        most = min((mark for mark in MARKS if mark >= high), default=MARKS[-1])
        self.marks = [mark for mark in MARKS if least <= mark <= most]
        self._from, self._to = math.log10(least), math.log10(most)

    def __call__(self, ratio: float) -> float:
        share = (math.log10(max(ratio, 1e-9)) - self._from) / (self._to - self._from)
        left, right = LABELS, WIDTH - VERDICTS - PAD
        return left + min(max(share, 0.0), 1.0) * (right - left)


def _ends(one: Tried) -> list[float]:
    return [end for end in (one.ratio.low, one.ratio.high, one.claim.times) if end is not None]


def _grid(axis: _Axis, *, bottom: float) -> Iterator[str]:
    for mark in axis.marks:
        x = axis(mark)
        kind = "one" if mark == 1 else "grid"
        yield f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{mark:g}</text>'
    middle = (axis(axis.marks[0]) + axis(axis.marks[-1])) / 2
    yield f'<text class="small" x="{middle:.1f}" y="{bottom + 34}" text-anchor="middle">{AXIS}</text>'


def _row(one: Tried, axis: _Axis, *, y: float) -> Iterator[str]:
    shown, claimed = CLASSES[one.verdict], axis(one.claim.times)
    yield f'<text x="{LABELS - 16}" y="{y + 4:g}" text-anchor="end">{escape(one.claim.said)}</text>'
    if one.ratio.low is not None and one.ratio.high is not None:
        ends = f'x1="{axis(one.ratio.low):.1f}" x2="{axis(one.ratio.high):.1f}"'
        yield f'<line class="span {shown}" {ends} y1="{y:g}" y2="{y:g}"/>'
    if one.claim.times != 1:
        yield f'<path class="claimed" d="M{claimed:.1f} {y - 6:g}l5 6l-5 6l-5 -6z"/>'
    x = axis(one.ratio.median)
    if one.ratio.median > axis.marks[-1]:
        yield f'<path class="{shown}" d="M{x - 8:.1f} {y - 5:g}L{x:.1f} {y:g}L{x - 8:.1f} {y + 5:g}z"/>'
    else:
        yield f'<circle class="{shown}" cx="{x:.1f}" cy="{y:g}" r="4"/>'
    said = f"{ratio_text(one.ratio)}: {one.verdict}"
    yield f'<text class="small" x="{WIDTH - VERDICTS}" y="{y + 4:g}">{escape(said)}</text>'
