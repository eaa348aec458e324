"""Fields of a protobuf message in a file, whose contents are passed over where they are not asked for.

Source of the wire format: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES = 10

_TEXT_BYTES = 1 << 16
"""No name of a tensor is longer; a file with a longer one is damaged."""


class ProtobufError(ValueError):
    """The file is no such message, or is damaged."""


@dataclass(frozen=True)
class Field:
    """A field of a message: its number, and its value or the place of its content."""

    number: int
    value: int
    start: int
    end: int
    is_message: bool


def outermost_fields(path: Path) -> frozenset[int]:
    """The numbers of the fields of a protobuf message in a file, whose contents are not read.

    Raises :class:`ProtobufError` where it is none, or is cut off.
    """
    with path.open("rb") as stream:
        return frozenset(field.number for field in message_fields(stream, 0, os.fstat(stream.fileno()).st_size))


def only_field(stream: BinaryIO, message: Field, number: int) -> Field | None:
    """The last field of this number, as protobuf takes it."""
    found = None
    for field in message_fields(stream, message.start, message.end):
        if field.number == number:
            found = field
    return found


def text_field(stream: BinaryIO, message: Field, number: int) -> str:
    field = only_field(stream, message, number)
    return "" if field is None else field_text(stream, field)


def field_text(stream: BinaryIO, field: Field) -> str:
    if not field.is_message or field.end - field.start > _TEXT_BYTES:
        raise ProtobufError(f"byte {field.start}: no name")
    stream.seek(field.start)
    try:
        return stream.read(field.end - field.start).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"byte {field.start}: a name that is no UTF-8") from error


def message_fields(stream: BinaryIO, start: int, end: int) -> Iterator[Field]:
    """The fields of a message between two places of the file; contents are not read."""
    place = start
    while place < end:
        key, place = _varint(stream, place, end)
        number, kind = key >> 3, key & 7
        value = 0
        before = place
        if kind == _VARINT:
            value, place = _varint(stream, place, end)
        elif kind == _LENGTH:
            length, before = _varint(stream, place, end)
            place = before + length
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        else:
            raise ProtobufError(f"byte {before}: no protobuf")
        if number == 0 or place > end:
            raise ProtobufError(f"byte {before}: {'no protobuf' if number == 0 else 'the file is cut off'}")
        yield Field(number, value, before, place, is_message=kind == _LENGTH)


def _varint(stream: BinaryIO, place: int, end: int) -> tuple[int, int]:
    """A number at a place of the file, and the place after it."""
    stream.seek(place)
    value = 0
    for index, byte in enumerate(stream.read(min(_VARINT_BYTES, end - place))):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value, place + index + 1
    raise ProtobufError(f"byte {place}: {'the file is cut off' if end - place < _VARINT_BYTES else 'no protobuf'}")
