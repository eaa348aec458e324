"""pydantic's errors in our words: what stands in the file, what the field takes, and what it means."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tritonstack.config.fields import PATTERNS
from tritonstack.config.findings import Finding, shown
from tritonstack.config.yaml_source import Location, YamlDocument

_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "missing": "a value",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entries",
    "literal_error": "{expected}",
}
_ADVICE = {
    "string_type": "Put the value in quotes.",
    "int_type": "Write a number without quotes or a fraction.",
    "bool_type": "Write true or false, without quotes.",
}


def type_findings(*, errors: Iterable[ErrorDetails], model: type[BaseModel], document: YamlDocument) -> list[Finding]:
    """One finding for each of pydantic's errors about ``document``, which was validated as ``model``."""
    return [_finding(error=error, model=model, document=document) for error in errors]


def echoes_bad_items(*, error: ErrorDetails, value: object) -> bool:
    """Whether a list is called too short only because its faulty items, each reported by itself, were not counted."""
    if error["type"] != "too_short":
        return False
    items = at(value, location_of(error))
    return isinstance(items, list) and len(items) >= error["ctx"]["min_length"]


def location_of(error: ErrorDetails) -> Location:
    """Where the error is, without pydantic's mark for the key of a mapping."""
    return error["loc"][:-1] if _about_a_key(error) else error["loc"]


def _about_a_key(error: ErrorDetails) -> bool:
    """Whether a mapping's key is wrong: pydantic then ends the place with that key and ``[key]``."""
    place = error["loc"]
    return len(place) > 1 and place[-1] == "[key]" and place[-2] == error["input"]


def at(value: object, location: Location) -> object:
    """The part of ``value`` at ``location``; None where there is none."""
    for part in location:
        try:
            value = value[part]  # type: ignore[index]  # what cannot be indexed so is caught
        except (TypeError, KeyError, IndexError):
            return None
    return value


def _finding(*, error: ErrorDetails, model: type[BaseModel], document: YamlDocument) -> Finding:
    location = location_of(error)
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown_field(location=location, fields=_model_at(model, location[:-1]), document=document)
    allowed = _allowed(error)
    is_key = _about_a_key(error)
    field = None if is_key else _field_at(model, location)
    description = field.description if field else None
    return Finding(
        location=location,
        found=_found(error=error, location=location, is_key=is_key, document=document),
        allowed=f"{allowed}: {description}" if description else allowed,
        advice=_advice(error),
    )


def _allowed(error: ErrorDetails) -> str:
    details = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in error.get("ctx", {}).items()
    }
    if error["type"] == "string_pattern_mismatch" and details["pattern"] in PATTERNS:
        return PATTERNS[details["pattern"]]
    return _KINDS[error["type"]].format(**details) if error["type"] in _KINDS else _own_words(error["msg"])


def _own_words(message: str) -> str:
    """What a validator of ours said, without pydantic's mark."""
    return message.removeprefix("Value error, ")


def _advice(error: ErrorDetails) -> str:
    if error["type"] == "string_pattern_mismatch" and "OOM" in error["input"]:
        return "Triton answers 507 to an error text with OOM in it, and SageMaker evicts models: keep it out of names."
    if error["input"] is None and error["type"] != "missing":
        return "Write a value: null stands for none, which this field does not take."
    return "" if isinstance(error["input"], dict | list) else _ADVICE.get(error["type"], "")


def _found(*, error: ErrorDetails, location: Location, is_key: bool, document: YamlDocument) -> str:
    if error["type"] == "missing":
        return "nothing"
    if is_key:
        return f"the key {shown(location[-1])}"
    value = at(document.value, location)
    text = document.texts.get(location)
    if text is not None and not isinstance(value, str) and text != shown(value):
        return f"{text or 'nothing'} (YAML reads {shown(value)})"
    return shown(value)


def _unknown_field(*, location: Location, fields: Mapping[str, FieldInfo], document: YamlDocument) -> Finding:
    name = str(location[-1])
    near = difflib.get_close_matches(name, fields, n=1)
    return Finding(
        location=location,
        found=f"the field {name}: {shown(at(document.value, location))}",
        allowed=f"the fields {', '.join(fields)}",
        advice=f"Did you mean {near[0]}?" if near else "Remove it.",
    )


def _model_at(model: type[BaseModel], location: Location) -> Mapping[str, FieldInfo]:
    """The fields of the model that stands at ``location``; empty where no model does."""
    if not location:
        return model.model_fields
    field = _field_at(model, location)
    inner = inner_model(field.annotation) if field else None
    return inner.model_fields if inner else {}


def _field_at(model: type[BaseModel], location: Location) -> FieldInfo | None:
    """The innermost declared field on the way to ``location``."""
    current: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for part in location:
        if isinstance(part, int) or current is None:
            continue
        if part not in current.model_fields:
            return field
        field = current.model_fields[part]
        current = inner_model(field.annotation)
    return field


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside ``Model``, ``tuple[Model, ...]`` or ``Model | None``."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in typing.get_args(annotation):
        inner = inner_model(argument)
        if inner:
            return inner
    return None
