"""CloudWatch's JSON and query protocols, driven by botocore's model.

boto3 speaks JSON to CloudWatch; older SDKs and the local AWS itself speak the query protocol. Requests become plain
dictionaries, timestamps seconds since the epoch. CBOR, which SDKs for other languages speak, is refused.
"""

from __future__ import annotations

import json
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

import botocore.utils

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.request_validation import RefusedError

SERVICE = "cloudwatch"
Answer = tuple[int, dict[str, str], bytes]
_JSON = "application/x-amz-json-1.0"
_NAMESPACE = "http://monitoring.amazonaws.com/doc/2010-08-01/"


@dataclass(frozen=True, kw_only=True)
class Message:
    """A request: the protocol (``json`` or ``query``), the operation's name, and its members as sent."""

    protocol: str
    operation: str
    members: dict[str, Any]

    def request(self) -> dict[str, Any]:
        """The members as the model has them; raises ``RefusedError`` for what the model does not allow."""
        shape = _model(self.operation).input_shape
        found: dict[str, Any] = _from_query(shape, self.members) if self.protocol == "query" else self.members
        found = _read(shape, found)
        try:
            request_validation.validate(SERVICE, self.operation, found)
        except RefusedError as refusal:
            refusal.code = "ValidationError"  # CloudWatch's own word for it
            raise
        return found

    def answer(self, members: dict[str, Any] | None) -> Answer:
        """The answer to it, of what the model knows of ``members``."""
        shape = _model(self.operation).output_shape
        shown = _shown(shape, members or {}) if shape is not None else {}
        if self.protocol == "json":
            return 200, {"Content-Type": _JSON}, json.dumps(shown).encode()
        result = "".join(_xml(shape, shown)) if shape is not None else ""
        inner = f"<{self.operation}Result>{result}</{self.operation}Result>" if shape is not None else ""
        identifier = f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata>"
        text = f'<{self.operation}Response xmlns="{_NAMESPACE}">{inner}{identifier}</{self.operation}Response>'
        return 200, {"Content-Type": "text/xml"}, text.encode()

    def refusal(self, refusal: RefusedError) -> Answer:
        """The error response."""
        error = {"__type": refusal.code, "message": str(refusal)}
        query_code = {"x-amzn-query-error": f"{refusal.code};Sender", "x-amzn-errortype": refusal.code}
        if self.protocol == "json":
            return refusal.status, {"Content-Type": _JSON, **query_code}, json.dumps(error).encode()
        text = (
            f'<ErrorResponse xmlns="{_NAMESPACE}"><Error><Type>Sender</Type><Code>{refusal.code}</Code>'
            f"<Message>{escape(str(refusal))}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
        )
        return refusal.status, {"Content-Type": "text/xml"}, text.encode()


def read(headers: Mapping[str, str], body: bytes, query: Mapping[str, Any]) -> Message:
    """Read a request; its operation is empty where none is named. Raises ``RefusedError`` for CBOR and for no JSON."""
    target = headers.get("x-amz-target", "").rpartition(".")[2]
    if "cbor" in headers.get("content-type", "") or "cbor" in headers.get("smithy-protocol", ""):
        raise RefusedError(
            "SerializationException",
            "CloudWatch's CBOR protocol is not in the local AWS; it has the JSON and the query protocol",
            source="tritonstack_local.emulator",
        )
    if target:
        try:
            members = json.loads(body or b"{}")
        except ValueError as error:
            raise RefusedError("SerializationException", f"no JSON: {error}", source="AWS JSON 1.0 protocol") from error
        return Message(protocol="json", operation=target, members=members)
    fields = {name: value[0] if isinstance(value, list) else str(value) for name, value in query.items()}
    fields |= dict(urllib.parse.parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    return Message(protocol="query", operation=fields.get("Action", ""), members=fields)


def _model(operation: str) -> Any:
    return request_validation.service_model(SERVICE).operation_model(operation)


def _from_query(shape: Any, fields: Mapping[str, str], prefix: str = "") -> Any:
    """``A.B.member.1.C=…`` as the shape nests it; None where no field is of it."""
    if shape.type_name == "structure":
        start = prefix + "." if prefix else ""
        members = {name: _from_query(member, fields, start + name) for name, member in shape.members.items()}
        found = {name: value for name, value in members.items() if value is not None}
        return found if found or not prefix or prefix in fields else None
    if shape.type_name == "list":
        items: list[Any] = []
        while (item := _from_query(shape.member, fields, f"{prefix}.member.{len(items) + 1}")) is not None:
            items.append(item)
        return items if items or prefix in fields else None
    return fields.get(prefix)


def _read(shape: Any, value: Any) -> Any:
    """Timestamps as seconds, numbers and booleans of the query protocol as what they are, nulls left out."""
    kind = shape.type_name if shape is not None else ""
    if kind == "structure" and isinstance(value, dict):
        return {k: _read(shape.members.get(k), v) for k, v in value.items() if v is not None}
    if kind == "list" and isinstance(value, list):
        return [_read(shape.member, item) for item in value]
    if kind == "timestamp":
        return _seconds(value)
    if isinstance(value, str):
        value = request_validation._number_or_boolean(kind, value)
    is_whole = kind in ("double", "float") and isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole else value


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return botocore.utils.parse_timestamp(value).timestamp()
        except ValueError:
            return value
    return value.timestamp() if isinstance(value, datetime) else value


def _shown(shape: Any, value: Any) -> Any:
    """``value`` without members that the shape does not know, and without None; whole seconds are integers."""
    if shape.type_name == "structure":
        return {n: _shown(shape.members[n], v) for n, v in value.items() if n in shape.members and v is not None}
    if shape.type_name == "list":
        return [_shown(shape.member, item) for item in value]
    if shape.type_name == "timestamp":
        return int(value) if value == int(value) else round(float(value), 3)
    if shape.type_name in ("double", "float"):
        return float(value)
    return value


def _xml(shape: Any, value: Any) -> Iterator[str]:
    if shape.type_name == "structure":
        for name, item in value.items():
            yield f"<{name}>{''.join(_xml(shape.members[name], item))}</{name}>"
    elif shape.type_name == "list":
        yield from (f"<member>{''.join(_xml(shape.member, item))}</member>" for item in value)
    elif shape.type_name == "map":
        for key, item in value.items():
            yield f"<entry><key>{escape(key)}</key><value>{''.join(_xml(shape.value, item))}</value></entry>"
    elif shape.type_name == "timestamp":
        yield datetime.fromtimestamp(value, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    else:
        yield str(value).lower() if isinstance(value, bool) else escape(str(value))
