"""Inference requests and responses between KServe's HTTP form and InvokeEndpoint's."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from tritonstack.client.body import BINARY_PREFIX, JSON_TYPE, Body, header_size
from tritonstack.client.errors import MalformedAnswerError
from tritonstack.client.invocation import RawAnswer
from tritonstack.http_server import Answer, Headers
from tritonstack.proxy.errors import HttpError

# KServe's binary tensor extension gives the length of the JSON in the header ``Inference-Header-Content-Length``.
# SageMaker passes no header on, so Triton's SageMaker front end has it in the content type. The bytes are the same:
# bodies pass through unchanged, except for the model's name in a response's JSON.


LENGTH_HEADER = b"inference-header-content-length"

_STRING = rb'"(?:[^"\\]|\\.)*"'
_HEAD = re.compile(
    rb'\{\s*(?:"id"\s*:\s*%b\s*,\s*)?"model_name"\s*:\s*(?P<name>%b)\s*,\s*"model_version"\s*:\s*(?P<version>%b)'
    % (_STRING, _STRING, _STRING),
    re.DOTALL,
)
"""Beginning of Triton's responses (``src/http_server.cc``, FinalizeResponse): the rest is not parsed."""


def request_body(headers: Headers, content: bytes) -> Body:
    """The InvokeEndpoint body of a KServe request.

    Raises HttpError where the header's length does not fit the body, or the body is compressed.
    """
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise HttpError(415, "a compressed body; allowed: Content-Encoding identity")
    length = headers.get(LENGTH_HEADER)
    if length is None:
        return Body(content=content, content_type=JSON_TYPE)
    text = length.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) > len(content):
        allowed = f"allowed: 0 to the body's {len(content)} bytes"
        raise HttpError(400, f"Inference-Header-Content-Length is {text[:40]!r}; {allowed}")
    return Body(content=content, content_type=f"{BINARY_PREFIX}{int(text)}")


def kserve_answer(raw: RawAnswer, *, model: str) -> tuple[Answer, str]:
    """A response of InvokeEndpoint in KServe's form, with ``model`` instead of the archive's name; its model version.

    Raises MalformedAnswerError where it is no inference response, or its length does not fit.
    """
    length = header_size(raw.content_type, len(raw.content))
    if length is None:
        content, version = _renamed(raw.content, model)
        return Answer(200, {b"content-type": JSON_TYPE.encode()}, content), version
    renamed, version = _renamed(raw.content[:length], model)
    headers = {b"content-type": b"application/octet-stream", LENGTH_HEADER: b"%d" % len(renamed)}
    return Answer(200, headers, b"".join((renamed, memoryview(raw.content)[length:]))), version


def _renamed(described: bytes, model: str) -> tuple[bytes, str]:
    """A response's JSON with another model name, and its model version."""
    head = _HEAD.match(described)
    if head is not None:
        start, end = head.span("name")
        return b"".join((described[:start], json.dumps(model).encode(), described[end:])), json.loads(head["version"])
    answer: Any = None
    with suppress(ValueError):
        answer = json.loads(described)
    if not isinstance(answer, dict) or "outputs" not in answer:
        raise MalformedAnswerError(f"no inference response: {len(described)} bytes, {bytes(described[:80])!r} …")
    answer["model_name"] = model
    return json.dumps(answer, separators=(",", ":")).encode(), str(answer.get("model_version", ""))
