"""CloudWatch's JSON protocol; the others are refused by name."""

from __future__ import annotations

import urllib.request
from urllib.error import HTTPError

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching

AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/monitoring/aws4_request, Signature=0"


def test_refusals_have_cloudwatchs_codes(watching: Watching) -> None:
    with pytest.raises(ClientError, match="not found") as missing:
        watching.cloudwatch.set_alarm_state(AlarmName=watching.name, StateValue="OK", StateReason="-")
    with pytest.raises(ClientError, match="enum value set") as wrong:
        watching.put(ComparisonOperator="Near")
    codes = [refused.value.response["Error"]["Code"] for refused in (missing, wrong)]
    assert codes == ["ResourceNotFound", "ValidationError"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "words"),
    [
        (
            "/service/GraniteServiceVersion20100801/operation/DescribeAlarms",
            b"\xa0",
            {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"},
            "takes requests to cloudwatch as JSON or forms, not in CBOR",
        ),
        (
            "/",
            b"Action=DescribeAlarms&Version=2010-08-01",
            {"Content-Type": "application/x-www-form-urlencoded"},
            "query protocol are not in the local AWS",
        ),
    ],
    ids=["CBOR", "query"],
)
def test_other_protocols_are_refused_by_name(
    watching: Watching, path: str, body: bytes, headers: dict[str, str], words: str
) -> None:
    url = watching.emulator.url + path  # the emulator's own address
    request = urllib.request.Request(url, body, {"Authorization": AUTHORIZATION, **headers})  # noqa: S310
    with pytest.raises(HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=10)  # noqa: S310
    assert words in refusal.value.read().decode()
