"""Metric filters are evaluated on the lines that containers write; saved queries are kept, and run."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cases import cases
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.monitoring.log_lines import LOADED, QUERY, UNLOADED

# As the local Triton (24.10) and one of 22.x wrote them.
LINES = """\
I1128 19:38:42.463352 1 model_lifecycle.cc:839] "successfully loaded '/opt/ml/model/::double'"
I1128 19:38:44.208044 1 model_lifecycle.cc:624] "successfully unloaded '/opt/ml/model/::double' version 1"
I1101 13:16:00.113837 103 model_repository_manager.cc:1214] successfully unloaded 'bert' version 1
I1128 19:38:42.463352 1 model_lifecycle.cc:472] "loading: double:1"
"""


def filter_of(group: str, pattern: str, metric: str, namespace: str) -> dict[str, object]:
    """A template's resource."""
    transformation = {"MetricNamespace": namespace, "MetricName": metric, "MetricValue": "1", "Unit": "Count"}
    properties = {"LogGroupName": group, "FilterPattern": pattern, "MetricTransformations": [transformation]}
    return {"Type": "AWS::Logs::MetricFilter", "Properties": properties}


def test_loads_and_unloads_of_both_log_formats_are_counted_by_the_stacks_patterns(aws: Emulator, name: str) -> None:
    logs, group = aws.client("logs"), f"/aws/sagemaker/Endpoints/{name}"
    logs.create_log_group(logGroupName=group)
    logs.create_log_stream(logGroupName=group, logStreamName="one")
    aws.deploy(
        name,
        {each.name: filter_of(group, each.pattern, each.name, f"tritonstack/{name}") for each in (LOADED, UNLOADED)},
    )
    now = int(time.time() * 1000)
    events = [{"timestamp": now, "message": line} for line in LINES.splitlines()]
    logs.put_log_events(logGroupName=group, logStreamName="one", logEvents=events)
    counted = {metric.label: statistics(aws, f"tritonstack/{name}", metric.name) for metric in (LOADED, UNLOADED)}
    assert counted == {"loaded": (1, 1.0), "unloaded": (2, 2.0)}
    assert len(logs.get_log_events(logGroupName=group, logStreamName="one")["events"]) == 4


def statistics(aws: Emulator, namespace: str, metric: str, **dimensions: str) -> tuple[int, float]:
    """How many values a metric has, and their sum."""
    points = aws.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=time.time() - 3600,
        EndTime=time.time() + 3600,
        Period=7200,
        Statistics=["SampleCount", "Sum"],
    )["Datapoints"]
    return round(sum(point["SampleCount"] for point in points)), sum(point["Sum"] for point in points)


@pytest.fixture
def group(aws: Emulator, name: str) -> str:
    """A log group with a stream, ``one``."""
    aws.client("logs").create_log_group(logGroupName=name)
    aws.client("logs").create_log_stream(logGroupName=name, logStreamName="one")
    return name


def write(aws: Emulator, group: str, *lines: str) -> None:
    now = int(time.time() * 1000)
    events = [{"timestamp": now, "message": line} for line in lines]
    aws.client("logs").put_log_events(logGroupName=group, logStreamName="one", logEvents=events)


def test_values_and_dimensions_come_from_the_line_and_the_default_where_none_matches(aws: Emulator, group: str) -> None:
    transformation = {"MetricNamespace": group, "MetricName": "Took", "MetricValue": "$.took"}
    of_json = {
        "LogGroupName": group,
        "FilterPattern": "{ $.took > 1 && $.model = * }",
        "MetricTransformations": [{**transformation, "Dimensions": [{"Key": "Model", "Value": "$.model"}]}],
    }
    of_fields = {
        "LogGroupName": group,
        "FilterPattern": "[level=ERROR, ..., code]",
        "MetricTransformations": [
            {"MetricNamespace": group, "MetricName": "Codes", "MetricValue": "$code", "DefaultValue": 0}
        ],
    }
    filters = {"Json": of_json, "Fields": of_fields}
    aws.deploy(group, {key: {"Type": "AWS::Logs::MetricFilter", "Properties": each} for key, each in filters.items()})
    write(aws, group, "INFO all is well")
    assert statistics(aws, group, "Codes") == (1, 0.0)
    write(aws, group, '{"model": "bert", "took": 2.5}', '{"model": "bert", "took": 4}', '{"model": "t5", "took": 0.5}')
    write(aws, group, "ERROR a b 7", "ERROR a b none", '{"took": 9}')
    assert statistics(aws, group, "Took", Model="bert") == (2, 6.5)
    assert statistics(aws, group, "Took", Model="t5") == (0, 0)
    assert statistics(aws, group, "Took") == (0, 0)
    assert statistics(aws, group, "Codes")[1] == 7.0


@cases("pattern, transformation, part")
def test_a_metric_filter_that_would_stay_empty_is_refused(
    aws: Emulator, group: str, pattern: str, transformation: dict[str, Any], part: str
) -> None:
    made = {"metricName": "m", "metricNamespace": "n", "metricValue": "1", **transformation}
    with pytest.raises(ClientError, match="InvalidParameterException") as error:
        aws.client("logs").put_metric_filter(
            logGroupName=group, filterName="f", filterPattern=pattern, metricTransformations=[made]
        )
    assert part in str(error.value)
    assert aws.client("logs").describe_metric_filters(logGroupName=group)["metricFilters"] == []


def test_a_stack_with_a_filter_that_is_refused_fails_with_the_reason(aws: Emulator, group: str) -> None:
    assert aws.deploy(group, {"Loads": filter_of(group, "{ $.a = }", "m", "n")}) == "ROLLBACK_COMPLETE"
    assert "where a word, a number" in aws.failures(group)


def test_a_pattern_is_tried_and_lines_are_found_by_it(aws: Emulator, group: str) -> None:
    logs = aws.client("logs")
    lines = ['{"a": 1}', '{"a": 2}', "Error a", "error a"]
    tried = logs.test_metric_filter(filterPattern="{ $.a > 1 }", logEventMessages=lines)["matches"]
    assert tried == [{"eventNumber": 2, "eventMessage": lines[1], "extractedValues": {"$.a": "2"}}]
    write(aws, group, *lines)
    found = {
        pattern: [
            lines.index(each["message"])
            for each in logs.filter_log_events(logGroupName=group, filterPattern=pattern)["events"]
        ]
        for pattern in ("", "error", "{ $.a = 1 }", "?Error ?error")
    }
    assert found == {"": [0, 1, 2, 3], "error": [3], "{ $.a = 1 }": [0], "?Error ?error": [2, 3]}
    with pytest.raises(ClientError, match="where a property"):
        logs.filter_log_events(logGroupName=group, filterPattern="{ a = 1 }")


def test_the_saved_query_of_the_dashboards_stack_gives_each_load_and_unload(aws: Emulator, group: str) -> None:
    logs = aws.client("logs")
    write(aws, group, *LINES.splitlines())
    now = int(time.time())
    between = {"startTime": now - 600, "endTime": now + 600}
    started = logs.start_query(logGroupNames=[group], queryString=QUERY, **between)
    result = logs.get_query_results(queryId=started["queryId"])
    assert result["status"] == "Complete"
    rows = [{each["field"]: each["value"] for each in row} for row in result["results"]]
    assert {(row["event"], row["model"], row["@logStream"]) for row in rows} == {
        ("loaded", "/opt/ml/model/::double", "one"),
        ("unloaded", "/opt/ml/model/::double", "one"),
        ("unloaded", "bert", "one"),
    }
    assert (result["statistics"]["recordsMatched"], result["statistics"]["recordsScanned"]) == (3, 4)
    earlier = logs.start_query(logGroupName=group, queryString=QUERY, startTime=now - 600, endTime=now - 300)
    assert logs.get_query_results(queryId=earlier["queryId"])["results"] == []
    arn = f"arn:aws:logs:us-east-1:123456789012:log-group:{group}"
    counts = logs.start_query(logGroupIdentifiers=[arn], queryString="stats count(*) as lines", limit=1, **between)
    [[count]] = logs.get_query_results(queryId=counts["queryId"])["results"]
    assert (count["field"], count["value"]) == ("lines", "4")


def test_a_query_that_is_not_run_is_refused_with_the_reason(aws: Emulator, group: str) -> None:
    logs = aws.client("logs")

    def refused(code: str, part: str, **changes: Any) -> None:
        request = {"logGroupName": group, "queryString": "limit 1", "startTime": 0, "endTime": 1, **changes}
        with pytest.raises(ClientError, match=code) as error:
            logs.start_query(**{name: value for name, value in request.items() if value is not None})
        assert part in str(error.value)

    refused("MalformedQueryException", "dedup is not evaluated here", queryString="dedup @message")
    refused("InvalidParameterException", "it has CWLI", queryLanguage="SQL", queryString="SELECT 1")
    refused("ResourceNotFoundException", f"does not exist: {group}-2", logGroupName=f"{group}-2")
    refused("InvalidParameterException", "logGroupIdentifiers is needed", logGroupName=None)
    for ask in (logs.get_query_results, logs.stop_query):
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            ask(queryId="none")


def test_a_saved_query_of_a_stack_is_listed_changed_and_deleted_with_it(aws: Emulator, name: str) -> None:
    logs = aws.client("logs")
    resource = {"Type": "AWS::Logs::QueryDefinition", "Properties": {"Name": f"{name}/loads", "QueryString": QUERY}}
    aws.deploy(name, {"Query": resource})
    [saved] = logs.describe_query_definitions(queryDefinitionNamePrefix=name)["queryDefinitions"]
    assert (saved["queryString"], saved["queryDefinitionId"]) == (QUERY, aws.physical(name, "Query"))
    logs.delete_query_definition(queryDefinitionId=saved["queryDefinitionId"])
    assert logs.describe_query_definitions(queryDefinitionNamePrefix=name)["queryDefinitions"] == []
