"""``docs/pictures/packages.svg``: which part of the code imports which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from scripts.documentation.drawing import PADDING, Box, Drawing, title_width
from scripts.documentation.import_graph import SINGLE, Graph, direct, import_graph, joined, layers, single_modules
from scripts.documentation.layered import Layered, Passage, Place, centres, layered

LEFT, TOP, ROW, GAP, PASSAGE = 20, 44, 90, 24, 2
"""In pixels: the margins, from row to row, between what stands in a row, and the width of a line that goes past it."""


def package_picture() -> str:
    """The picture of the code as it is."""
    return draw(joined(import_graph()))


def draw(graph: Graph) -> str:
    """The picture of a graph without circles."""
    drawing = Drawing(
        title="Packages", description="Each box is a package; a line leads from one to another that it imports."
    )
    drawing.text(20, 24, "A line: imports. What follows from other lines is not drawn.", style="small")
    found = layered(layers(graph), list(direct(graph)))
    boxes = _boxes(found)
    for places in found.lines.values():
        drawing.arrow(_path([boxes[place] for place in places]))
    for place, box in boxes.items():
        if not isinstance(place, Passage):
            drawing.box(box)
    return drawing.svg()


def _boxes(found: Layered) -> dict[Place, Box]:
    """What stands in each place; a passage is a box without text, as high as the others and as wide as a line."""
    titles = {place: "" if isinstance(place, Passage) else shown(place) for row in found.rows for place in row}
    widths = {place: title_width(text) + 2 * PADDING if text else PASSAGE for place, text in titles.items()}
    return {
        place: Box(x=LEFT + x - widths[place] / 2, y=TOP + ROW * number, width=widths[place], title=titles[place])
        for number, (row, middles) in enumerate(zip(found.rows, centres(found, widths=widths, gap=GAP), strict=True))
        for place, x in zip(row, middles, strict=True)
    }


def _path(boxes: Sequence[Box]) -> str:
    """From under the first box to above the last, straight past the rows between and curved from row to row."""
    parts = [f"M{boxes[0].centre:g} {boxes[0].y + boxes[0].height:g}"]
    for upper, lower in pairwise(boxes):
        low = upper.y + upper.height
        bend = (lower.y - low) / 2
        if upper is not boxes[0]:
            parts.append(f"V{low:g}")
        parts.append(
            f"C{upper.centre:g} {low + bend:g} {lower.centre:g} {lower.y - bend:g} {lower.centre:g} {lower.y:g}"
        )
    return "".join(parts)


def shown(name: str) -> str:
    """Packages of tritonstack by their own names, the modules that are in none by theirs."""
    return name.replace(SINGLE, ", ".join(single_modules())).replace("tritonstack.", "")
