"""CloudWatch's JSON protocol, driven by botocore's model.

Requests become plain dictionaries, timestamps seconds since the epoch. The query protocol, which SDKs of before 2025
speak, and CBOR, which SDKs for other languages speak, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.request_validation import RefusedError

SERVICE = "cloudwatch"
Answer = tuple[int, dict[str, str], bytes]
_JSON = "application/x-amz-json-1.0"
_SPECIAL_VALUES = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, kw_only=True)
class Message:
    """A request: the operation's name, and its members as sent."""

    operation: str
    members: dict[str, Any]

    def request(self) -> dict[str, Any]:
        """The members as the model has them; raises ``RefusedError`` for what the model does not allow."""
        found: dict[str, Any] = _read(_model(self.operation).input_shape, self.members)
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
        return 200, {"Content-Type": _JSON}, json.dumps(shown).encode()


def refusal_answer(refusal: RefusedError) -> Answer:
    """The error response."""
    headers = {"x-amzn-query-error": f"{refusal.code};Sender", "x-amzn-errortype": refusal.code}
    error = {"__type": refusal.code, "message": str(refusal)}
    return refusal.status, {"Content-Type": _JSON, **headers}, json.dumps(error).encode()


def read(headers: Mapping[str, str], body: bytes) -> Message:
    """Read a request. Raises ``RefusedError`` for the query protocol, for CBOR and for no JSON."""
    target = headers.get("x-amz-target", "").rpartition(".")[2]
    if not target:
        raise RefusedError(
            "SerializationException",
            "CloudWatch's CBOR protocol and its query protocol are not in the local AWS; it has the JSON protocol of "
            "today's boto3 and AWS CLI",
            source="tritonstack_local.emulator",
        )
    try:
        members = json.loads(body or b"{}")
    except ValueError as error:
        raise RefusedError("SerializationException", f"no JSON: {error}", source="AWS JSON 1.0 protocol") from error
    return Message(operation=target, members=members)


def _model(operation: str) -> Any:
    return request_validation.service_model(SERVICE).operation_model(operation)


def _read(shape: Any, value: Any) -> Any:
    """Whole numbers as what the shape has, nulls left out."""
    kind = shape.type_name if shape is not None else ""
    if kind == "structure" and isinstance(value, dict):
        return {k: _read(shape.members.get(k), v) for k, v in value.items() if v is not None}
    if kind == "list" and isinstance(value, list):
        return [_read(shape.member, item) for item in value]
    if kind not in ("double", "float"):
        return value
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole or value in _SPECIAL_VALUES else value


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
