"""Charts: marks that are round and few, values in their place on straight and logarithmic axes, gaps, limits."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.pages.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    Line,
    line_chart,
    linear_axis,
    time_marks,
    value_marks,
    value_text,
)
from tritonstack_capacity.bench.page import Bar, bar_chart
from tritonstack_capacity.simulation.page import log_axis, minutes_axis


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_marks_begin_at_zero_reach_the_largest_value_and_are_few(largest: float) -> None:
    marks = value_marks(largest)
    assert marks[0] == 0
    assert marks[-1] >= largest * (1 - 1e-6)
    assert 2 <= len(marks) <= 6
    assert len({value_text(mark) for mark in marks}) == len(marks)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.00002, "2e-05"), (0.7364, "0.736"), (12.34, "12.3"), (123.4, "123"), (8.0, "8"),
        (12345.6, "12\u202f346"),
    ],
)  # fmt: skip
def test_values_are_short(value: float, text: str) -> None:
    assert value_text(value) == text


@given(st.floats(min_value=360, max_value=1_296_000), st.integers(1_600_000_000, 2_000_000_000))
def test_marks_of_time_are_round_minutes_within_the_plot(seconds: float, start: int) -> None:
    marks = time_marks(start, start + seconds)
    assert len(marks) <= 6
    assert all(start <= mark <= start + seconds and mark % 60 == 0 for mark in marks)


def test_a_logarithmic_axis_gives_each_power_of_ten_the_same_room() -> None:
    axis = log_axis([3.0, 4000.0])
    assert [mark for mark, _ in axis.marks] == [1, 10, 100, 1000, 10_000]
    assert [axis.share(mark) for mark, _ in axis.marks] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert len(log_axis([1e-3, 1e9]).marks) <= 9


@pytest.mark.parametrize(
    ("end", "last", "step"),
    [(240, 240, 30), (240.4, 240, 30), (250, 300, 60), (0.5, 1, 1), (7, 7, 1), (10_080, 10_080, 1440)],
)
def test_a_duration_ends_at_a_round_mark(end: float, last: float, step: float) -> None:
    marks = [mark for mark, _ in minutes_axis(end).marks]
    assert marks[-1] == minutes_axis(end).greatest == last
    assert marks[1] - marks[0] == step
    assert len(marks) <= 10


def drawn(*points: tuple[float, float], **how: Any) -> ET.Element:
    values = [y for _, y in points]
    axes = {"x": linear_axis([x for x, _ in points]), "y": linear_axis(values)}
    line = Line(label="line <a>", points=points)
    chart = Chart(**{"title": "Title & more", "unit": "ms", "lines": [line], **axes, **how})
    return ET.fromstring(line_chart(chart))  # noqa: S314 - our own


def paths(picture: ET.Element) -> list[list[tuple[float, float]]]:
    lines = [each.attrib["points"].split() for each in picture.findall("polyline")]
    return [[(float(x), float(y)) for x, y in (place.split(",") for place in line)] for line in lines]


def test_a_chart_is_well_formed_and_its_words_are_escaped() -> None:
    picture = drawn((1, 1), (2, 2), limits=[(2.0, "<most>")], dots=True)
    assert picture.attrib["aria-label"] == "Title & more, ms"
    assert [each.text for each in picture.iter("text") if each.get("class") == "limit"] == ["<most>"]
    assert [each.text for each in picture.iter("title")] == ["line <a>: 1, 1", "line <a>: 2, 2"]


def test_points_farther_apart_than_the_gap_are_joined_by_dots_and_a_lonely_one_is_a_dot() -> None:
    picture = drawn((1, 1), (2, 1), (5, 1), (6, 1), (9, 1), gap=1.5)
    dotted = [" gap" in each.attrib["class"] for each in picture.findall("polyline")]
    assert [(len(path), dots) for path, dots in zip(paths(picture), dotted, strict=True)] == [
        (2, False), (2, True), (2, False), (2, True),
    ]  # fmt: skip
    whole, first_gap = paths(picture)[0], paths(picture)[1]
    assert first_gap[0] == whole[-1]
    assert len(picture.findall("circle")) == 1


def test_bars_over_time_stand_on_the_axis_next_to_each_other_around_their_moment() -> None:
    lines = [Line(label=name, points=[(2.0, value), (4.0, 0.0)]) for name, value in (("one", 1.0), ("two", 2.0))]
    x = linear_axis([0.0, 6.0])
    picture = ET.fromstring(  # noqa: S314 - our own
        line_chart(Chart(title="t", unit="u", lines=lines, x=x, y=linear_axis([2.0]), bars=1.0))
    )
    bars = [{name: float(each.attrib[name]) for name in ("x", "y", "width", "height")} for each in picture.iter("rect")]
    assert [each.text for each in picture.iter("title")] == ["one: 1", "one: 0", "two: 2", "two: 0"]
    first, zero, second, _ = bars
    assert second["height"] == pytest.approx(2 * first["height"], abs=0.2)
    assert 0 < zero["height"] < 2
    assert len({round(each["y"] + each["height"]) for each in bars}) == 1
    middle = LEFT + x.share(2.0) * (WIDTH - RIGHT - LEFT)
    assert first["x"] + first["width"] <= second["x"]
    assert first["x"] < middle <= second["x"]
    assert paths(picture) == []


def test_an_interval_reaches_from_its_least_to_its_greatest_value() -> None:
    x, y = linear_axis([4.0]), linear_axis([6.0])
    line = Line(label="a", points=[(1.0, 2.0), (2.0, 2.0)], intervals=[((0.5, 1.5), (1.0, 3.0)), (None, None)])
    picture = ET.fromstring(  # noqa: S314 - our own
        line_chart(Chart(title="t", unit="u", lines=[line], x=x, y=y))
    )
    across, up = [each.attrib["d"].split("M")[1].split("L") for each in picture.iter("path")]
    (left, _), (right, _) = [tuple(map(float, end.split())) for end in across]
    assert right - left == pytest.approx(x.share(1.0) * (WIDTH - RIGHT - LEFT), rel=0.01)
    (_, top), (_, bottom) = [tuple(map(float, end.split())) for end in up]
    assert bottom - top == pytest.approx((y.share(3.0) - y.share(1.0)) * (HEIGHT - TOP - BOTTOM), rel=0.01)


@pytest.mark.parametrize("limit", [0.0, 0.5, 0.97, 1.0])
def test_the_label_of_a_limit_is_inside_the_picture_also_at_its_upper_edge(limit: float) -> None:
    chart = Chart(
        title="t", unit="u", lines=[Line(label="a", points=[(0.0, 0.0)])], x=linear_axis([1.0]),
        y=linear_axis([], top=1.0), limits=((limit, "simulated"),),
    )  # fmt: skip
    picture = ET.fromstring(line_chart(chart))  # noqa: S314 - our own
    [label] = [each for each in picture.findall("text") if each.attrib["class"] == "limit"]
    assert 10 <= float(label.attrib["y"]) <= HEIGHT, "the baseline: letters are 10 pixels high"


def test_a_logarithmic_axis_leaves_out_what_has_no_logarithm_and_lines_stay_inside() -> None:
    picture = drawn((0, 5.0), (1, 50.0), (2, 0.0), (3, 20_000.0), y=log_axis([5, 20_000]))
    [path] = paths(picture)
    assert len(path) == 3
    assert [(x, y) for x, y in path if not (0 <= x <= WIDTH and 0 <= y <= HEIGHT)] == []


def test_bars_are_as_long_as_their_values_long_labels_are_cut_and_intervals_stay_inside() -> None:
    label = "a-very-long-configuration-name"
    bars = [Bar(label="one", value=1.0, text="1 x"), Bar(label=label, value=2.0, text="2 x", interval=(-1.0, 5.0))]
    picture = ET.fromstring(bar_chart(bars, title="t"))  # noqa: S314
    short, long = [float(each.attrib["width"]) for each in picture.findall("rect")]
    assert long == pytest.approx(2 * short, rel=0.01)
    texts = [each.text or "" for each in picture.findall("text")]
    assert (texts[0], texts[1], texts[3]) == ("one", "1 x", "2 x")
    assert texts[2].startswith("…")
    assert label.endswith(texts[2][1:])
    [stroke] = [each.attrib["d"].split("M")[1].split("L") for each in picture.iter("path")]
    (start, _), (end, _) = [tuple(map(float, each.split())) for each in stroke]
    assert start == float(picture.findall("rect")[1].attrib["x"])
    assert start + long < end < float(picture.findall("text")[3].attrib["x"]) < WIDTH
