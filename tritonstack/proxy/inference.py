"""Inference requests and responses between KServe's HTTP form and InvokeEndpoint's."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from isal import isal_zlib

from tritonstack.client.body import BINARY_PREFIX, JSON_TYPE, Body
from tritonstack.client.errors import MalformedAnswerError
from tritonstack.client.invocation import RawAnswer, Target
from tritonstack.http_server import Answer, Headers

Coding = Literal["identity", "gzip", "deflate"]

_WBITS: dict[str, int] = {"gzip": 31, "deflate": 15}
_LEVEL = 1
"""Over loopback every byte saved costs more than it brings: the fastest level that still compresses."""
_IsalError: Any = isal_zlib.error


class CodingError(Exception):
    """A body that cannot be decoded. ``status`` is HTTP's: 400, 413, 415."""

    def __init__(self, status: int, message: str) -> None:
        """Takes the status and a sentence."""
        self.status = status
        super().__init__(message)


def decoded(body: bytes, coding: str, *, limit: int) -> bytes:
    """A request's body without its Content-Encoding, at most ``limit`` bytes of it. Raises CodingError."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in _WBITS:
        raise CodingError(415, f"Content-Encoding {coding!r}; allowed: gzip, deflate, identity")
    whole: bytes
    reader = isal_zlib.decompressobj(_WBITS[coding])
    try:
        whole = reader.decompress(body, limit + 1)
    except _IsalError as error:
        raise CodingError(400, f"the body is no {coding}: {error}") from error
    if len(whole) > limit:
        raise CodingError(413, f"the body is more than {limit} bytes once it is decompressed")
    if not reader.eof or reader.unused_data:
        raise CodingError(400, f"the body is no {coding}: {'it is cut off' if not reader.eof else 'more follows it'}")
    return whole


def wanted_coding(accept_encoding: str) -> Coding:
    """How an answer is to be encoded.

    tritonclient names one coding where its caller asks for one. A list (``gzip, deflate, br``) is what HTTP libraries
    send by themselves: it allows identity, which costs least over loopback.
    """
    codings = []
    for item in accept_encoding.lower().split(","):
        name, _, parameters = item.partition(";")
        if name.strip() and parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            codings.append(name.strip())
    if codings == ["gzip"]:
        return "gzip"
    return "deflate" if codings == ["deflate"] else "identity"


def encoded(body: bytes, coding: Coding) -> bytes:
    """An answer's body in a coding."""
    if coding == "identity":
        return body
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _WBITS[coding])
    whole: bytes = compressor.compress(body) + compressor.flush()
    return whole


# KServe's binary tensor extension gives the length of the JSON in the header ``Inference-Header-Content-Length``.
# SageMaker passes no header on, so Triton's SageMaker front end has it in the content type. The bytes are the same:
# bodies pass through unchanged, except for the model's name in a response's JSON.


LENGTH_HEADER = b"inference-header-content-length"
BINARY_TYPE = b"application/octet-stream"

_STRING = rb'"(?:[^"\\]|\\.)*"'
_HEAD = re.compile(
    rb'\{\s*(?:"id"\s*:\s*%b\s*,\s*)?"model_name"\s*:\s*(?P<name>%b)\s*,\s*"model_version"\s*:\s*(?P<version>%b)'
    % (_STRING, _STRING, _STRING),
    re.DOTALL,
)
"""How Triton's answers begin (``src/http_server.cc``, FinalizeResponse): what follows need not be read."""


class BadRequestError(Exception):
    """A request that is wrong before anybody is asked: 400."""


@dataclass(frozen=True, kw_only=True)
class KServeAnswer:
    """An answer in KServe's form: its body, the length of its JSON (None: all of it), the version that answered."""

    content: bytes
    header_length: int | None
    model_version: str


def request_body(headers: Headers, body: bytes, *, limit: int) -> Body:
    """What InvokeEndpoint is given for a KServe request.

    Raises:
        BadRequestError: the header's length does not fit the body.
        CodingError: the body cannot be decompressed, or is larger than ``limit`` bytes then.
    """
    content = decoded(body, headers.get(b"content-encoding", b"").decode("latin-1"), limit=limit)
    length = headers.get(LENGTH_HEADER)
    if length is None:
        return Body(content=content, content_type=JSON_TYPE)
    text = length.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) > len(content):
        shown = text[:40]
        raise BadRequestError(
            f"Inference-Header-Content-Length is {shown!r}; allowed: 0 to the body's {len(content)} bytes"
        )
    return Body(content=content, content_type=f"{BINARY_PREFIX}{int(text)}")


def kserve_answer(raw: RawAnswer, *, model: str) -> KServeAnswer:
    """An answer of InvokeEndpoint in KServe's form, with ``model`` for the archive's name.

    Raises:
        MalformedAnswerError: no inference response, or one whose length does not fit.
    """
    length = _json_length(raw)
    described = raw.content if length is None else raw.content[:length]
    renamed, version = _renamed(described, model)
    if length is None:
        return KServeAnswer(content=renamed, header_length=None, model_version=version)
    content = b"".join((renamed, memoryview(raw.content)[length:]))
    return KServeAnswer(content=content, header_length=len(renamed), model_version=version)


def http_answer(answer: KServeAnswer, *, target: Target, raw: RawAnswer, accept_encoding: str) -> Answer:
    """The HTTP answer, compressed where that is asked for. Who answered stands in headers of our own."""
    coding = wanted_coding(accept_encoding)
    headers: Headers = {
        b"content-type": JSON_TYPE.encode() if answer.header_length is None else BINARY_TYPE,
        b"x-tritonstack-endpoint": _header_text(target.endpoint_name),
        b"x-tritonstack-variant": _header_text(raw.variant),
        b"x-tritonstack-attempts": b"%d" % raw.attempts,
    }
    if target.target_model:
        headers[b"x-tritonstack-target-model"] = _header_text(target.target_model)
    if answer.header_length is not None:
        headers[LENGTH_HEADER] = b"%d" % answer.header_length
    if coding != "identity":
        headers[b"content-encoding"] = coding.encode()
    return Answer(200, headers, encoded(answer.content, coding))


def _json_length(raw: RawAnswer) -> int | None:
    """How many bytes of an answer are JSON; None for all."""
    if not raw.content_type.startswith(BINARY_PREFIX):
        return None
    text = raw.content_type.removeprefix(BINARY_PREFIX)
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= len(raw.content):
        raise MalformedAnswerError(f"{raw.content_type!r} does not fit an answer of {len(raw.content)} bytes")
    return int(text)


def _renamed(described: bytes, model: str) -> tuple[bytes, str]:
    """An answer's JSON with another model name, and the version that it states."""
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


def _header_text(text: str) -> bytes:
    """A header's value: what was answered may not end the line."""
    return re.sub(r"[^\x20-\x7e]", "?", text).encode()
