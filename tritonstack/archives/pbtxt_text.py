"""A parsed configuration as text again: one spelling for each message, whatever it was read from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from tritonstack.archives.pbtxt import Field, Message, Scalar

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_text(message: Message) -> str:
    """The message in protobuf's text format, a field a line; :func:`tritonstack.archives.pbtxt.parse` reads it."""
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
