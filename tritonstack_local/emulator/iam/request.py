"""HTTP requests to the local AWS, read back as botocore's operations and their parameters.

Protocols: AWS JSON (``X-Amz-Target``), query and EC2 (forms), REST-JSON and REST-XML. The service is that of the
signature's credential scope; botocore's models have the places of parameters in a request.
"""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import botocore.parsers
from botocore.awsrequest import HeadersDict
from botocore.exceptions import UnknownServiceError

from tritonstack_local import REGION
from tritonstack_local.emulator.request_validation import RefusedError, service_model

_CREDENTIAL = re.compile(r"([^/,\s=]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")
"""Access key, region and service of a signature (IAM user guide, "Elements of an AWS API request signature")."""
_OF_SCOPE = {
    "monitoring": ("cloudwatch",),
    "sagemaker": ("sagemaker", "sagemaker-runtime"),
    "servicequotas": ("service-quotas",),
    "states": ("stepfunctions",),
    "tagging": ("resourcegroupstaggingapi",),
}
"""Credential scope → botocore's services that sign with it, where these have another name; one of REST last."""
_LABEL = re.compile(r"\{([^}+]+)(\+?)\}")
LARGEST_BODY = 72 * 1024 * 1024
"""The most bytes of a body that is read or expanded here, which objects of S3 are not: a function's code of 50 MB in
base64 (Lambda quotas)."""
Query = Mapping[str, list[str]]
Headers = Mapping[str, str]


class UnreadableRequestError(ValueError):
    """A request whose service or operation is unknown; the text names it."""


@dataclass(frozen=True, kw_only=True)
class ServiceRequest:
    """A request to a service."""

    service: str  # botocore's name
    operation: str
    parameters: Mapping[str, Any]  # numbers and truth values of forms, paths, queries and headers as texts
    region: str  # of the signature
    access_key: str  # empty without a signature


def read_request(method: str, path: str, query: Query, headers: Headers, body: bytes) -> ServiceRequest:
    """The operation and its parameters. Raises UnreadableRequestError.

    A body that its protocol does not allow gives no parameters: the service refuses it in its own words.

    Args:
        method: HTTP's.
        path: as sent, percent-encoded.
        query: decoded parameters, blank ones too.
        headers: by names in lower case.
        body: not compressed; empty where ``reads_body`` is False.
    """
    access_key, region, scope = _signature(headers, query)
    target = headers.get("x-amz-target", "")
    service = _service(scope, target)
    protocol = service_model(service).metadata["protocol"]
    if target:
        operation, parameters = _operation(service, target.rpartition(".")[2]), _json(body)
    elif protocol in ("query", "ec2"):
        fields = {name: values[0] for name, values in query.items()}
        fields |= urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        operation = _operation(service, fields.get("Action", ""))
        shape = operation.input_shape
        parameters = _member(shape, _tree(fields), ec2=protocol == "ec2") if shape is not None else {}
    elif protocol.startswith("rest-"):
        operation, located = _routed(service, method, path, query, headers)
        parameters = _body_members(protocol, headers, body, operation.input_shape) | located
    else:
        raise UnreadableRequestError(f"a request to {service} names its operation in the header X-Amz-Target")
    return ServiceRequest(
        service=service, operation=operation.name, parameters=parameters, region=region, access_key=access_key
    )


def reads_body(method: str, headers: Headers, query: Query) -> bool:
    """Whether the body names the resources of a request. False for S3, whose bodies are large, but of DeleteObjects."""
    _, _, scope = _signature(headers, query)
    return scope != "s3" or "x-amz-target" in headers or (method == "POST" and "delete" in query)


def _signature(headers: Headers, query: Query) -> tuple[str, str, str]:
    """Access key, region and service of the credential scope.

    S3 alone has requests without a signature, and presigned URLs with one of version 2, which has no scope.
    """
    signed = _CREDENTIAL.search(headers.get("authorization") or query.get("X-Amz-Credential", [""])[0])
    if signed:
        return signed[1], signed[2], signed[3]
    return query.get("AWSAccessKeyId", [""])[0], REGION, "s3"


def signer(headers: Headers, query: Query) -> tuple[str, str, str]:
    """Access key, empty without a signature, and botocore's and the signature's name of the service it is for.

    The service is ``sts``, whose error form is AWS's plainest, where the signature names none that botocore has.
    """
    access_key, _, scope = _signature(headers, query)
    try:
        return access_key, _service(scope, headers.get("x-amz-target", "")), scope
    except UnreadableRequestError:
        return access_key, "sts", scope


def _service(scope: str, target: str) -> str:
    """botocore's name. MiniStack routes by the target before the scope: they must agree."""
    names = _OF_SCOPE.get(scope, (scope,))
    try:
        prefixes = [service_model(name).metadata.get("targetPrefix") for name in names]
    except UnknownServiceError as error:
        raise UnreadableRequestError(f"no service of botocore signs its requests as {scope!r}") from error
    if not target:
        return names[-1]
    prefix = target.rpartition(".")[0]
    if prefix not in prefixes:
        raise UnreadableRequestError(f"X-Amz-Target {target} is no operation of {scope}, which the signature names")
    return names[prefixes.index(prefix)]


def _operation(service: str, name: str) -> Any:
    model = service_model(service)
    if name not in model.operation_names:
        raise UnreadableRequestError(f"{service} has no operation {name!r}")
    return model.operation_model(name)


# --- Bodies ---


def decompressed(body: bytes) -> bytes:
    """A compressed body; nothing of one that is damaged. Raises UnreadableRequestError: it expands beyond the limit."""
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        content = reader.decompress(body, LARGEST_BODY)
    except zlib.error:
        return b""
    if reader.unconsumed_tail:
        raise UnreadableRequestError(f"the body expands to more than {LARGEST_BODY} bytes")
    return content if reader.eof else b""


def expanded(body: bytes, headers: dict[str, str]) -> bytes:
    """In MiniStack's place: a compressed body and its header taken off, within bounds; as it is where it has none."""
    encodings = [each.strip() for each in headers.get("content-encoding", "").split(",") if each.strip()]
    if "gzip" not in encodings:
        return body
    try:
        content = decompressed(body)
    except UnreadableRequestError:
        return body
    encodings.remove("gzip")
    headers.pop("content-encoding")
    return content


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    except RecursionError as error:
        sentence = "The request's JSON is nested too deeply"
        raise RefusedError("SerializationException", sentence, source="Smithy 2.0, AWS JSON 1.1 protocol") from error
    return found if isinstance(found, dict) else {}


def _xml(headers: Headers, body: bytes, shape: Any) -> dict[str, Any]:
    """The parameters by botocore's parser of responses, which are written as requests are."""
    response = {"status_code": 200, "headers": HeadersDict(headers), "body": body}
    try:
        found: dict[str, Any] = botocore.parsers.create_parser("rest-xml").parse(response, shape)
    except (botocore.parsers.ResponseParserError, ValueError, LookupError, AttributeError, TypeError):
        return {}
    found.pop("ResponseMetadata", None)
    return found


def _body_members(protocol: str, headers: Headers, body: bytes, shape: Any) -> dict[str, Any]:
    """The members in the body of a REST request. A payload that is no structure is not read."""
    if not body or shape is None:
        return {}
    payload = shape.serialization.get("payload")
    if payload is not None and shape.members[payload].type_name != "structure":
        return {}
    if protocol == "rest-xml":
        return _xml(headers, body, shape)
    given = _json(body)
    if payload is not None:
        return {payload: given}
    spelled = {each.serialization.get("name", name): name for name, each in shape.members.items()}
    return {spelled[name]: value for name, value in given.items() if name in spelled}


def _tree(fields: Mapping[str, str]) -> dict[str, Any]:
    """``Tags.member.1.Key=a`` as nested maps."""
    tree: dict[str, Any] = {}
    for name, value in fields.items():
        node = tree
        *steps, last = name.split(".")
        for step in steps:
            inner = node.get(step)
            node[step] = inner if isinstance(inner, dict) else {}  # an empty list is its name alone
            node = node[step]
        node.setdefault(last, value)
    return tree


def _member(shape: Any, node: Any, *, ec2: bool) -> Any:
    """A member of a form (Smithy 2.0, "AWS query protocol" and "AWS EC2 query protocol")."""
    kind, flattened = shape.type_name, ec2 or shape.serialization.get("flattened")
    if kind not in ("structure", "list", "map"):
        return node
    node = node if isinstance(node, dict) else {}
    if kind == "structure":
        given = ((name, each, node.get(_field(name, each, ec2=ec2))) for name, each in shape.members.items())
        return {name: _member(each, inner, ec2=ec2) for name, each, inner in given if inner is not None}
    if not flattened:
        node = node.get("entry" if kind == "map" else shape.member.serialization.get("name", "member"), {})
    items = [node[number] for number in sorted((each for each in node if each.isdecimal()), key=int)]
    if kind == "list":
        return [_member(shape.member, item, ec2=ec2) for item in items]
    key, value = shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")
    return {item.get(key): _member(shape.value, item.get(value), ec2=ec2) for item in items if isinstance(item, dict)}


def _field(name: str, shape: Any, *, ec2: bool) -> str:
    serialization = shape.serialization
    spelled: str = serialization.get("name", name)
    if ec2:
        return str(serialization.get("queryName") or spelled[:1].upper() + spelled[1:])
    if shape.type_name == "list" and serialization.get("flattened"):
        return str(shape.member.serialization.get("name", spelled))
    return spelled


# --- Operations of REST services ---


class _Route(NamedTuple):
    """Conditions for a request to be of an operation, and the places of its members."""

    operation: Any
    path: re.Pattern[str]
    labels: tuple[str, ...]  # members in the path
    query: tuple[tuple[str, str], ...]  # parameters that it must have, with a value or any
    headers: tuple[str, ...]  # that it must have
    located: tuple[tuple[str, str, str, bool], ...]  # member, location, name there, whether it is a list


@functools.cache
def _routes(service: str, method: str) -> tuple[_Route, ...]:
    """The routes with the most conditions first: UploadPartCopy, UploadPart, CopyObject, PutObject."""
    model = service_model(service)
    operations = [model.operation_model(name) for name in model.operation_names]
    routes = [_route(each) for each in operations if each.http["method"] == method]
    return tuple(sorted(routes, key=lambda each: (-len(each.query) - len(each.headers), each.operation.deprecated)))


def _route(operation: Any) -> _Route:
    uri, _, flags = operation.http["requestUri"].partition("?")
    shape = operation.input_shape
    members = shape.members if shape is not None else {}
    spelled = {each.serialization.get("name", name): name for name, each in members.items()}
    located = tuple(
        (name, location, each.serialization["name"], each.type_name == "list")
        for name, each in members.items()
        if (location := each.serialization.get("location")) in ("querystring", "header")
    )
    needed = [each for each in located if each[0] in shape.required_members] if located else []
    given = [pair for pair in urllib.parse.parse_qsl(flags, keep_blank_values=True) if pair[0] != "x-id"]
    parts = _LABEL.split(uri.rstrip("/"))  # text, label, plus, text, …
    pattern = "".join(
        ("(.+)" if parts[at + 2] else "([^/]+)") + re.escape(parts[at + 3]) for at in range(0, len(parts) - 1, 3)
    )
    return _Route(
        operation=operation,
        path=re.compile(re.escape(parts[0]) + pattern + "/?"),
        labels=tuple(spelled[label] for label in parts[1::3]),
        query=(*given, *((there, "") for _, location, there, _ in needed if location == "querystring")),
        headers=tuple(there.lower() for _, location, there, _ in needed if location == "header"),
        located=located,
    )


@functools.cache
def _deciding(service: str) -> frozenset[str]:
    """Query parameters that distinguish operations of a service. MiniStack takes the first that it looks for."""
    return frozenset(
        name
        for method in ("GET", "HEAD", "PUT", "POST", "DELETE")
        for each in _routes(service, method)
        for name, _ in each.query
    )


def _routed(service: str, method: str, path: str, query: Query, headers: Headers) -> tuple[Any, dict[str, Any]]:
    """The operation, and the parameters in the path, the query and the headers."""
    for route in _routes(service, method):
        match = route.path.fullmatch(path)
        asked = all(name in query and (not value or query[name] == [value]) for name, value in route.query)
        if not match or not asked or not all(name in headers for name in route.headers):
            continue
        own = {name for name, _ in route.query} | {
            name for _, place, name, _ in route.located if place == "querystring"
        }
        if others := sorted(query.keys() & _deciding(service) - own):
            conflict = (
                f"Conflicting query string parameters: {', '.join((*(name for name, _ in route.query), *others))}"
            )
            raise RefusedError("InvalidArgument", conflict, source='S3 error, "Conflicting query string parameters"')
        found: dict[str, Any] = dict(zip(route.labels, map(urllib.parse.unquote, match.groups()), strict=True))
        for member, location, name, is_list in route.located:
            given = query.get(name) if location == "querystring" else headers.get(name.lower())
            if given is not None:
                texts = given if isinstance(given, list) else given.split(",") if is_list else [given]
                found[member] = texts if is_list else texts[0]
        return route.operation, found
    raise UnreadableRequestError(f"{method} {path} is no operation of {service}")
