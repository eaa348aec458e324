"""Requests: refused, checked against botocore's service models, and sent to this emulator's own services."""

from __future__ import annotations

import difflib
import functools
import json
import math
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import botocore
import botocore.config
import botocore.session


class RefusedError(Exception):
    """A refused request: AWS's error code, its sentence, and its source.

    Attributes:
        code: AWS's error code (``ValidationException``).
        status: HTTP status, 400 but for what is not found or unavailable.
    """

    def __init__(self, code: str, message: str, *, source: str, status: int = 400) -> None:
        """``source``: the source of the refusal (a service model, a documentation page)."""
        super().__init__(f"{message} [source: {source}]")
        self.code = code
        self.status = status


@functools.cache
def data_beside(module: str, name: str) -> dict[str, Any]:
    """The JSON file of this name in the folder of a module, whose ``__file__`` is given."""
    found: dict[str, Any] = json.loads(Path(module).with_name(name).read_text(encoding="utf-8"))
    return found


CREDENTIALS: dict[str, str] = {}
"""The account's administrator's, whose requests are all allowed; put in by ``server.build``."""
OWN_TOKEN = uuid.uuid4().hex
"""The session token of this process's requests to its own services (``services.call``), which need no permission."""


def client(service: str, region: str, credentials: Mapping[str, str] = CREDENTIALS, *, attempts: int = 5) -> Any:
    """A client of this emulator's own gateway, for worker threads: its event loop would wait for itself.

    Args:
        service: botocore's name.
        region: of the requests.
        credentials: as variables. MiniStack takes an access key of twelve digits for the account.
        attempts: by default a service gives up no sooner than its users' SDKs.
    """
    return _client(service, region, attempts, *credentials.values())


@functools.lru_cache(maxsize=32)
def _client(service: str, region: str, attempts: int, *keys: str) -> Any:
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    signed: Any = dict(zip(names, keys, strict=False))
    config = botocore.config.Config(
        s3={"addressing_style": "path"}, retries={"mode": "standard", "total_max_attempts": attempts}
    )
    return boto3.client(
        service, region_name=region, endpoint_url=os.environ["AWS_ENDPOINT_URL"], config=config, **signed
    )


# The sentences are those of AWS ("Member must satisfy enum value set: …"). An unknown member has no such sentence,
# since AWS's JSON services drop it silently; it is refused here.

_LONGEST_ENUM = 40
_NUMBERS = ("integer", "long", "float", "double")
# Smithy's integer and long are signed; its JSON has no infinity.
_INTEGER_BITS = {"integer": 32, "long": 64}
# Java's character classes, which AWS's patterns use and Python's lack. Slightly wider than the originals.
_JAVA_CLASSES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s"}


@functools.cache
def service_model(service: str) -> Any:
    """Botocore's model of ``service`` (``sagemaker``)."""
    return botocore.session.get_session().get_service_model(service)


def validate(service: str, operation: str, request: dict[str, Any]) -> None:
    """Raise ``RefusedError`` (``ValidationException``) with every problem of the request at once."""
    shape = service_model(service).operation_model(operation).input_shape
    found = list(_problems(shape, request, "")) if shape is not None else []
    if found:
        plural = "error" if len(found) == 1 else "errors"
        raise RefusedError(
            "ValidationException",
            f"{len(found)} validation {plural} detected: " + "; ".join(found),
            source=f"botocore {botocore.__version__}, {service} {operation}",
        )


def coerce(service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """A template's properties as the API takes them: its names, and numbers and booleans that may be strings."""
    shape = service_model(service).operation_model(operation).input_shape
    coerced: dict[str, Any] = _coerced(shape, request)
    return coerced


def _coerced(shape: Any, value: Any) -> Any:
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict):
        spelled = {name.lower(): name for name in shape.members}
        named = {spelled.get(name.lower(), name): item for name, item in value.items()}
        return {k: _coerced(shape.members[k], v) if k in shape.members else v for k, v in named.items()}
    if kind == "map" and isinstance(value, dict):
        return {k: _coerced(shape.value, v) for k, v in value.items()}
    if kind == "list" and isinstance(value, list):
        return [_coerced(shape.member, v) for v in value]
    if isinstance(value, str):
        return _number_or_boolean(kind, value)
    if kind == "string" and isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return value


def _number_or_boolean(kind: str, text: str) -> Any:
    """``text`` as a number or boolean, or unchanged for the check to refuse."""
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in _NUMBERS:
        try:
            return int(text) if kind in ("integer", "long") else float(text)
        except ValueError:
            return text
    return text


def _problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    kind = shape.type_name
    if not _has_type(shape, value):
        yield f"Value '{_shown(value)}' at '{path}' failed to satisfy constraint: Member must be of type {kind}"
    elif kind == "structure":
        yield from _structure_problems(shape, value, path)
    elif kind == "list":
        yield from _bound_problems(shape, value, path)
        for index, item in enumerate(value, start=1):
            yield from _problems(shape.member, item, f"{path}.{index}.member")
    elif kind == "map":
        yield from _bound_problems(shape, value, path)
        for key, item in value.items():
            yield from _problems(shape.key, key, f"{path}.key")
            yield from _problems(shape.value, item, f"{path}.{key}.value")
    elif kind in _NUMBERS:
        yield from _bound_problems(shape, value, path)
    elif kind == "string":
        yield from _string_problems(shape, value, path)


def _structure_problems(shape: Any, value: dict[str, Any], path: str) -> Iterator[str]:
    for name in shape.required_members:
        if value.get(name) is None:
            yield f"Value at '{_member(path, name)}' failed to satisfy constraint: Member must not be null"
    for name, item in value.items():
        if name not in shape.members:
            near = difflib.get_close_matches(name, list(shape.members), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"Value at '{_member(path, name)}' failed to satisfy constraint: Member is not known{hint}"
        elif item is not None:
            yield from _problems(shape.members[name], item, _member(path, name))
            yield from _unsupported_problems(shape, name, item, path)


@functools.cache
def _unsupported() -> dict[str, dict[str, list[Any]]]:
    """Shape → member → the values that the local AWS has; without one the member is not here."""
    document = data_beside(__file__, "unsupported.json")
    return {shape: members for shapes in document.values() for shape, members in shapes.items()}


def _unsupported_problems(shape: Any, name: str, value: Any, path: str) -> Iterator[str]:
    """A member or value that AWS takes and the local AWS does not have."""
    here = _unsupported().get(shape.name, {}).get(name)
    if here is not None and value not in (*here, [], {}):
        has = f"; it has {', '.join(map(_shown, here))}" if here else ""
        yield f"{_member(path, name)} {_shown(value)} is not in the local AWS{has}"


def _bound_problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    """A number's value, or the length of anything else."""
    what, measured = ("value", value) if shape.type_name in _NUMBERS else ("length", len(value))
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and measured < low:
        yield _constraint(value, path, f"Member must have {what} greater than or equal to {low}")
    if high is not None and measured > high:
        yield _constraint(value, path, f"Member must have {what} less than or equal to {high}")


def _string_problems(shape: Any, value: str, path: str) -> Iterator[str]:
    yield from _bound_problems(shape, value, path)
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed:
        yield _constraint(value, path, f"Member must satisfy enum value set: [{enumeration(value, allowed)}]")
    pattern = _pattern(shape.metadata.get("pattern", ""))
    if pattern is not None and not pattern.fullmatch(value):
        yield _constraint(value, path, f"Member must satisfy regular expression pattern: {shape.metadata['pattern']}")


def enumeration(value: str, allowed: list[str]) -> str:
    """The allowed values, or where they are many how many and which are near."""
    if len(allowed) <= _LONGEST_ENUM:
        return ", ".join(allowed)
    near = difflib.get_close_matches(value, allowed, 5, 0.5)
    return f"{len(allowed)} values" + (f", near: {', '.join(near)}" if near else "")


@functools.cache
def _pattern(text: str) -> re.Pattern[str] | None:
    """A compiled pattern; None where there is none, or where Python cannot read Java's."""
    for java, python in _JAVA_CLASSES.items():
        text = text.replace(java, python)
    try:
        return re.compile(text) if text else None
    except re.error:
        return None


def _has_type(shape: Any, value: Any) -> bool:
    kind = shape.type_name
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in _INTEGER_BITS:
        return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < _INTEGER_BITS[kind]
    if kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind == "timestamp":
        return isinstance(value, int | float) and not isinstance(value, bool)
    expected: type = {"structure": dict, "map": dict, "list": list}.get(kind, str)
    return isinstance(value, expected)


def _constraint(value: Any, path: str, constraint: str) -> str:
    return f"Value '{_shown(value)}' at '{path}' failed to satisfy constraint: {constraint}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else text[:200] + "…"


def _member(path: str, name: str) -> str:
    """AWS spells members in its sentences with a small first letter."""
    name = name[:1].lower() + name[1:]
    return f"{path}.{name}" if path else name
