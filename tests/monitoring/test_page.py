"""The page as text: its content, its text where there is no data, and that it loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.cases import cases
from tests.fake_aws import FakeAws, pages
from tests.monitoring.settings_of import DIGITS, PROJECTS, environment
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack.monitoring.graphs import Graph
from tritonstack.monitoring.metric import Metric, Search, Series
from tritonstack.monitoring.page import Figures, Lines, Span, page, plot, read_graph

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = Span.last(1, now=NOW)


def points(*values: float, span: Span = HOUR) -> list[tuple[float, float]]:
    """Values of the periods that follow each other from the beginning on."""
    return [(span.start.timestamp() + number * span.period, value) for number, value in enumerate(values)]


def metric(name: str) -> Metric:
    return Metric(namespace="AWS/SageMaker", name=name, dimensions=(("EndpointName", "e"),), statistic="Sum")


def graph(**changes: Any) -> Graph:
    series = tuple(Series.of(key, f"line <{key}>", metric(key)) for key in ("first", "second"))
    return Graph(**{"key": "g", "title": "Title & more", "unit": "ms", "series": series, **changes})


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def drawn(*, local: bool = True, refresh_seconds: int | None = None) -> str:
    """The page of an environment of which the calls alone have data."""
    dashboard = dashboard_of(environment(DIGITS), projects=PROJECTS)
    samples: dict[tuple[str, str], Lines] = {
        (section.key, each.key): {line.key: [] for line in each.series} for section, each in dashboard.graphs()
    }
    samples["digits", "traffic"] = {"calls": points(1, 2, 4)}
    figures = Figures(samples=samples, span=HOUR, local=local)
    return page(dashboard, figures, refresh_seconds=refresh_seconds)


def figure(text: str, key: str) -> str:
    """One graph's element."""
    found = re.search(rf'<figure id="[^"]*-{key}".*?</figure>', text, flags=re.DOTALL)
    assert found is not None
    return found[0]


def test_every_graph_of_the_definition_is_on_the_page_once() -> None:
    dashboard = dashboard_of(environment(DIGITS), projects=PROJECTS)
    ids = [attributes["id"] for tag, attributes in Tags(drawn()).found if tag == "figure"]
    assert ids == [f"{section.key}-{each.key}" for section, each in dashboard.graphs()]


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = drawn()
    assert '<meta http-equiv="refresh" content="60">' in drawn(refresh_seconds=60), "only a served page is loaded anew"
    for tag, attributes in Tags(text).found:
        assert tag not in {"script", "link", "img", "iframe", "object"}
        assert not {"src", "href", "srcset"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in text


def test_a_graph_with_data_is_drawn_with_its_figures() -> None:
    found = figure(drawn(), "traffic")
    assert 'data-points="3"' in found
    assert "<polyline" in found
    assert "<td>4</td><td>2.33</td><td>4</td>" in found


@cases("key, local, words")
def test_a_graph_without_data_shows_the_reason(key: str, local: bool, words: str) -> None:
    found = figure(drawn(local=local), key)
    assert 'data-points="0"' in found
    assert words in found
    assert "<svg" not in found


def test_lines_are_dotted_across_periods_without_data_and_percent_axes_reach_a_hundred() -> None:
    whole = points(*range(1, 31))
    text = plot(graph(), {"first": [*whole[:10], *whole[14:]], "second": whole[3:20]}, HOUR)
    assert (text.count("<polyline"), text.count(' gap"'), text.count("<rect")) == (4, 1, 0)
    assert ">100</text>" in plot(graph(maximum=100), {"first": points(1, 2), "second": []}, HOUR)


@pytest.mark.parametrize(
    ("minutes", "bars"),
    [(range(9), 9), (range(10), 0), (range(0, 60, 5), 12), ([*range(20), *range(22, 60, 5)], 0)],
    ids=["few in a row", "enough in a row", "one in five minutes", "some scattered"],
)
def test_sparse_data_are_bars(minutes: Iterable[int], bars: int) -> None:
    whole = points(*([1.0] * 60))
    text = plot(graph(), {"first": [whole[minute] for minute in minutes], "second": []}, HOUR)
    assert text.count("<rect") == bars
    assert ("<polyline" in text) is (bars == 0)


# Requests to CloudWatch.


def test_three_hours_are_shown_by_minutes_and_two_weeks_by_hours_without_the_current_minute() -> None:
    assert (Span.last(3, now=NOW).period, Span.last(360, now=NOW).period) == (60, 3600)
    assert Span.last(0.1, now=NOW).start == NOW - timedelta(minutes=6)
    assert Span.last(1, now=NOW + timedelta(seconds=59)) == HOUR


@pytest.mark.parametrize(
    ("first", "start"),
    [(40, 40), (178, 165), (0, 0), (None, 0)],
    ids=["at the first data", "a quarter of an hour at least", "all of it", "all of it without data"],
)
def test_the_time_range_fits_the_data(first: int | None, start: int) -> None:
    """``first``: the minute of a three hours' range in which data begin."""
    span = Span.last(3, now=NOW)
    moment = span.start.timestamp()
    data = {} if first is None else {("digits", "late"): {"a": [], "b": [(moment + first * 60, 1.0)]}}
    fitted = span.fitted(data)
    assert (fitted.start - span.start, fitted.end) == (timedelta(minutes=start), span.end)


def test_pages_of_a_response_are_put_together_in_the_order_of_time() -> None:
    def result(key: str, minute: int, value: float) -> dict[str, Any]:
        return {"Id": key, "Timestamps": [NOW + timedelta(minutes=minute)], "Values": [value]}

    first, second = [result("first", 1, 2.0)], [result("first", 0, 1.0), result("second", 0, 9.0)]
    aws = FakeAws(responses={"cloudwatch.GetMetricData": pages("MetricDataResults", first, second)})
    lines = read_graph(aws.client("cloudwatch"), graph(), HOUR)
    assert lines == {
        "first": [(NOW.timestamp(), 1.0), (NOW.timestamp() + 60, 2.0)],
        "second": [(NOW.timestamp(), 9.0)],
    }
    assert [each.get("NextToken") for each in aws.requests("GetMetricData")] == [None, "1"]


def test_of_a_search_each_line_that_it_finds_is_drawn_with_its_own_label() -> None:
    search = Search(metric=metric("Calls"), by=("InstanceId",))
    searched = graph(series=(Series.each("found", search),))
    results = [
        {"Id": "found", "Label": name, "Timestamps": [HOUR.start], "Values": [value], "StatusCode": "Complete"}
        for name, value in (("i-2", 5.0), ("i-1", 3.0))
    ]
    aws = FakeAws(responses={"cloudwatch.GetMetricData": pages("MetricDataResults", results)})
    lines = read_graph(aws.client("cloudwatch"), searched, HOUR)
    assert list(lines.values()) == [points(5.0), points(3.0)]
    text = plot(searched, lines, HOUR)
    assert text.index("i-1") < text.index("i-2")
