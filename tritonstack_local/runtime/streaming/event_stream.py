"""Messages of an AWS event stream (``application/vnd.amazon.eventstream``), as InvokeEndpointWithResponseStream sends.

botocore only decodes them, and no other package of this project's encodes them. A message is a prelude (total length,
length of the headers, their CRC32), headers, payload, and the CRC32 of everything before; integers are big endian.
Source: AWS SDKs' specification of event streams (``botocore/eventstream.py`` has the same limits).
"""

from __future__ import annotations

import json
import struct
from binascii import crc32
from collections.abc import Mapping

CONTENT_TYPE = b"application/vnd.amazon.eventstream"
STRING = 7
"""The type of a header's value: a text with its length in two bytes."""
LARGEST_PART = 1 << 16
"""Bytes of a PayloadPart at most. A choice: AWS states no size, only that a line may be split over parts."""


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message. Header names have at most 255 bytes, values 32767 (of which none here comes near)."""
    encoded = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    lengths = struct.pack("!II", 12 + len(encoded) + len(payload) + 4, len(encoded))
    checked = b"".join((lengths, struct.pack("!I", crc32(lengths)), encoded, payload))
    return checked + struct.pack("!I", crc32(checked))


def _header(name: bytes, value: bytes) -> bytes:
    return b"".join((bytes((len(name),)), name, bytes((STRING,)), struct.pack("!H", len(value)), value))


def payload_parts(content: bytes) -> bytes:
    """PayloadPart events that together hold ``content``; none of empty content."""
    headers = {
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }
    pieces = (content[start : start + LARGEST_PART] for start in range(0, len(content), LARGEST_PART))
    return b"".join(message(headers, piece) for piece in pieces)


def exception(name: str, members: Mapping[str, str]) -> bytes:
    """The event that ends a stream with an error: ModelStreamError or InternalStreamFailure."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, json.dumps(dict(members)).encode())
