"""Fragments of ``config.pbtxt`` merged over a whole one; a configuration as text in one spelling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tritonstack.errors import InputError, Problem
from tritonstack.models.model_config import map_fields, rivals
from tritonstack.models.pbtxt import Field, Message, PbtxtError, Scalar, parse

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_text(message: Message) -> str:
    """The message in protobuf's text format, a field a line; :func:`tritonstack.models.pbtxt.parse` reads it."""
    return "".join(f"{line}\n" for line in _lines(message.fields, ""))


def _lines(fields: Sequence[Field], indent: str) -> Iterator[str]:
    for name, group in groupby(fields, key=lambda field: field.name):
        values = [field.value for field in group]
        scalars = [value for value in values if isinstance(value, Scalar)]
        if len(scalars) == len(values) and len(scalars) > 1:
            yield f"{indent}{name}: [ {', '.join(map(_scalar, scalars))} ]"
            continue
        for value in values:
            if isinstance(value, Scalar):
                yield f"{indent}{name}: {_scalar(value)}"
            else:
                yield f"{indent}{name} {{"
                yield from _lines(value.fields, f"{indent}  ")
                yield f"{indent}}}"


def _scalar(scalar: Scalar) -> str:
    if scalar.kind == "string":
        return f'"{"".join(map(_character, str(scalar.value)))}"'
    if isinstance(scalar.value, float) and not math.isfinite(scalar.value):
        return str(scalar.value)  # inf, -inf, nan: as the format spells them
    return repr(scalar.value) if isinstance(scalar.value, float) else str(scalar.value)


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\{ord(character):03o}" if ord(character) < 0x20 or ord(character) == 0x7F else character


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """The text of a configuration, whole or a fragment, and the file that it stands in."""

    file: str
    text: str


def merge_configs(base: ConfigFile, fragments: Sequence[ConfigFile]) -> str:
    """``base`` with each fragment merged over it, in their order; the same text for the same inputs.

    A scalar replaces; a message or a repeated field that a fragment names replaces the whole field; entries of a map
    (``parameters``) replace those of the same key and leave the others. A member of a choice (``dynamic_batching``,
    ``sequence_batching``) drops the others. Without fragments the base's text is returned as it is.

    Raises :class:`InputError` naming file and line where a text is no text format.
    """
    if not fragments:
        return base.text
    merged = _parsed(base)
    for fragment in fragments:
        merged = _merged(merged, _parsed(fragment))
    return to_text(merged)


def with_name(config: ConfigFile, name: str) -> str:
    """The configuration's text with another ``name``; as it is where it names none: Triton then takes the folder's."""
    message = _parsed(config)
    if not message.all("name"):
        return config.text
    fields = (
        Field("name", Scalar("string", name, field.line), field.line) if field.name == "name" else field
        for field in message.fields
    )
    return to_text(Message(tuple(fields), message.line))


def _parsed(config: ConfigFile) -> Message:
    try:
        return parse(config.text)
    except PbtxtError as error:
        problem = Problem(file=f"{config.file}:{error.line}", found=error.message, allowed="protobuf's text format")
        raise InputError([problem]) from error


def _merged(base: Message, over: Message) -> Message:
    """New fields stand where the field that they replace began, else at the end."""
    names = list(dict.fromkeys(field.name for field in over.fields))
    replaced = set(names) | {other for name in names for other in rivals(name)}
    fields: list[Field] = []
    placed: set[str] = set()
    for field in base.fields:
        if field.name not in replaced:
            fields.append(field)
        elif field.name in names and field.name not in placed:
            placed.add(field.name)
            fields += _values(field.name, base, over)
    for name in names:
        if name not in placed:
            fields += _values(name, base, over)
    return Message(tuple(fields), base.line)


def _values(name: str, base: Message, over: Message) -> tuple[Field, ...]:
    """A field's values after the merge."""
    if name not in map_fields():
        return over.all(name)
    entries = {_key(field): field for field in (*base.all(name), *over.all(name))}
    return tuple(entries.values())


def _key(entry: Field) -> str:
    if not isinstance(entry.value, Message):
        return ""
    keys = entry.value.all("key")
    return str(keys[-1].value.value) if keys and isinstance(keys[-1].value, Scalar) else ""
