"""CloudWatch's JSON protocol; the others are refused by name."""

from __future__ import annotations

import urllib.request
from urllib.error import HTTPError

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Watching

AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/monitoring/aws4_request, Signature=0"


def test_metrics_and_alarms_go_there_and_back(watching: Watching) -> None:
    name, dimensions, cloudwatch = watching.name, [{"Name": "A", "Value": "b & c"}], watching.cloudwatch
    at = watching.told_start - PERIOD + 5
    datum = {"MetricName": "M", "Dimensions": dimensions, "Timestamp": at, "Values": [1.5, 2.0], "Counts": [2.0, 1.0]}
    cloudwatch.put_metric_data(Namespace=name, MetricData=[datum])
    query = watching.query("m1", "M", of={"A": "b & c"})
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        Metrics=[{"Id": "e1", "Expression": "m1 * 2"}, {**query, "ReturnData": False}],
        EvaluationPeriods=1,
        Threshold=9.5,
        ComparisonOperator="GreaterThanThreshold",
        AlarmDescription="<a> & b",
        ActionsEnabled=False,
    )
    [result] = cloudwatch.get_metric_data(
        MetricDataQueries=[query], StartTime=watching.told_start - 120, EndTime=watching.told_start
    )["MetricDataResults"]
    assert (result["Values"], result["Timestamps"][0].timestamp()) == ([5.0], watching.told_start - PERIOD)
    watching.evaluated()
    alarm = watching.alarm()
    assert (alarm["StateValue"], alarm["AlarmDescription"], alarm["ActionsEnabled"]) == ("ALARM", "<a> & b", False)
    assert alarm["Metrics"][1]["MetricStat"]["Metric"]["Dimensions"] == dimensions
    assert abs(alarm["StateUpdatedTimestamp"].timestamp() - watching.now()) < PERIOD


def test_refusals_have_cloudwatchs_codes(watching: Watching) -> None:
    with pytest.raises(ClientError, match="not found") as missing:
        watching.cloudwatch.set_alarm_state(AlarmName=watching.name, StateValue="OK", StateReason="-")
    with pytest.raises(ClientError, match="enum value set") as wrong:
        watching.put(ComparisonOperator="Near")
    codes = [refused.value.response["Error"]["Code"] for refused in (missing, wrong)]
    assert codes == ["ResourceNotFound", "ValidationError"]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (
            "/service/GraniteServiceVersion20100801/operation/DescribeAlarms",
            b"\xa0",
            {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"},
        ),
        ("/", b"Action=DescribeAlarms&Version=2010-08-01", {"Content-Type": "application/x-www-form-urlencoded"}),
    ],
    ids=["CBOR", "query"],
)
def test_other_protocols_are_refused_by_name(
    watching: Watching, path: str, body: bytes, headers: dict[str, str]
) -> None:
    url = watching.emulator.url + path  # the emulator's own address
    request = urllib.request.Request(url, body, {"Authorization": AUTHORIZATION, **headers})  # noqa: S310
    with pytest.raises(HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=10)  # noqa: S310
    assert "query protocol are not in the local AWS" in refusal.value.read().decode()


def test_what_ministack_answers_itself_is_still_answered(watching: Watching) -> None:
    watching.put()
    arn, tags = watching.alarm()["AlarmArn"], [{"Key": "team", "Value": "platform"}]
    watching.cloudwatch.tag_resource(ResourceARN=arn, Tags=tags)
    assert watching.cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == tags
