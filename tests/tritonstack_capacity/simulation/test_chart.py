"""Charts: where values lie, on straight and on logarithmic axes."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tritonstack_capacity.simulation.page import Chart, Scale, svg


def test_a_logarithmic_axis_gives_each_power_of_ten_the_same_room() -> None:
    scale = Scale([3.0, 4000.0], low=0, high=400, log=True, top=None)
    assert scale.marks == [1, 10, 100, 1000, 10_000]
    assert [scale(mark) for mark in scale.marks] == pytest.approx([0, 100, 200, 300, 400])


def test_a_straight_axis_begins_at_nothing_and_ends_at_its_top() -> None:
    scale = Scale([20.0, 80.0], low=200, high=0, log=False, top=100.0)
    assert [scale(value) for value in (0, 50, 100, 120)] == [200, 100, 0, 0]


def test_very_wide_logarithmic_axes_leave_powers_out() -> None:
    marks = Scale([1e-3, 1e9], low=0, high=1, log=True, top=None).marks
    assert len(marks) <= 8
    assert marks[0] == pytest.approx(1e-3)


def test_lines_limits_and_lone_points_are_drawn_inside_the_picture() -> None:
    chart = Chart(
        key="k",
        title="Latency <all>",
        unit="ms",
        lines={"many": [(0, 5.0), (1, 50.0), (2, 0.0)], "one": [(1, 20_000.0)], "none": []},
        log_y=True,
        limit=(100.0, "limit"),
    )
    drawn = svg(chart)
    picture = ElementTree.fromstring(drawn)  # noqa: S314  (our own picture)
    assert picture.attrib["aria-label"] == "Latency <all>, ms"
    [line] = picture.findall("polyline")
    assert len(line.attrib["points"].split()) == 2  # nothing has no logarithm
    assert len(picture.findall("circle")) == 1
    assert "10k" in [each.text for each in picture.findall("text")]
    for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", line.attrib["points"]):
        assert 0 <= float(x) <= 392
        assert 0 <= float(y) <= 190


def test_a_line_without_points_is_left_out() -> None:
    chart = Chart(key="k", title="t", unit="u", lines={"none": [], "one": [(0, 1.0)]})
    assert chart.with_points().lines == {"one": [(0, 1.0)]}
