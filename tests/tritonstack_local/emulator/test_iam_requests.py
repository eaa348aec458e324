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
from pydantic import BaseModel

from tests.cases import cases
from tritonstack_local.emulator.iam.needs import Rule, rules_of, services, term_of
from tritonstack_local.emulator.iam.request import (
    ServiceRequest,
    UnreadableRequestError,
    expanded,
    read_request,
    reads_body,
)
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
        return read_request(self.method, self.path, self.query, self.headers, expanded(body, dict(self.headers)))


def wire(method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Sent:
    split = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qs(split.query, keep_blank_values=True)
    return Sent(method, split.path, query, {name.lower(): value for name, value in (headers or {}).items()}, body)


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


def texts(value: Any) -> Any:
    """A value with numbers and truth values as texts: what a form, a path, a query and a header have."""
    if isinstance(value, dict):
        return {name: texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [texts(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


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
    assert texts({name: read.parameters.get(name) for name in given}) == texts(given)


# --- Requests that botocore's clients do not send, or only now and then ---


class Written(BaseModel, frozen=True, extra="forbid"):
    """A request as the tables have it."""

    method: str
    url: str
    scope: str = ""  # what it is signed for, in its headers
    headers: dict[str, str] = {}
    body: str = ""  # characters of one byte each

    def sent(self) -> Sent:
        """The request on the wire."""
        signature = {name: value.format(self.scope) for name, value in SIGNED.items()} if self.scope else {}
        body = self.body.encode("latin-1")
        compressed = "Content-Encoding" in self.headers
        return wire(self.method, self.url, {**signature, **self.headers}, gzip.compress(body) if compressed else body)


@cases("written, operation, parameters")
def test_other_requests_are_read(written: Written, operation: str, parameters: dict[str, Any]) -> None:
    read = written.sent().read()
    assert (f"{read.service}:{read.operation}", read.access_key) == (operation, KEY_ID)
    assert {name: read.parameters.get(name) for name in parameters} == parameters
    assert parameters or not read.parameters


@cases("written, message")
def test_what_cannot_be_read_is_named(written: Written, message: str) -> None:
    with pytest.raises(UnreadableRequestError, match=message):
        written.sent().read()


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
    assert reads_body("POST", Written(method="POST", url="/", scope="ssm").sent().headers, {})


def test_metrics_are_read_from_a_compressed_body() -> None:
    data = [{"MetricName": f"m{number}", "Value": 1.0} for number in range(300)]
    sent = send("cloudwatch", "PutMetricData", {"Namespace": "N", "MetricData": data})
    assert sent.headers["content-encoding"] == "gzip"
    assert sent.read().parameters["Namespace"] == "N"
