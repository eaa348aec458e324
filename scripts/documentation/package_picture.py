"""``docs/pictures/packages.svg``: which part of the code imports which."""

from __future__ import annotations

from scripts.documentation.drawing import PADDING, Box, Drawing, title_width
from scripts.documentation.import_graph import SINGLE, Graph, direct, import_graph, joined, layers, single_modules

WIDTH, ROW, GAP = 900, 100, 50


def package_picture() -> str:
    """The picture of the code as it is."""
    return draw(joined(import_graph()))


def draw(graph: Graph) -> str:
    """The picture of a graph without circles."""
    drawing = Drawing(
        title="Packages", description="Each box is a package; a line leads from one to another that it imports."
    )
    drawing.text(20, 24, "A line: imports. What follows from other lines is not drawn.", style="small")
    boxes: dict[str, Box] = {}
    for number, row in enumerate(layers(graph)):
        widths = [title_width(shown(name)) + 2 * PADDING for name in row]
        x = max(20.0, (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2)
        for name, width in zip(row, widths, strict=True):
            boxes[name] = Box(x=x, y=44 + ROW * number, width=width, title=shown(name))
            x += width + GAP
    for a, b in direct(graph):
        start, end = boxes[a], boxes[b]
        low = start.y + start.height
        bend = min((end.y - low) / 2, ROW / 2)
        drawing.arrow(
            f"M{start.centre:g} {low:g}C{start.centre:g} {low + bend:g} {end.centre:g} {end.y - bend:g} "
            f"{end.centre:g} {end.y:g}"
        )
    for box in boxes.values():
        drawing.box(box)
    return drawing.svg()


def shown(name: str) -> str:
    """Packages of tritonstack by their own names, the modules that are in none by theirs."""
    return name.replace(SINGLE, ", ".join(single_modules())).replace("tritonstack.", "")
