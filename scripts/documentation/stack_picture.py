"""``docs/pictures/stacks.svg``: stacks, constructs and resources of an environment, and what reads what."""

from __future__ import annotations

from collections import Counter
from textwrap import wrap

from scripts.documentation.drawing import LETTER, LINE, PADDING, Box, Drawing, box_height
from scripts.documentation.stack_graph import SHOWN, StackGraph, in_order, shown_environment, stack_graph

WIDTH, GAP, BETWEEN = 290, 14, 140
"""Of a construct's box; between boxes of a stack; between columns."""
TOP = 90
COLUMNS = (("artifacts", "network"), ("builds", "observability"), ("serving",))
"""Which kinds of stack stand above each other; others come into the last column."""


def stack_picture() -> str:
    """The picture of the committed snapshot."""
    return draw(stack_graph(shown_environment()))


def draw(graph: StackGraph) -> str:
    """The picture of any environment."""
    drawing = Drawing(
        title=f"Stacks of environment {SHOWN}",
        description="Boxes: constructs, with resources and references. Lines: parameters read of other stacks.",
    )
    drawing.text(20, 24, "→ refers to, in the template; blue: reads an SSM parameter of another stack", style="small")
    stacks: dict[str, Box] = {}
    for number, column in enumerate(_columns(graph)):
        y = float(TOP)
        for name in column:
            stacks[name] = _stack(drawing, graph, name, x=20 + number * (WIDTH + 2 * PADDING + BETWEEN), y=y)
            y += stacks[name].height + 60
    past = 0
    for (reader, written), values in sorted(graph.outer.items()):
        if stacks[reader].x - stacks[written].x > WIDTH + 2 * PADDING + BETWEEN:
            _past_a_column(drawing, stacks[reader], stacks[written], sorted(values), number=past)
            past += 1
        else:
            _between(drawing, stacks[reader], stacks[written], sorted(values))
    return drawing.svg()


def _columns(graph: StackGraph) -> list[list[str]]:
    kinds = [kind for column in COLUMNS for kind in column]
    columns: list[list[str]] = [[] for _ in COLUMNS]
    for name in sorted(
        graph.types, key=lambda each: (kinds.index(k) if (k := each.partition("-")[0]) in kinds else 99, each)
    ):
        place = next((number for number, kinds in enumerate(COLUMNS) if name.partition("-")[0] in kinds), -1)
        columns[place].append(name)
    return columns


def _stack(drawing: Drawing, graph: StackGraph, name: str, *, x: float, y: float) -> Box:
    """Draw one stack with its constructs, each with those that it refers to."""
    names = in_order(graph.types[name], graph.inner[name])
    texts = {
        each: [*_lines(graph.types[name][each]), *_referred([b for a, b in sorted(graph.inner[name]) if a == each])]
        for each in names
    }
    height = LINE + PADDING * 2 + sum(box_height(texts[each]) + GAP for each in names)
    stack = Box(x=x, y=y, width=WIDTH + 2 * PADDING, title=f"{SHOWN}-{name}", style="group", least_height=height)
    drawing.box(stack)
    y += LINE + PADDING * 2
    for each in names:
        box = Box(x=x + PADDING, y=y, width=WIDTH, title=each, lines=texts[each])
        drawing.box(box)
        y += box.height + GAP
    return stack


def _lines(types: Counter[str]) -> list[str]:
    return [f"{count} x {name}" if count > 1 else name for name, count in sorted(types.items())]


def _referred(names: list[str]) -> list[str]:
    """The constructs that one refers to, in lines as wide as its box."""
    if not names:
        return []
    return wrap("→ " + ", ".join(names), width=int((WIDTH - 2 * PADDING) / LETTER), subsequent_indent="   ")


def _between(drawing: Drawing, reader: Box, written: Box, values: list[str]) -> None:
    """A line from the stack that reads to the one that writes, with what it reads."""
    if reader.x == written.x:  # one above the other
        x = reader.centre
        drawing.arrow(f"M{x:g} {reader.y:g}L{x:g} {written.y + written.height:g}", style="strong")
        for number, value in enumerate(reversed(values)):
            drawing.text(x + 8, reader.y - 8 - LINE * number, value, style="said")
        return
    right = written.x + written.width
    y = min(max(written.middle, reader.y + 40), reader.y + reader.height - 20)
    drawing.arrow(
        f"M{reader.x:g} {y:g}C{reader.x - 60:g} {y:g} {right + 60:g} {written.middle:g} {right:g} {written.middle:g}",
        style="strong",
    )
    for number, value in enumerate(values):
        middle = (y + written.middle) / 2 - 8 - LINE * (len(values) - 1 - number)
        drawing.text((reader.x + right) / 2, middle, value, style="said", anchor="middle")


def _past_a_column(drawing: Drawing, reader: Box, written: Box, values: list[str], *, number: int) -> None:
    """A line over the column between two stacks, into the right side of the one that is read."""
    right = written.x + written.width
    start, top, channel = reader.centre + 24 * number, TOP - 16 - 18 * number, right + 12 + 10 * number
    drawing.arrow(
        f"M{start:g} {reader.y:g}V{top:g}H{channel:g}V{written.middle:g}H{right:g}",
        style="strong",
    )
    drawing.text(reader.centre - 8, top - 4, ", ".join(values), style="said", anchor="end")
