"""CloudWatch's JSON and query protocols, spoken by botocore's serialiser and parser."""

from __future__ import annotations

import urllib.parse
import urllib.request
from typing import Any
from urllib.error import HTTPError

import botocore.awsrequest
import botocore.parsers
import botocore.serialize
import botocore.session
import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Watching

PROTOCOLS = ("json", "query")
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/monitoring/aws4_request, Signature=0"


class Speaker:
    """One protocol, spoken by botocore's serialiser and parser."""

    def __init__(self, watching: Watching, protocol: str) -> None:
        """Speaks to the emulator of ``watching``."""
        self._url, self._protocol = watching.emulator.url, protocol
        self._model = botocore.session.get_session().get_service_model("cloudwatch")

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        """The parsed answer, which may be an error."""
        shape = self._model.operation_model(operation)
        made = botocore.serialize.create_serializer(self._protocol).serialize_to_request(request, shape)
        body = made["body"]
        encoded = urllib.parse.urlencode(body).encode() if isinstance(body, dict) else body
        headers = {**made["headers"], "Authorization": AUTHORIZATION}
        sent = urllib.request.Request(  # noqa: S310  the emulator's own address
            self._url + made["url_path"], encoded if isinstance(encoded, bytes) else encoded.encode(), headers
        )
        try:
            with urllib.request.urlopen(sent, timeout=10) as answer:  # noqa: S310  as above
                return self._parsed(shape, answer.status, dict(answer.headers), answer.read())
        except HTTPError as error:
            return self._parsed(shape, error.code, dict(error.headers), error.read())

    def _parsed(self, shape: Any, status: int, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        answer = {"status_code": status, "headers": botocore.awsrequest.HeadersDict(headers), "body": body}
        parsed: dict[str, Any] = botocore.parsers.create_parser(self._protocol).parse(answer, shape.output_shape)
        return parsed


@pytest.fixture(params=PROTOCOLS)
def speaker(request: pytest.FixtureRequest, watching: Watching) -> Speaker:
    """Each protocol in turn."""
    return Speaker(watching, request.param)


def test_metrics_and_alarms_go_there_and_back(speaker: Speaker, watching: Watching) -> None:
    name, dimensions = watching.name, [{"Name": "A", "Value": "b & c"}]
    at = watching.told_start - PERIOD + 5
    datum = {"MetricName": "M", "Dimensions": dimensions, "Timestamp": at, "Values": [1.5, 2.0], "Counts": [2.0, 1.0]}
    speaker.ask("PutMetricData", Namespace=name, MetricData=[datum])
    query = watching.query("m1", "M", of={"A": "b & c"})
    speaker.ask(
        "PutMetricAlarm",
        AlarmName=name,
        Metrics=[{"Id": "e1", "Expression": "m1 * 2"}, {**query, "ReturnData": False}],
        EvaluationPeriods=1,
        Threshold=9.5,
        ComparisonOperator="GreaterThanThreshold",
        AlarmDescription="<a> & b",
        ActionsEnabled=False,
    )
    [result] = speaker.ask(
        "GetMetricData", MetricDataQueries=[query], StartTime=watching.told_start - 120, EndTime=watching.told_start
    )["MetricDataResults"]
    assert (result["Values"], result["Timestamps"][0].timestamp()) == ([5.0], watching.told_start - PERIOD)
    watching.evaluated()
    [alarm] = speaker.ask("DescribeAlarms", AlarmNames=[name])["MetricAlarms"]
    assert (alarm["StateValue"], alarm["AlarmDescription"], alarm["ActionsEnabled"]) == ("ALARM", "<a> & b", False)
    assert alarm["Metrics"][1]["MetricStat"]["Metric"]["Dimensions"] == dimensions
    assert abs(alarm["StateUpdatedTimestamp"].timestamp() - watching.now()) < PERIOD
    assert [item["AlarmName"] for item in speaker.ask("DescribeAlarmHistory", AlarmName=name)["AlarmHistoryItems"]]
    speaker.ask("DeleteAlarms", AlarmNames=[name])
    assert speaker.ask("DescribeAlarms", AlarmNames=[name])["MetricAlarms"] == []


def test_refusals_have_cloudwatchs_codes(speaker: Speaker, watching: Watching) -> None:
    missing = speaker.ask("SetAlarmState", AlarmName=watching.name, StateValue="OK", StateReason="-")["Error"]
    assert (missing["Code"], "not found" in missing["Message"]) == ("ResourceNotFound", True)
    wrong = speaker.ask("PutMetricAlarm", AlarmName=watching.name, ComparisonOperator="Near")["Error"]
    assert (wrong["Code"], "enum value set" in wrong["Message"]) == ("ValidationError", True)


def test_cbor_is_refused_by_name(watching: Watching) -> None:
    request = urllib.request.Request(  # noqa: S310  the emulator's own address
        watching.emulator.url + "/service/GraniteServiceVersion20100801/operation/DescribeAlarms",
        b"\xa0",
        {"Authorization": AUTHORIZATION, "Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"},
    )
    with pytest.raises(HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=10)  # noqa: S310  as above
    assert "CBOR protocol is not in the local AWS" in refusal.value.read().decode()


def test_what_ministack_answers_itself_is_still_answered(watching: Watching) -> None:
    watching.put()
    arn = watching.alarm()["AlarmArn"]
    for protocol in ("json", "query"):
        speaker = Speaker(watching, protocol)
        speaker.ask("TagResource", ResourceARN=arn, Tags=[{"Key": "protocol", "Value": protocol}])
        assert speaker.ask("ListTagsForResource", ResourceARN=arn)["Tags"] == [{"Key": "protocol", "Value": protocol}]
