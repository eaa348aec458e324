"""Boxes and lines of a layered graph: nothing overlaps, and no line runs behind a box."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from scripts.documentation.layered import Passage, centres, layered

GAP = 10.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Up to five rows of up to four boxes, and lines from higher rows to lower ones."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    rows = [[f"{row}.{number}" for number in range(size)] for row, size in enumerate(sizes)]
    pairs = [(a, b) for number, row in enumerate(rows) for a in row for lower in rows[number + 1 :] for b in lower]
    return rows, sorted(draw(st.sets(st.sampled_from(pairs)))) if pairs else []


@given(graphs())
def test_every_line_has_a_place_in_each_row_that_it_crosses_and_every_box_stays_in_its_row(
    graph: tuple[list[list[str]], list[tuple[str, str]]],
) -> None:
    rows, edges = graph
    found = layered(rows, edges)
    assert [sorted(place for place in row if isinstance(place, str)) for row in found.rows] == [
        sorted(row) for row in rows
    ]
    assert sorted(found.lines) == edges
    for (a, b), places in found.lines.items():
        assert (places[0], places[-1]) == (a, b)
        start = next(number for number, row in enumerate(rows) if a in row)
        assert all(place in found.rows[start + step] for step, place in enumerate(places))
        assert all(isinstance(place, Passage) for place in places[1:-1])


@given(graphs(), st.integers(1, 60))
def test_what_stands_in_a_row_keeps_its_distance(
    graph: tuple[list[list[str]], list[tuple[str, str]]], width: int
) -> None:
    found = layered(*graph)
    widths = {place: 2.0 if isinstance(place, Passage) else float(width) for row in found.rows for place in row}
    middles = centres(found, widths=widths, gap=GAP)
    assert (
        min(
            x - widths[place] / 2
            for row, xs in zip(found.rows, middles, strict=True)
            for place, x in zip(row, xs, strict=True)
        )
        >= -0.1
    )
    for row, xs in zip(found.rows, middles, strict=True):
        for (a, x), (b, y) in pairwise(zip(row, xs, strict=True)):
            assert y - x >= widths[a] / 2 + GAP + widths[b] / 2 - 0.2  # positions are rounded to a tenth


def test_rows_are_ordered_so_that_lines_do_not_cross_where_they_need_not() -> None:
    found = layered([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    assert [list(row) for row in found.rows] in ([["a", "b"], ["d", "c"]], [["b", "a"], ["c", "d"]])
