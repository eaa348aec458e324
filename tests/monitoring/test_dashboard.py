"""What a dashboard shows: documented metrics, of the endpoint's mode, per GPU and per instance."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cases import cases
from tests.monitoring.settings_of import DIGITS, ENDPOINTS, PROJECTS, SINGLE, environment
from tritonstack.aws_names import OF_INSTANCES
from tritonstack.monitoring.dashboard import BUILDS, COLUMNS, dashboard_body, dashboard_of
from tritonstack.monitoring.graphs import Graph
from tritonstack.monitoring.metric import Metric, Series, queries, unit_of

FUNCTIONS = {"PERIOD", "IF", "AND"}


def graphs(endpoint: dict[str, Any], **changes: Any) -> dict[str, Graph]:
    """The graphs of one endpoint by their keys."""
    [section] = dashboard_of(environment(endpoint, **changes), projects=None).sections
    assert len({graph.key for graph in section.graphs}) == len(section.graphs)
    return {graph.key: graph for graph in section.graphs}


def notes(endpoint: dict[str, Any], **changes: Any) -> str:
    [section] = dashboard_of(environment(endpoint, **changes), projects=None).sections
    return " ".join(section.notes)


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_every_metric_is_documented_with_its_dimensions_and_statistic(endpoint: dict[str, Any]) -> None:
    dashboard = dashboard_of(environment(endpoint), projects=PROJECTS)
    lines = [line for _, graph in dashboard.graphs() for line in graph.series]
    metrics = [metric for line in lines for metric in line.metrics.values()]
    metrics += [line.search.metric for line in lines if line.search is not None]
    assert len(metrics) > 20
    for metric in metrics:
        unit_of(metric)


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_every_expression_reads_metrics_of_its_own_and_nothing_else(endpoint: dict[str, Any]) -> None:
    for _, graph in dashboard_of(environment(endpoint), projects=PROJECTS).graphs():
        for line in graph.series:
            names = set(re.findall(r"\b[A-Za-z][A-Za-z0-9_]*\b", line.expression or ""))
            assert names - FUNCTIONS == (set(line.metrics) if line.expression else set())
        requested = queries(graph.series, period=60)
        assert {each["Id"] for each in requested if each["ReturnData"]} == {line.key for line in graph.series}
        # CloudWatch API reference, MetricDataQuery: the form of an Id, and that each is unique.
        assert all(re.fullmatch(r"[a-z][a-zA-Z0-9_]*", each["Id"]) for each in requested)
        assert len({each["Id"] for each in requested}) == len(requested)
        for line in graph.series:
            assert (line.key in line.metrics) is (line.text(period=60) is None)
            assert all(
                each.metrics.get(name, metric) == metric
                for each in graph.series
                for name, metric in line.metrics.items()
            )


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_what_sagemaker_writes_in_microseconds_is_shown_in_milliseconds(endpoint: dict[str, Any]) -> None:
    seen = 0
    for graph in graphs(endpoint).values():
        for line in graph.series:
            [*units] = {unit_of(metric) for metric in line.metrics.values()}
            if "Microseconds" in units:
                seen += 1
                assert units == ["Microseconds"]
                assert graph.unit == "ms"
                assert line.expression == f"{next(iter(line.metrics))} / 1000"
    assert seen >= 5


CACHE = {"loaded", "hits", "loading", "unloading"}


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [(DIGITS, CACHE), (SINGLE, set()), (ENDPOINTS["multi-model without cache"], {"loading", "unloading"})],
    ids=["multi-model", "single-model", "without a hit ratio, which would always be zero"],
)
def test_only_a_multi_model_endpoint_has_a_cache_to_show(endpoint: dict[str, Any], shown: set[str]) -> None:
    assert set(graphs(endpoint)) & CACHE == shown
    assert ("No hit ratio" in notes(endpoint)) is ("model_cache" in endpoint)


@cases("instance_type, graph, expression")
def test_gpus_and_vcpus_are_shown_each_not_their_sum(instance_type: str, graph: str, expression: str | None) -> None:
    found = graphs({**SINGLE, "instance_type": instance_type})[graph]
    assert found.series[0].expression == expression
    assert found.maximum == 100


def test_several_gpus_are_labelled_as_an_average() -> None:
    assert ("4 GPUs" in notes(SINGLE), "GPUs" in notes(DIGITS)) == (True, False)


def test_instances_are_held_against_the_limits_of_scaling() -> None:
    scaled, fixed = (
        [(each.label, each.value) for each in graphs(endpoint)["instances"].limits]
        for endpoint in (ENDPOINTS["scaled"], {**DIGITS, "initial_instance_count": 3})
    )
    assert scaled == [("minimum", 1), ("maximum", 4)]
    assert fixed == [("as set", 3)], "a lost instance lies below the line"


def evaluated(line: Series, **values: float) -> float:
    """The expression of a line, which is arithmetic, with these values; a minute's period."""
    text = re.sub(r"PERIOD\(\w+\)", "60", line.expression or "")
    assert re.fullmatch(r"[\w .*/+-]+", text)
    return float(eval(text, {"__builtins__": {}}, values))  # noqa: S307 - checked above to be arithmetic alone


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_no_line_is_a_constant_whatever_is_measured(endpoint: dict[str, Any]) -> None:
    lines = [
        line for _, each in dashboard_of(environment(endpoint), projects=PROJECTS).graphs() for line in each.series
    ]
    computed = [line for line in lines if line.expression is not None]
    assert len(computed) > 10
    for line in computed:
        names = list(line.metrics)
        values = {evaluated(line, **{name: 7.0 + by * at for at, name in enumerate(names, 1)}) for by in (1, 2, 5)}
        assert len(values) == 3, line.label


def test_two_instances_at_sixty_requests_a_minute_each_cost_the_computed_amount() -> None:
    found = graphs(DIGITS, prices={"ml.g4dn.xlarge": 0.9})
    minute = {"invocations": 120.0, "share": 60.0}
    assert evaluated(found["instances"].series[0], **minute) == 2
    assert evaluated(found["cost_per_hour"].series[0], **minute) == pytest.approx(1.8)
    calls_an_hour = 120 * 60
    assert evaluated(found["cost_per_million"].series[0], **minute) == pytest.approx(1.8 / calls_an_hour * 1e6)
    assert evaluated(found["traffic"].series[0], **minute) == 2


def test_an_unknown_price_shows_no_cost_and_the_reason() -> None:
    unknown, costs = ENDPOINTS["no price"], {"cost_per_hour", "cost_per_million"}
    assert not costs & set(graphs(unknown))
    assert "No cost: " in notes(unknown)
    prices = {"ml.g6.xlarge": 1.0}
    assert costs <= set(graphs(unknown, prices=prices))
    assert "No cost: " not in notes(unknown, prices=prices)


def test_builds_are_shown_where_there_are_projects() -> None:
    with_builds = dashboard_of(environment(), projects=PROJECTS)
    assert [section.key for section in with_builds.sections] == ["digits", BUILDS]
    assert "archives-project" in dashboard_body(with_builds)
    assert [section.key for section in dashboard_of(environment(), projects=None).sections] == ["digits"]


# The body for CloudWatch.


def body(*endpoints: dict[str, Any]) -> list[dict[str, Any]]:
    text = dashboard_body(dashboard_of(environment(*endpoints), projects=PROJECTS))
    widgets: list[dict[str, Any]] = json.loads(text)["widgets"]
    return widgets


def is_instances(widget: dict[str, Any]) -> bool:
    return str(widget["properties"].get("title", "")).startswith("Instances ")


def test_every_graph_is_a_widget_and_none_lies_over_another() -> None:
    widgets = body(DIGITS, SINGLE)
    dashboard = dashboard_of(environment(DIGITS, SINGLE), projects=PROJECTS)
    titles = [each["properties"]["title"] for each in widgets if each["type"] == "metric"]
    assert titles == [graph.title for _, graph in dashboard.graphs()]
    taken: set[tuple[int, int]] = set()
    for each in widgets:
        cells = {
            (x, y)
            for x in range(each["x"], each["x"] + each["width"])
            for y in range(each["y"], each["y"] + each["height"])
        }
        assert not cells & taken
        assert each["x"] + each["width"] <= COLUMNS
        taken |= cells


def test_a_widget_shows_its_lines_and_hides_what_they_are_made_of() -> None:
    [widget] = [each for each in body(DIGITS) if is_instances(each)]
    rows = widget["properties"]["metrics"]
    options = [row[-1] for row in rows]
    assert [each.get("visible", True) for each in options] == [False, False, True]
    assert rows[-1] == [{"id": "instances", "label": "instances with requests", "expression": "invocations / share"}]
    assert rows[0][:-1] == [
        "AWS/SageMaker", "Invocations", "EndpointName", "dev-digits", "VariantName", "g4dn-xlarge",
    ]  # fmt: skip
    assert widget["properties"]["region"] == "us-east-1"


def test_limits_are_lines_of_the_widget() -> None:
    [widget] = [each for each in body(ENDPOINTS["scaled"]) if is_instances(each)]
    assert [each["value"] for each in widget["properties"]["annotations"]["horizontal"]] == [1, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Calls"}, "no metric Calls"),
        ({"namespace": "AWS/Sagemaker"}, "no metric"),
        ({"dimensions": (("EndpointName", "e"),)}, "dimensions"),
        ({"statistic": "p99"}, "statistics"),
    ],
)
def test_an_undocumented_metric_is_found(changes: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {
        "namespace": "AWS/SageMaker",
        "name": "Invocations",
        "dimensions": (("EndpointName", "e"), ("VariantName", "v")),
        "statistic": "Sum",
    }
    unit_of(Metric(**known))
    with pytest.raises(LookupError, match=message):
        unit_of(Metric(**{**known, **changes}))


ENHANCED = ENDPOINTS["enhanced metrics, four GPUs"]


def test_each_instance_and_gpu_has_lines_with_enhanced_metrics_alone() -> None:
    more = set(graphs(ENHANCED)) - set(graphs(SINGLE))
    assert more == {"instance_calls", "instance_errors", "instance_latency", "each_gpu", "each_gpu_memory"}
    [searched] = queries(graphs(ENHANCED)["each_gpu"].series, period=300)
    assert searched["Expression"] == (
        'SEARCH(\'{"/aws/sagemaker/Endpoints",EndpointName,VariantName,InstanceId,AcceleratorId} '
        'MetricName="GPUUtilization" EndpointName="dev-single" VariantName="g5-12xlarge"\', \'Average\', 300)'
    )
    [latency] = queries(graphs(ENHANCED)["instance_latency"].series, period=60)
    assert latency["Expression"].endswith(", 'p99', 60) / 1000"), "milliseconds"
    searches = [line.search for graph in graphs(ENHANCED).values() for line in graph.series if line.search is not None]
    assert {each.metric.name for each in searches if each.by == ("InstanceId",)} <= set(OF_INSTANCES)


def test_widgets_show_utilization_at_the_interval_at_which_it_is_published() -> None:
    body = json.loads(dashboard_body(dashboard_of(environment(ENHANCED), projects=None)))
    periods = {each["properties"]["title"]: each["properties"]["period"] for each in body["widgets"][1:]}
    assert periods["GPU (GPUUtilization)"] == periods["Each GPU (GPUUtilization by InstanceId, AcceleratorId)"] == 10
    assert periods["Requests (Invocations)"] == 60
    slow = {**SINGLE, "metrics": {"seconds": 300}}
    assert {graph.period for graph in graphs(slow).values()} == {60}
