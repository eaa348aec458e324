"""How many bytes an element of each of Triton's data types takes."""

from __future__ import annotations

from collections.abc import Mapping

BYTES_OF: Mapping[str, int] = {
    "BOOL": 1,
    "UINT8": 1,
    "UINT16": 2,
    "UINT32": 4,
    "UINT64": 8,
    "INT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "FP16": 2,
    "BF16": 2,
    "FP32": 4,
    "FP64": 8,
}
"""Type → bytes; BYTES is not among them, for its elements have no fixed size."""
