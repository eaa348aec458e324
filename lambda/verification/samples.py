"""A model's sample request for InvokeEndpoint, and the comparison of its response with the expected one.

Without NumPy: a request that is no JSON is stored with the manifest, and a response is decoded with ``struct``.
Responses are requested in Triton's binary form, which is short, exact, and has half precision (JSON has none: Triton
refuses it).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..shared.custom_resource import NotDoneError

READY_REQUEST = "sample-request.kserve"
"""The client file that ``tritonstack build`` writes where the sample's own body cannot be sent as it is."""
JSON_TYPE = "application/json"
BINARY_PREFIX = "application/vnd.sagemaker-triton.binary+json;json-header-size="
FORMATS = {
    "BOOL": "?", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q", "UINT8": "B", "UINT16": "H", "UINT32": "I",
    "UINT64": "Q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip
"""KServe's datatypes as ``struct`` writes them; BF16 and BYTES have no format there."""
VALUE_LENGTH = 60


class VerificationError(NotDoneError):
    """A defect of what was deployed."""


Request = tuple[bytes, str]
"""Body and content type of InvokeEndpoint."""


@dataclass(frozen=True)
class Output:
    """One output: KServe's datatype, the shape, and its values in row-major order (BYTES as bytes)."""

    datatype: str
    shape: tuple[int, ...]
    values: Sequence[Any]


def request_of(body: Mapping[str, Any]) -> Request:
    """A sample's JSON body, with a binary response requested."""
    request = {**body, "parameters": {**body.get("parameters", {}), "binary_data_output": True}}
    return json.dumps(request).encode(), JSON_TYPE


def ready_request(content: bytes) -> Request:
    """A stored request: a JSON header, then the tensors. Raises ValueError: it is none."""
    _, length = json.JSONDecoder().raw_decode(content.decode("latin-1"))  # one character a byte: the header is ASCII
    return content, f"{BINARY_PREFIX}{length}"


def decode(content: bytes, content_type: str) -> dict[str, Output]:
    """The outputs of a response, by name. Raises VerificationError: it is no inference response."""
    try:
        length = int(content_type.removeprefix(BINARY_PREFIX)) if content_type.startswith(BINARY_PREFIX) else None
        header = json.loads(content[:length])
        raw = memoryview(content)[length or len(content) :]
        outputs = {}
        for given in header["outputs"]:
            size = (given.get("parameters") or {}).get("binary_data_size", 0)
            outputs[given["name"]] = output_of(given, raw[:size])
            raw = raw[size:]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        start = bytes(content[:80])
        raise VerificationError(
            f"the response is no inference response: {error!r} ({content_type!r}, {start!r})"
        ) from error
    return outputs


def output_of(given: Mapping[str, Any], raw: memoryview) -> Output:
    """One output, its values in JSON or in ``raw``. Raises ValueError, KeyError, TypeError, struct.error."""
    datatype, shape = given["datatype"], tuple(given["shape"])
    values = as_binary(datatype, flat(given["data"])) if "data" in given else unpacked(datatype, raw)
    if len(values) != math.prod(shape):
        raise ValueError(f"{given['name']} has {len(values)} values and shape {list(shape)}")
    return Output(datatype=datatype, shape=shape, values=values)


def unpacked(datatype: str, raw: memoryview) -> Sequence[Any]:
    """The values of one binary tensor. Raises struct.error and KeyError."""
    if datatype == "BYTES":  # each with its length before it, in four bytes (KServe's binary tensor extension)
        found, at = [], 0
        while at < len(raw):
            [length] = struct.unpack_from("<I", raw, at)
            found.append(struct.unpack_from(f"{length}s", raw, at + 4)[0])
            at += 4 + length
        return found
    if datatype == "BF16":  # the upper half of an FP32
        halves = struct.unpack(f"<{len(raw) // 2}H", raw)
        return struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(half << 16 for half in halves)))
    letter = FORMATS[datatype]
    return struct.unpack(f"<{len(raw) // struct.calcsize(letter)}{letter}", raw)


def compare(expected: Iterable[Mapping[str, Any]], found: Mapping[str, Output], *, tolerance: float) -> None:
    """Raise VerificationError, naming output, index, expected and found value, unless the response is as expected.

    ``expected`` are outputs in KServe's JSON form; of other outputs only NaN is refused. ``tolerance`` is the largest
    absolute difference of a floating-point value; all others must be equal.
    """
    for name, output in found.items():
        nans = [index for index, value in enumerate(output.values) if is_float(output.datatype) and math.isnan(value)]
        if nans:
            raise VerificationError(f"output {place(name, output.shape, nans[0])}: a number expected, NaN found")
    for output_expected in expected:
        name = output_expected["name"]
        if name not in found:
            raise VerificationError(f"output {name}: expected, not found; found {', '.join(sorted(found)) or 'none'}")
        output = found[name]
        for what, wanted, got in (
            ("datatype", output_expected["datatype"], output.datatype),
            ("shape", list(output_expected["shape"]), list(output.shape)),
        ):
            if wanted != got:
                raise VerificationError(f"output {name}: {what} {wanted} expected, {got} found")
        values = as_binary(output_expected["datatype"], flat(output_expected["data"]))
        pairs = list(zip(values, output.values, strict=True))
        allowed = tolerance if is_float(output.datatype) else 0
        wrong = [index for index, (wanted, got) in enumerate(pairs) if not equal(wanted, got, allowed)]
        if wrong:
            wanted, got = pairs[wrong[0]]
            more = f"; {len(wrong)} of {len(pairs)} values differ" if len(pairs) > 1 else ""
            within = f" (tolerance {tolerance:g})" if is_float(output.datatype) else ""
            at = place(name, output.shape, wrong[0])
            raise VerificationError(f"output {at}: {shown(wanted)} expected, {shown(got)} found{within}{more}")


def equal(wanted: Any, got: Any, tolerance: float) -> bool:
    """Whether a value is as expected; infinities are equal to themselves alone."""
    return bool(wanted == got or (tolerance and abs(wanted - got) <= tolerance))


def is_float(datatype: str) -> bool:
    return datatype.startswith(("FP", "BF"))


def as_binary(datatype: str, values: Sequence[Any]) -> Sequence[Any]:
    """JSON's values as a binary response has them: BYTES, which are text in JSON, as bytes."""
    return [str(value).encode() for value in values] if datatype == "BYTES" else values


def flat(data: Any) -> list[Any]:
    """Nested lists as one, in row-major order."""
    return [value for part in data for value in flat(part)] if isinstance(data, list) else [data]


def place(name: str, shape: Sequence[int], index: int) -> str:
    """``probabilities[0, 3]``: a value's place from its index in row-major order."""
    places = []
    for length in reversed(shape):
        index, at = divmod(index, length)
        places.append(at)
    return f"{name}[{', '.join(map(str, reversed(places)))}]"


def shown(value: Any) -> str:
    """A value in a message; a long text is cut."""
    text = f"{value:.7g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]}…"
