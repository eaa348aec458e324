"""Metric filters are evaluated on the lines that containers write; saved queries are kept."""

from __future__ import annotations

import time

import pytest
from botocore.exceptions import ClientError

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
    counted = {}
    for metric in (LOADED, UNLOADED):
        points = aws.client("cloudwatch").get_metric_statistics(
            Namespace=f"tritonstack/{name}",
            MetricName=metric.name,
            StartTime=time.time() - 3600,
            EndTime=time.time() + 3600,
            Period=7200,
            Statistics=["Sum"],
        )["Datapoints"]
        counted[metric.label] = sum(point["Sum"] for point in points)
    assert counted == {"loaded": 1.0, "unloaded": 2.0}
    assert len(logs.get_log_events(logGroupName=group, logStreamName="one")["events"]) == 4


def test_a_pattern_that_would_not_be_evaluated_is_refused(aws: Emulator, name: str) -> None:
    logs = aws.client("logs")
    logs.create_log_group(logGroupName=name)
    transformations = [{"metricName": "m", "metricNamespace": "n", "metricValue": "1"}]
    for pattern in ("{ $.a = 1 }", "[a, b]", "?a ?b", "-a", "%a+%"):
        with pytest.raises(ClientError, match="evaluates words and phrases in double quotes alone"):
            logs.put_metric_filter(
                logGroupName=name, filterName="f", filterPattern=pattern, metricTransformations=transformations
            )


def test_a_saved_query_of_a_stack_is_listed_changed_and_deleted_with_it(aws: Emulator, name: str) -> None:
    logs = aws.client("logs")
    resource = {"Type": "AWS::Logs::QueryDefinition", "Properties": {"Name": f"{name}/loads", "QueryString": QUERY}}
    aws.deploy(name, {"Query": resource})
    [saved] = logs.describe_query_definitions(queryDefinitionNamePrefix=name)["queryDefinitions"]
    assert (saved["queryString"], saved["queryDefinitionId"]) == (QUERY, aws.physical(name, "Query"))
    logs.delete_query_definition(queryDefinitionId=saved["queryDefinitionId"])
    assert logs.describe_query_definitions(queryDefinitionNamePrefix=name)["queryDefinitions"] == []
