"""Arrays to an InvokeEndpoint body and back, in both payload formats of Triton's SageMaker front end.

* ``application/json``: a KServe-v2 inference request.
* ``application/vnd.sagemaker-triton.binary+json;json-header-size=N``: N bytes of that JSON, then the raw tensors.

The front end compares the binary type's prefix byte by byte (no space after the semicolon) and refuses half precision
in JSON both ways (triton-inference-server/server, ``src/sagemaker_server.cc`` and ``src/http_server.cc``).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from tritonclient.http import InferenceServerClient, InferenceServerException
from tritonclient.utils import np_to_triton_dtype

from tritonstack.client.errors import MalformedResponseError
from tritonstack.errors import InputError, Problem, refuse

Array = npt.NDArray[Any]
PayloadFormat = Literal["auto", "json", "binary"]

JSON_TYPE = "application/json"
BINARY_PREFIX = "application/vnd.sagemaker-triton.binary+json;json-header-size="
JSON_LIMIT_BYTES = 4096
"""Inputs of more bytes than this go binary by themselves: as text they would be several times as long."""
_DATATYPES = "BOOL, (U)INT8 to (U)INT64, FP16, BF16, FP32, FP64, or bytes/str (BYTES)"


@dataclass(frozen=True, kw_only=True)
class Body:
    """Body and content type for InvokeEndpoint."""

    content: bytes
    content_type: str


@dataclass(frozen=True, kw_only=True)
class DecodedResponse:
    """A decoded response: model and outputs by name (BYTES tensors are object arrays of bytes)."""

    model_name: str
    model_version: str
    outputs: dict[str, Array]


def encode(
    inputs: Mapping[str, Array], *, outputs: Sequence[str] | None = None, payload_format: PayloadFormat = "auto"
) -> Body:
    """The body of one inference request.

    Args:
        inputs: name → array, of the shape the model takes (with the batch dimension, where it has one).
        outputs: requested outputs; None for all.
        payload_format: ``auto`` sends JSON only where it is small and loses nothing, and requests binary outputs;
            ``json`` and ``binary`` apply to request and response.

    Raises:
        InputError: arrays that have no Triton datatype, or that JSON cannot carry; every one of them.
    """
    arrays = _prepared(inputs)
    is_large = sum(array.nbytes for array in arrays.values()) > JSON_LIMIT_BYTES
    has_bytes = any(array.dtype == object for array in arrays.values())
    binary = payload_format == "binary" or (payload_format == "auto" and (is_large or has_bytes))
    if not binary:
        reasons = {name: reason for name, array in arrays.items() if (reason := _not_for_json(array))}
        binary = bool(reasons)
        if reasons and payload_format == "json":
            allowed, advice = "what JSON can carry", "use format binary"
            found = [(f"inputs.{name}", reason) for name, reason in reasons.items()]
            raise InputError([Problem(field=name, found=one, allowed=allowed, advice=advice) for name, one in found])
    json_answer = payload_format == "json"
    request: dict[str, Any] = {"inputs": [_described(name, array, binary=binary) for name, array in arrays.items()]}
    if outputs:
        request["outputs"] = [{"name": name, "parameters": {"binary_data": not json_answer}} for name in outputs]
    elif not json_answer:
        request["parameters"] = {"binary_data_output": True}
    header = json.dumps(request, separators=(",", ":")).encode()
    if not binary:
        return Body(content=header, content_type=JSON_TYPE)
    # Joined from the arrays' own memory: the tensors are copied once.
    content = b"".join([header, *(_raw(array) for array in arrays.values())])
    return Body(content=content, content_type=f"{BINARY_PREFIX}{len(header)}")


def json_values(inputs: Mapping[str, Array]) -> dict[str, Any]:
    """Each input's elements in row-major order, as a flat list; of a single one the element itself.

    Raises InputError: arrays that JSON cannot carry; every one of them.
    """
    values: dict[str, Any] = {}
    problems = []
    for name, array in _prepared(inputs).items():
        if reason := _not_for_json(array):
            problems.append(Problem(field=f"inputs.{name}", found=reason, allowed="what JSON can carry"))
            continue
        flat = [item.decode() for item in array.ravel()] if array.dtype == object else array.ravel().tolist()
        values[name] = flat[0] if len(flat) == 1 else flat
    refuse(problems)
    return values


_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    MemoryError,
    OverflowError,
    struct.error,
    InferenceServerException,
)
"""What tritonclient raises for a body that is no inference response: a model's code may write any."""


def decode(content: bytes, content_type: str) -> DecodedResponse:
    """Decode a response body. Arrays are writable and own their memory.

    Raises MalformedResponseError where the body is no inference response, or is cut off.
    """
    json_size = header_size(content_type, len(content))
    try:
        result = InferenceServerClient.parse_response_body(bytearray(content), header_length=json_size)
        response = result.get_response()
        described = response["outputs"]
        _check_lengths(described, binary_bytes=len(content) - (len(content) if json_size is None else json_size))
        outputs = {output["name"]: _bytes_only(result.as_numpy(output["name"])) for output in described}
        return DecodedResponse(
            model_name=str(response.get("model_name", "")),
            model_version=str(response.get("model_version", "")),
            outputs=outputs,
        )
    except _MALFORMED as error:
        start = bytes(content[:80])
        raise MalformedResponseError(
            f"no inference response of type {content_type!r} ({len(content)} bytes, {start!r} …): {error}"
        ) from error


def _prepared(inputs: Mapping[str, Array]) -> dict[str, Array]:
    if not inputs:
        raise InputError([Problem(field="inputs", found="no input", allowed="at least one array by its name")])
    arrays: dict[str, Array] = {}
    problems = []
    for name, given in inputs.items():
        array = _triton_array(np.asarray(given))
        if array is None:
            found = f"an array of {np.asarray(given).dtype}"
            problems.append(Problem(field=f"inputs.{name}", found=found, allowed=_DATATYPES))
        else:
            arrays[name] = array
    refuse(problems)
    return arrays


def _triton_array(array: Array) -> Array | None:
    """The array as tritonclient takes it (native byte order, text as bytes), or None where Triton has no such type."""
    if array.dtype.kind in "SU":
        array = array.astype(object)
    if array.dtype.kind == "O":
        flat = [item.encode() if isinstance(item, str) else item for item in array.ravel()]
        if not all(isinstance(item, bytes) for item in flat):
            return None
        texts = np.empty(len(flat), dtype=object)
        texts[:] = flat
        return texts.reshape(array.shape)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if np_to_triton_dtype(array.dtype) is not None else None


def _not_for_json(array: Array) -> str:
    """Why JSON cannot carry an array; empty where it can."""
    datatype = np_to_triton_dtype(array.dtype)
    if datatype in {"FP16", "BF16"}:
        return f"{datatype}, which Triton refuses in JSON"
    if array.dtype.kind == "f" and not bool(np.isfinite(array).all()):
        return "numbers that are not finite, which JSON does not have"
    try:
        for item in array.ravel() if array.dtype == object else ():
            item.decode()
    except UnicodeDecodeError:
        return "bytes that are no UTF-8 text"
    return ""


def _described(name: str, array: Array, *, binary: bool) -> dict[str, Any]:
    """A tensor as the request's JSON has it: with its data, or with the number of bytes that follow."""
    tensor: dict[str, Any] = {
        "name": name,
        "shape": list(array.shape),
        "datatype": np_to_triton_dtype(array.dtype),
    }
    if binary:
        lengths = (4 + len(item) for item in array.ravel()) if array.dtype == object else (array.nbytes,)
        tensor["parameters"] = {"binary_data_size": sum(lengths)}
    elif array.dtype == object:
        tensor["data"] = [item.decode() for item in array.ravel()]
    else:
        tensor["data"] = array.ravel().tolist()
    return tensor


def _raw(array: Array) -> bytes | memoryview:
    """A tensor's bytes as they follow the header, in row-major order; of a contiguous array, its own memory.

    BYTES are each element's length in four little-endian bytes, then the element (KServe's binary tensor extension).
    """
    if array.dtype == object:
        return b"".join(struct.pack("<I", len(item)) + item for item in array.ravel())
    # As plain bytes, because memoryview does not support BF16.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def header_size(content_type: str, body_size: int) -> int | None:
    """N of the binary type, None for JSON. Raises MalformedResponseError where it does not fit the body."""
    if not content_type.startswith(BINARY_PREFIX):
        return None
    text = content_type.removeprefix(BINARY_PREFIX)
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= body_size:
        raise MalformedResponseError(f"{content_type!r} does not fit a body of {body_size} bytes")
    return int(text)


def _check_lengths(described: Sequence[Mapping[str, Any]], *, binary_bytes: int) -> None:
    stated = sum((output.get("parameters") or {}).get("binary_data_size", 0) for output in described)
    if stated != binary_bytes:
        raise ValueError(f"the header states {stated} bytes of tensors, the body holds {binary_bytes}")


def _bytes_only(array: Array) -> Array:
    """BYTES as bytes in both formats: tritonclient gives str for JSON and bytes for binary."""
    if array.dtype != object:
        return array
    items = np.empty(array.size, dtype=object)
    items[:] = [item.encode() if isinstance(item, str) else item for item in array.ravel()]
    return items.reshape(array.shape)
