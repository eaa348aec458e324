"""GetMetricData and GetMetricStatistics in the running local AWS, on numbers worked out by hand."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cases import cases
from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Watching

OLD, NEW = {"EndpointName": "e", "VariantName": "old"}, {"EndpointName": "e", "VariantName": "new"}
Line = list[tuple[int, float]]
"""Minutes before the start, and values, the oldest first."""


def read_data(watching: Watching, *queries: dict[str, Any], minutes: int = 3, **more: Any) -> list[dict[str, Any]]:
    """MetricDataResults of the last minutes."""
    span = {"StartTime": watching.shifted_start - minutes * PERIOD, "EndTime": watching.shifted_start}
    response = watching.cloudwatch.get_metric_data(**{"MetricDataQueries": list(queries), **span, **more})
    results: list[dict[str, Any]] = response["MetricDataResults"]
    return results


def line(watching: Watching, result: dict[str, Any]) -> Line:
    """The points of a result."""
    points = zip(result["Timestamps"], result["Values"], strict=True)
    return sorted((int((time.timestamp() - watching.shifted_start) // PERIOD), value) for time, value in points)


def hidden(query: dict[str, Any]) -> dict[str, Any]:
    """A query whose data are not returned."""
    return {**query, "ReturnData": False}


@pytest.fixture
def calls(watching: Watching) -> Watching:
    """Calls 1+2, 4, none; errors 1, none, none, of the old variant; calls 8 of the new one a minute ago."""
    watching.write(1, 2, minutes_ago=3, metric="Calls", of=OLD)
    watching.write(4, minutes_ago=2, metric="Calls", of=OLD)
    watching.write(1, minutes_ago=3, metric="Errors", of=OLD)
    watching.write(8, minutes_ago=1, metric="Calls", of=NEW)
    return watching


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("100 * m2 / m1", [(-3, 100 / 3), (-2, 0)]),
        ("m1 + m2 + m3", [(-3, 4), (-2, 4), (-1, 8)]),
        ("m1 / PERIOD(m1) * 60", [(-3, 3), (-2, 4)]),
        ("e2 * 10", [(-3, 60), (-2, 80)]),
    ],
)
def test_expressions(calls: Watching, expression: str, expected: Line) -> None:
    [result] = read_data(
        calls,
        {"Id": "e1", "Expression": expression, "Label": "shown"},
        hidden({"Id": "e2", "Expression": "m1 * 2"}),
        hidden(calls.query("m1", "Calls", of=OLD)),
        hidden(calls.query("m2", "Errors", of=OLD)),
        hidden(calls.query("m3", "Calls", of=NEW)),
    )
    assert (result["Id"], result["Label"], result["StatusCode"]) == ("e1", "shown", "Complete")
    assert dict(line(calls, result)) == pytest.approx(dict(expected))


def test_statistics_agree_with_get_metric_statistics(calls: Watching) -> None:
    expected = {"Sum": 3, "Average": 1.5, "Minimum": 1, "Maximum": 2, "SampleCount": 2, "p50": 1.5, "p90": 1.9}
    results = read_data(calls, *(calls.query(stat.lower(), "Calls", stat=stat, of=OLD) for stat in expected))
    simple, percentiles = (
        calls.cloudwatch.get_metric_statistics(
            Namespace=calls.name,
            MetricName="Calls",
            Dimensions=[{"Name": key, "Value": value} for key, value in OLD.items()],
            StartTime=calls.shifted_start - 3 * PERIOD,
            EndTime=calls.shifted_start,
            Period=PERIOD,
            **wanted,
        )["Datapoints"]
        for wanted in ({"Statistics": [*expected][:5]}, {"ExtendedStatistics": [*expected][5:]})
    )
    for (stat, first), result in zip(expected.items(), results, strict=True):
        values = [{**one, **more["ExtendedStatistics"]}[stat] for one, more in zip(simple, percentiles, strict=True)]
        assert [value for _, value in line(calls, result)] == pytest.approx(values)
        assert values[0] == pytest.approx(first)
    assert [point["Timestamp"].timestamp() for point in simple] == [
        calls.shifted_start - 180,
        calls.shifted_start - 120,
    ]


@cases("query, words")
def test_invalid_expressions_are_refused(calls: Watching, query: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientError, match=words) as refusal:
        read_data(calls, query, calls.query("m1", "Calls", of=OLD))
    assert refusal.value.response["Error"]["Code"] == "ValidationError"


@pytest.mark.parametrize(
    ("datum", "words"),
    [
        ({}, "exactly one of Value, Values and StatisticValues"),
        ({"Value": 1, "Values": [1]}, "exactly one of"),
        ({"Values": [1, 2], "Counts": [1]}, "the same length"),
        ({"Values": [float(i) for i in range(151)]}, "more than 150 values"),
        ({"Value": float("nan")}, "must be of type double"),
        ({"Values": [1], "Counts": [float("inf")]}, "must be of type double"),
        (
            {"StatisticValues": {"SampleCount": 1, "Sum": float("inf"), "Minimum": 1, "Maximum": 1}},
            "must be of type double",
        ),
    ],
)
def test_invalid_data_are_refused_with_their_whole_request(
    watching: Watching, datum: dict[str, Any], words: str
) -> None:
    good = {"MetricName": "Good", "Value": 1}
    with pytest.raises(ClientError, match=words):
        watching.cloudwatch.put_metric_data(Namespace=watching.name, MetricData=[good, {"MetricName": "M", **datum}])
    assert watching.cloudwatch.list_metrics(Namespace=watching.name)["Metrics"] == []


def test_a_datum_without_a_time_is_of_the_clocks_now(watching: Watching) -> None:
    watching.emulator.advance(24 * 3600)
    watching.cloudwatch.put_metric_data(Namespace=watching.name, MetricData=[{"MetricName": "M", "Value": 3}])
    now = time.time()
    [result] = watching.cloudwatch.get_metric_data(
        MetricDataQueries=[watching.query("m1", "M")], StartTime=now - 120, EndTime=now + 120
    )["MetricDataResults"]
    assert result["Values"] == [3]


GPU = {**OLD, "InstanceId": "i-1", "AcceleratorId": "0"}


def test_a_search_finds_each_metric_of_its_dimensions_and_no_other(watching: Watching) -> None:
    for gpu, value in (("0", 20.0), ("1", 90.0)):
        watching.write(value, metric="Used", of={**GPU, "AcceleratorId": gpu})
    watching.write(1, metric="Used", of=OLD)
    watching.write(1, metric="Used", of={**GPU, "VariantName": "new"})
    schema = f'"{watching.name}",EndpointName,VariantName,InstanceId,AcceleratorId'
    search = f'SEARCH(\'{{{schema}}} MetricName="Used" EndpointName="e" VariantName="old"\', \'Maximum\', 60)'
    template = "${PROP('Dim.InstanceId')} ${PROP('Dim.AcceleratorId')}"
    found = read_data(watching, {"Id": "s", "Expression": search, "Label": template})
    assert [(each["Id"], each["Label"], line(watching, each)) for each in found] == [
        ("s", "i-1 0", [(-1, 20.0)]),
        ("s", "i-1 1", [(-1, 90.0)]),
    ]
    divided = read_data(watching, {"Id": "s", "Expression": f"{search} / 10"})
    assert [each["Values"] for each in divided] == [[2.0], [9.0]]


def test_a_query_gives_the_greatest_of_what_it_finds_and_other_queries_are_refused(watching: Watching) -> None:
    for gpu, value in (("0", 20.0), ("1", 90.0)):
        watching.write(value, metric="Used", of={**GPU, "AcceleratorId": gpu})
    schema = f'"{watching.name}", EndpointName, VariantName, InstanceId, AcceleratorId'
    query = f"SELECT MAX(Used) FROM SCHEMA({schema}) WHERE EndpointName = 'e' AND VariantName = 'old'"  # noqa: S608
    [found] = read_data(watching, {"Id": "q", "Expression": query, "Period": 60})
    assert line(watching, found) == [(-1, 90.0)]
    for wrong, words in ((f"{query} GROUP BY InstanceId", "it has SEARCH"), ("SEARCH('Used', 'Sum')", "it has SEARCH")):
        with pytest.raises(ClientError, match=words):
            read_data(watching, {"Id": "q", "Expression": wrong, "Period": 60})
