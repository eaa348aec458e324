"""A request as MiniStack will read it, for the gate in front: requests that the two could read differently are refused.

Else a caller passes the gate with one action and has another carried out. MiniStack joins repeated headers, lets the
query win over a form in some services and the form in others, finds the service by target, host, path and action, and
decodes a path before it divides it (``ministack.app`` and its services, version of ``requirements``).
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import ParseError

from tritonstack_local.emulator.iam.request import Query, ServiceRequest, UnreadableRequestError, expanded
from tritonstack_local.emulator.ministack_adapter import application, s3
from tritonstack_local.emulator.ministack_adapter.core import decode_header_value, detect_service
from tritonstack_local.emulator.request_validation import RefusedError, service_model

_ONCE = frozenset(
    {
        "authorization",
        "content-type",
        "host",
        "smithy-protocol",
        "x-amz-content-sha256",
        "x-amz-copy-source",
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-target",
    }
)
"""Headers of which a request has one. Others may be repeated: the SDK for Java sends Content-Encoding twice."""
_DATA_PLANES = re.compile(
    r"/(v20180820/|iceberg|v2(/|$)|key-value-stores/|_|health$|restapis/|oauth2/|login$|logout$"
    r"|(Execute|BatchExecute|(Begin|Commit|Rollback)Transaction|WriteGetObjectResponse)$"
    r"|(environments|webtoken|clitoken|restapi|metrics/environments)(/|$))"
)
"""Paths that MiniStack gives to services of its own before it looks at what a request is signed for."""
_OTHER_HOSTS = re.compile(rf"{application.s3_vhost_exclude_re().pattern}|\.(aoss|accesspoint|elb|lambda-url)\.|^mrap\.")
"""Hosts of functions, interfaces and load balancers: MiniStack routes to them whatever a request is signed for."""
COMBINATION = "InvalidParameterCombination"
"""AWS's code of parameters that must not be used together ("Common Errors" of the query services)."""
NO_PERMISSIONS = frozenset({COMBINATION, "InvalidArgument", "MalformedXML"})
"""Codes of refusals that are of the request's form, and no matter of permissions."""


@dataclass(frozen=True, kw_only=True)
class Received:
    """The input of ``read_request`` without the body."""

    method: str
    path: str  # percent-encoded; S3's always with the bucket first
    query: Query
    headers: Mapping[str, str]  # by names in lower case
    service: str  # MiniStack's name of the service that will carry it out; ``another`` is none that AWS signs for


def received(scope: Mapping[str, Any]) -> Received:
    """The request of an ASGI scope. Raises RefusedError where a header is repeated of which AWS takes one."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in headers and name in _ONCE:
            raise _refused(f"The header {name} is more than once in the request; send it once")
        headers[name] = (
            f"{headers[name]}, {decode_header_value(value)}" if name in headers else decode_header_value(value)
        )
    query = urllib.parse.parse_qs(scope.get("query_string", b"").decode("utf-8", "replace"), keep_blank_values=True)
    if "authorization" in headers and query.keys() & {"X-Amz-Credential", "x-amz-credential", "AWSAccessKeyId"}:
        raise _refused(  # S3's sentence, whose other services have the same rule
            "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string "
            "parameter or the Authorization header should be specified"
        )
    method, path = scope["method"], scope["path"]
    host = headers.get("host", "")
    bucket = application.extract_s3_vhost_bucket(host)
    if bucket in application.non_s3_vhost_names():
        bucket = None
    elsewhere = _DATA_PLANES.match(path) or _OTHER_HOSTS.search(host)
    service = "another" if elsewhere else "s3" if bucket else detect_service(method, path, headers, query)
    if service == "s3":
        headers = dict(s3.merge_hoisted_amz_headers(headers, query))
        if "x-amz-copy-source" in headers:
            headers["x-amz-copy-source"] = _copy_source(headers["x-amz-copy-source"])
        raw_path = urllib.parse.quote(f"/{bucket}{path}" if bucket else path)
    else:
        raw_path = scope.get("raw_path", b"").decode("ascii") or urllib.parse.quote(path)
    return Received(method=method, path=raw_path, query=query, headers=headers, service=service)


def _copy_source(given: str) -> str:
    """As MiniStack divides it, encoded anew: a ``#`` or ``//`` would be read as a part of a URL."""
    source, mark, version = given.lstrip("/").partition("?")
    bucket, slash, key = urllib.parse.unquote(source).partition("/")
    return urllib.parse.quote(bucket, safe="") + slash + urllib.parse.quote(key, safe="/") + mark + version


def plain_body(request: Received, body: bytes) -> bytes:
    """A body without the frames of ``aws-chunked`` and without compression, as MiniStack hands it to the service."""
    headers = dict(request.headers)
    try:
        body = chunks_joined(body, headers)
    except application.incomplete_request_body() as error:
        raise _refused(f"The aws-chunked body is not complete: {error}") from error
    return body if request.service == "s3" else expanded(body, headers)


_decode_chunks: Callable[[bytes, dict[str, str]], bytes] = application.decode_aws_chunked_body.current


def chunks_joined(body: bytes, headers: dict[str, str]) -> bytes:
    """In MiniStack's place: of the trailers behind a chunked body only checksums become headers.

    MiniStack takes any, and with ``x-amz-target`` or ``x-amz-copy-source`` the request would be another one.
    """
    known = frozenset(headers)
    body = _decode_chunks(body, headers)
    for name in headers.keys() - known:
        if not name.startswith("x-amz-checksum-"):
            del headers[name]
    return body


def require_one_reading(request: Received, *, service: str, scope: str, body: bytes) -> None:
    """Raise RefusedError or UnreadableRequestError where MiniStack would read another request than the gate.

    Args:
        request: as received.
        service: botocore's name of the one that the request is signed for.
        scope: that service's name in the signature.
        body: plain.
    """
    signed = {"authorization": f"Credential=any/20260101/any/{scope}/aws4_request"}
    path = urllib.parse.unquote(request.path)
    # A service of ours that MiniStack finds by its target alone has botocore's name there.
    if request.service not in (service, detect_service("POST", "/", signed, {})):
        raise UnreadableRequestError(
            f"{request.method} {path} at host {request.headers.get('host', '')!r} is signed for {scope}, and not what "
            f"the local AWS would do with it ({request.service})"
        )
    if not service_model(service).metadata["protocol"].startswith("rest-"):
        _require_one_action(request, service=service, body=body)
    elif request.service != "s3" and path.count("/") != request.path.count("/"):
        raise _refused(f"The path {request.path} has an encoded slash in a name; no operation of {service} takes one")


def _require_one_action(request: Received, *, service: str, body: bytes) -> None:
    """Of AWS JSON, query and EC2: one operation, at one place, with each parameter once."""
    kind = request.headers.get("content-type", "")
    if "smithy-protocol" in request.headers or "cbor" in kind:
        raise _refused(f"The local AWS takes requests to {service} as JSON or forms, not in CBOR")
    if request.path not in ("/", ""):
        raise _refused(f"The path of requests to {service} is /, not {request.path}")
    if body and request.method != "POST":
        raise _refused(f"A {request.method} request to {service} has no body; send it with POST")
    if "x-amz-target" in request.headers:
        if "Action" in request.query:
            raise _refused("Action in the query and the header X-Amz-Target cannot be used together")
        if not kind.startswith("application/x-amz-json-"):
            raise _refused(
                f"The Content-Type of a request with X-Amz-Target is application/x-amz-json-1.1, not {kind!r}"
            )
        return
    if body and not kind.startswith("application/x-www-form-urlencoded"):
        raise _refused(f"The Content-Type of a form is application/x-www-form-urlencoded, not {kind!r}")
    form = urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    given = [*(name for name, values in request.query.items() for _ in values), *(name for name, _ in form)]
    if repeated := _repeated(given):
        raise _refused(f"{', '.join(repeated)} is more than once in the query and the form; send it once")


def require_same_objects(request: ServiceRequest, body: bytes) -> None:
    """Raise RefusedError where DeleteObjects could delete other objects than the request's parameters name."""
    if request.operation != "DeleteObjects":
        return
    objects = (request.parameters.get("Delete") or {}).get("Objects") or []
    try:
        elements = [(each.tag.rpartition("}")[2], each.text or "") for each in s3.fromstring(body).iter()]
    except ParseError:
        elements = []
    for name in ("Key", "VersionId"):
        found = sorted(text for tag, text in elements if tag == name and text)
        if found != sorted(each[name] for each in objects if each.get(name)) or not objects:
            sentence = "The XML you provided was not well-formed or did not validate against our published schema"
            raise RefusedError("MalformedXML", sentence, source="S3 API reference, Error responses")


def parameters_of_routing(*request: Any) -> Any:
    """In MiniStack's place: the query alone decides the service, and no body that a caller calls a form.

    A form is signed in its headers, which name the service; an object that looks like a form is an object.
    """
    return request[-1]


def _repeated(names: Iterable[str]) -> list[str]:
    listed = list(names)
    return sorted({name for name in listed if listed.count(name) > 1})


def _refused(sentence: str) -> RefusedError:
    return RefusedError(COMBINATION, sentence, source="tritonstack_local.emulator.iam.one_reading")
