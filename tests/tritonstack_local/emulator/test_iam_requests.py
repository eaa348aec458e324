"""Requests as botocore sends them, and as other SDKs and people do, are read back as they were meant."""

from __future__ import annotations

import functools
import gzip
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

import botocore.session
import pytest
from botocore.config import Config

from tritonstack_local.emulator.iam.needs import Rule, rules_of, services, term_of
from tritonstack_local.emulator.iam.request import ServiceRequest, UnreadableRequestError, read_request, reads_body
from tritonstack_local.emulator.request_validation import service_model

REGION, KEY_ID = "eu-west-1", "ASIATEST"
AWKWARD = "a b/é+&=%2F.1"
"""A value that each encoding must bring through."""
SIGNED = {"authorization": f"AWS4-HMAC-SHA256 Credential={KEY_ID}/20260101/{REGION}/{{}}/aws4_request, Signature=0"}


class Sent(NamedTuple):
    """A request on the wire."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def read(self) -> ServiceRequest:
        """As the gateway reads it."""
        body = self.body if reads_body(self.method, self.headers, self.query) else b""
        return read_request(self.method, self.path, self.query, self.headers, body)


def wire(method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Sent:
    split = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qs(split.query, keep_blank_values=True)
    return Sent(method, split.path, query, {name.lower(): value for name, value in (headers or {}).items()}, body)


def signed(scope: str, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Sent:
    signature = {name: value.format(scope) for name, value in SIGNED.items()}
    return wire(method, url, {**signature, **(headers or {})}, body)


class _Captured(Exception):  # noqa: N818  (control flow)
    pass


@functools.cache
def client(service: str) -> Any:
    return botocore.session.get_session().create_client(
        service,
        region_name=REGION,
        endpoint_url="http://127.0.0.1:1",
        aws_access_key_id=KEY_ID,
        aws_secret_access_key="secret",
        config=Config(s3={"addressing_style": "path"}, proxies={}, parameter_validation=False),
    )


def send(service: str, operation: str, parameters: Mapping[str, Any]) -> Sent:
    """What a client sends, caught before it leaves."""
    caught: list[Any] = []

    def catch(request: Any, **_: Any) -> None:
        caught.append(request)
        raise _Captured

    one = client(service)
    one.meta.events.register_first("before-send", catch)
    try:
        with pytest.raises(_Captured):
            one._make_api_call(operation, dict(parameters))
    finally:
        one.meta.events.unregister("before-send", catch)
    request = caught[0]
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
    body = request.body or b""
    return wire(request.method, request.url, headers, body.encode() if isinstance(body, str) else body)


# --- Every mapped operation, with the members that its needs are read from ---


def members(rules: tuple[Rule, ...], keys: Mapping[str, str]) -> set[str]:
    """Names of all members that rules and keys read."""
    texts = list(keys.values())
    for rule in rules:
        on = rule.get("on", "*")
        specs = [on] if isinstance(on, str) else on
        texts += [term for spec in specs for term in (spec.split()[1:] or [spec]) if term != "*"]
        texts += [rule[name] for name in ("if", "unless", "tags") if name in rule]
        texts += [*rule.get("pass", {}), *rule.get("keys", {}).values()]
    read = {name for text in texts for path in term_of(text).paths for step in path for name in step if name}
    return read | {"Key", "Value"}  # of tags


def sample(shape: Any, wanted: set[str], name: str = "") -> Any:
    kind = shape.type_name
    if kind == "structure":
        chosen = {n: s for n, s in shape.members.items() if n in wanted or n in shape.required_members}
        return {n: sample(s, wanted, n) for n, s in chosen.items() if s.type_name not in ("blob", "timestamp")}
    if kind == "list":
        return [sample(shape.member, wanted, name)] * min(2, shape.metadata.get("max", 2))
    if kind == "map":
        return {sample(shape.key, wanted): sample(shape.value, wanted)}
    if kind != "string":
        return {"boolean": True, "float": 1.5, "double": 1.5}.get(kind, max(1, shape.metadata.get("min", 1)))
    if shape.metadata.get("enum"):
        return shape.metadata["enum"][0]
    fixed = {"Bucket": "bucket-of-tests", "CopySource": "from/k", "StackName": "one", "AccountId": "123456789012"}
    plain = "x" * max(1, shape.metadata.get("min", 1))
    return fixed.get(name, plain if shape.serialization.get("location") == "header" else AWKWARD + plain)


EVERY = [(service, operation) for service in services() for operation in rules_of(service)]


@pytest.mark.parametrize(("service", "operation"), EVERY, ids=map(":".join, EVERY))
def test_what_a_client_sends_is_read_back(service: str, operation: str) -> None:
    model = service_model(service).operation_model(operation)
    wanted = members(rules_of(service)[operation], services()[service].get("keys", {}))
    given = sample(model.input_shape, wanted) if model.input_shape is not None else {}
    sent = send(service, operation, given)
    if not reads_body(sent.method, sent.headers, sent.query):
        located = {name for name, each in model.input_shape.members.items() if each.serialization.get("location")}
        given = {name: value for name, value in given.items() if name in located}
    read = sent.read()
    assert (read.service, read.operation, read.region, read.access_key) == (service, operation, REGION, KEY_ID)
    assert {name: read.parameters.get(name) for name in given} == given


# --- Requests that botocore's clients do not send, or only now and then ---

JSON = {"X-Amz-Target": "AmazonSSM.GetParameter"}
CLOUDWATCH = "/service/GraniteServiceVersion20100801/operation/"
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
REQUESTS: dict[str, tuple[Sent, str, dict[str, Any]]] = {
    "no parameters": (signed("ssm", "POST", "/", JSON), "ssm:GetParameter", {}),
    "a body that is no JSON": (signed("ssm", "POST", "/", JSON, b"{"), "ssm:GetParameter", {}),
    "a body that is no object": (signed("ssm", "POST", "/", JSON, b"[]"), "ssm:GetParameter", {}),
    "compressed": (
        signed("ssm", "POST", "/", {**JSON, "Content-Encoding": "gzip"}, gzip.compress(b'{"Name": "/a"}')),
        "ssm:GetParameter",
        {"Name": "/a"},
    ),
    "CBOR": (
        signed("monitoring", "POST", f"{CLOUDWATCH}DeleteAlarms", {}, b"\xa1\x6aAlarmNames\x81\x61a"),
        "cloudwatch:DeleteAlarms",
        {"AlarmNames": ["a"]},
    ),
    "no CBOR": (signed("monitoring", "POST", f"{CLOUDWATCH}DeleteAlarms", {}, b"\xff"), "cloudwatch:DeleteAlarms", {}),
    "a form for a JSON service": (
        signed("monitoring", "POST", "/", FORM, b"Action=DeleteAlarms&AlarmNames.member.1=a&AlarmNames.member.2=b"),
        "cloudwatch:DeleteAlarms",
        {"AlarmNames": ["a", "b"]},
    ),
    "a form in the query": (
        signed("sts", "GET", "/?Action=AssumeRole&RoleArn=r&Tags.member.1.Key=k&Tags.member.1.Value=v"),
        "sts:AssumeRole",
        {"RoleArn": "r", "Tags": [{"Key": "k", "Value": "v"}]},
    ),
    "an empty list": (
        signed("cloudformation", "POST", "/", FORM, b"Action=CreateStack&Tags=&StackName=s"),
        "cloudformation:CreateStack",
        {"Tags": [], "StackName": "s"},
    ),
    "the tenth item": (
        signed("sts", "POST", "/", FORM, b"Action=AssumeRole&PolicyArns.member.10.arn=b&PolicyArns.member.9.arn=a"),
        "sts:AssumeRole",
        {"PolicyArns": [{"arn": "a"}, {"arn": "b"}]},
    ),
    "EC2": (
        signed("ec2", "POST", "/", FORM, b"Action=DescribeVpcs&Filter.1.Name=n&Filter.1.Value.1=v&MaxResults=5"),
        "ec2:DescribeVpcs",
        {"Filters": [{"Name": "n", "Values": ["v"]}], "MaxResults": 5},
    ),
    "JavaScript": (
        signed("s3", "GET", "/b/k%20%2B?x-id=GetObject&versionId=v"),
        "s3:GetObject",
        {"Bucket": "b", "Key": "k +", "VersionId": "v"},
    ),
    "a bucket with a slash": (signed("s3", "GET", "/b/?list-type=2&prefix="), "s3:ListObjectsV2", {"Prefix": ""}),
    "a key that ends in a slash": (signed("s3", "PUT", "/b/k/"), "s3:PutObject", {"Bucket": "b", "Key": "k/"}),
    "a key with empty parts": (signed("s3", "PUT", "/b//k"), "s3:PutObject", {"Bucket": "b", "Key": "/k"}),
    "presigned": (
        wire("GET", f"/b/k?X-Amz-Credential={KEY_ID}%2F20260101%2F{REGION}%2Fs3%2Faws4_request&X-Amz-Signature=0"),
        "s3:GetObject",
        {"Bucket": "b", "Key": "k"},
    ),
    "presigned, version 2": (wire("PUT", f"/b/k?AWSAccessKeyId={KEY_ID}&Signature=0"), "s3:PutObject", {"Key": "k"}),
    "a part that is copied": (
        signed("s3", "PUT", "/b/k?partNumber=2&uploadId=u", {"x-amz-copy-source": "f/k"}),
        "s3:UploadPartCopy",
        {"PartNumber": 2, "UploadId": "u", "CopySource": "f/k"},
    ),
    "a part": (signed("s3", "PUT", "/b/k?partNumber=2&uploadId=u"), "s3:UploadPart", {"PartNumber": 2}),
    "an ARN in the path": (
        signed("lambda", "POST", "/2015-03-31/functions/arn%3Aaws%3Alambda%3Ax%3A1%3Afunction%3Af/invocations"),
        "lambda:Invoke",
        {"FunctionName": "arn:aws:lambda:x:1:function:f"},
    ),
}


@pytest.mark.parametrize(("sent", "operation", "parameters"), REQUESTS.values(), ids=REQUESTS)
def test_other_requests_are_read(sent: Sent, operation: str, parameters: dict[str, Any]) -> None:
    read = sent.read()
    assert (f"{read.service}:{read.operation}", read.access_key) == (operation, KEY_ID)
    assert {name: read.parameters.get(name) for name in parameters} == parameters
    assert parameters or not read.parameters


UNREADABLE: dict[str, tuple[Sent, str]] = {
    "an unknown operation": (
        signed("ssm", "POST", "/", {"X-Amz-Target": "AmazonSSM.Foo"}),
        "ssm has no operation 'Foo'",
    ),
    "another service's target": (signed("sqs", "POST", "/", JSON), "AmazonSSM.GetParameter is no operation of sqs"),
    "a target for S3": (wire("POST", "/", JSON), "AmazonSSM.GetParameter is no operation of s3"),
    "an unknown scope": (signed("of-nobody", "POST", "/"), "no service of botocore signs its requests as 'of-nobody'"),
    "a form without an action": (signed("iam", "POST", "/", FORM, b"Version=1"), "iam has no operation ''"),
    "an unknown path": (signed("lambda", "GET", "/functions"), "GET /functions is no operation of lambda"),
}


@pytest.mark.parametrize(("sent", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_named(sent: Sent, message: str) -> None:
    with pytest.raises(UnreadableRequestError, match=message):
        sent.read()


def test_a_request_without_a_signature_has_no_access_key() -> None:
    assert wire("GET", "/b/k").read().access_key == ""


def test_of_s3_only_the_body_of_delete_objects_is_read() -> None:
    sent = send(
        "s3",
        "DeleteObjects",
        {"Bucket": "b", "Delete": {"Objects": [{"Key": AWKWARD}, {"Key": "k", "VersionId": "v"}]}},
    )
    assert reads_body(sent.method, sent.headers, sent.query)
    assert sent.read().parameters["Delete"]["Objects"] == [{"Key": AWKWARD}, {"Key": "k", "VersionId": "v"}]
    assert not reads_body("PUT", sent.headers, {})
    assert not reads_body("PUT", {}, {})
    assert reads_body("POST", signed("ssm", "POST", "/").headers, {})


def test_metrics_are_read_from_a_compressed_body() -> None:
    data = [{"MetricName": f"m{number}", "Value": 1.0} for number in range(300)]
    sent = send("cloudwatch", "PutMetricData", {"Namespace": "N", "MetricData": data})
    assert sent.headers["content-encoding"] == "gzip"
    assert sent.read().parameters["Namespace"] == "N"
