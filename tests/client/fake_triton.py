"""Triton's side of the two payload formats, written from the protocol and without tritonclient."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

PREFIX = "application/vnd.sagemaker-triton.binary+json;json-header-size="
DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32,
    "FP64": np.float64,
}
Array = npt.NDArray[Any]


class RefusedError(Exception):
    """A request that the front end responds to with 400."""


def read_request(content: bytes, content_type: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The request's JSON and its input arrays, refused where Triton refuses them."""
    header, tail = content, b""
    if content_type.startswith(PREFIX):
        size = int(content_type[len(PREFIX) :])
        if not 0 <= size <= len(content):
            raise RefusedError("json-header-size does not fit the body")
        header, tail = content[:size], content[size:]
    elif content_type not in {"application/json", "application/octet-stream"}:  # Triton takes any other as JSON, too
        raise RefusedError(content_type)
    request = json.loads(header)
    arrays = {}
    for tensor in request["inputs"]:
        count = math.prod(tensor["shape"])
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            if tensor["datatype"] in {"FP16", "BF16"}:
                raise RefusedError("half precision in JSON")
            arrays[tensor["name"]] = _from_json(tensor)
        else:
            if "data" in tensor or len(tail) < size:
                raise RefusedError("binary data does not fit")
            raw, tail = tail[:size], tail[size:]
            arrays[tensor["name"]] = _from_raw(raw, tensor["datatype"], count).reshape(tensor["shape"])
    if tail:
        raise RefusedError("bytes left over")
    return request, arrays


def write_response(request: Mapping[str, Any], arrays: Mapping[str, Array], *, model: str) -> tuple[bytes, str]:
    """The response to ``request`` in the requested format: body and content type."""
    everything = bool(request.get("parameters", {}).get("binary_data_output"))
    wanted = {o["name"]: o.get("parameters", {}).get("binary_data", False) for o in request.get("outputs", [])}
    names = list(wanted) or list(arrays)
    outputs, tail = [], b""
    for name in names:
        array = arrays[name]
        datatype = datatype_of(array)
        output: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(array.shape)}
        if wanted.get(name, everything):
            raw = to_raw(array)
            output["parameters"] = {"binary_data_size": len(raw)}
            tail += raw
        elif datatype in {"FP16", "BF16"}:
            raise RefusedError("half precision in JSON")
        else:
            output["data"] = [v.decode() if isinstance(v, bytes) else v for v in array.ravel().tolist()]
        outputs.append(output)
    header = json.dumps({"model_name": model, "model_version": "1", "outputs": outputs}).encode()
    binary = any("parameters" in output for output in outputs)
    return header + tail, f"{PREFIX}{len(header)}" if binary else "application/json"


def datatype_of(array: Array) -> str:
    if array.dtype == object:
        return "BYTES"
    return next(name for name, dtype in DTYPES.items() if array.dtype == dtype)


def to_raw(array: Array) -> bytes:
    """A tensor's bytes as they follow the header."""
    if array.dtype != object:
        return array.tobytes()
    return b"".join(struct.pack("<I", len(item)) + item for item in array.ravel())


def _from_raw(raw: bytes, datatype: str, count: int) -> Array:
    if datatype != "BYTES":
        return np.frombuffer(raw, dtype=DTYPES[datatype], count=count)
    items, offset = [], 0
    while offset < len(raw):
        (length,) = struct.unpack_from("<I", raw, offset)
        items.append(raw[offset + 4 : offset + 4 + length])
        offset += 4 + length
    return _objects(items)


def _from_json(tensor: Mapping[str, Any]) -> Array:
    if tensor["datatype"] == "BYTES":
        return _objects([text.encode() for text in tensor["data"]]).reshape(tensor["shape"])
    return np.array(tensor["data"], dtype=DTYPES[tensor["datatype"]]).reshape(tensor["shape"])


def _objects(items: list[bytes]) -> Array:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array
