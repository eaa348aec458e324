"""A sample's request as arrays, as the model takes them, and as tensors in JSON."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype

from tritonstack.adapters import Adapters
from tritonstack.client.body import encode
from tritonstack.client.preprocessing import to_arrays
from tritonstack.errors import InputError, Problem
from tritonstack.models.manifest import ModelEntry, SampleEntry

Arrays = dict[str, "np.ndarray[Any, Any]"]
READY_REQUEST = "sample-request.kserve"
"""The client file that holds a sample's request as InvokeEndpoint takes it: a JSON header, then the tensors."""
_NOT_IN_JSON = {"FP16", "BF16"}


def request_arrays(
    sample: SampleEntry, *, adapters: Adapters, model: ModelEntry, files: Mapping[str, Path], file: str
) -> Arrays:
    """The sample request's inputs by name.

    Args:
        sample: with a body, arrays, or a file for an adapter.
        adapters: the recipe's.
        model: the addressed model.
        files: client files that an adapter names → where they lie.
        file: the request's, for messages.

    Raises:
        InputError: the request is not what the model takes.
        WorkFailedError: a client file is not what it has to be.
    """
    if sample.body is not None:
        return {tensor["name"]: _array(tensor, file) for tensor in sample.body["inputs"]}
    content = base64.b64decode(sample.content or "")
    if sample.adapter is None:
        return _saved(content, file)
    adapter = adapters.of(sample.adapter)
    if adapter is None:
        found = f"{sample.adapter} file, but no adapter for it"
        raise InputError([Problem(file=file, found=found, allowed=f"adapters.{sample.adapter}")])
    try:
        return to_arrays(adapter, content, files, inputs=model.inputs)
    except InputError as error:  # it knows the content alone
        raise InputError([_named(problem, file) for problem in error.problems]) from error


def ready_request(sample: SampleEntry, arrays: Arrays) -> bytes | None:
    """The sample request as it is sent, for a sender without adapters and NumPy, which asks for a binary answer.

    None where the sample's own body can be sent as it is. (Triton refuses half precision in JSON.)
    """
    if sample.body is not None and not any(tensor["datatype"] in _NOT_IN_JSON for tensor in sample.body["inputs"]):
        return None
    return encode(arrays, payload_format="binary").content


def to_tensors(arrays: Mapping[str, np.ndarray[Any, Any]]) -> list[dict[str, Any]]:
    """Arrays as tensors of the prover's plan: flat lists, BYTES elements in base64."""
    return [_tensor(name, array) for name, array in arrays.items()]


def save_arrays(arrays: Arrays, file: Path) -> bool:
    """Write an .npz file for export scripts; False, and nothing written, for BYTES, which it cannot hold."""
    if any(array.dtype == object for array in arrays.values()):
        return False
    with file.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    return True


def _array(tensor: Mapping[str, Any], file: str) -> np.ndarray[Any, Any]:
    dtype = triton_to_np_dtype(tensor["datatype"])
    if dtype is None:
        found = f"datatype {tensor['datatype']} of {tensor['name']}"
        raise InputError([Problem(file=file, found=found, allowed="KServe's names: FP32, INT64, BYTES, …")])
    flat = list(_flat(tensor["data"]))
    try:
        if tensor["datatype"] == "BYTES":
            array = np.empty(len(flat), object)
            array[:] = [str(item).encode() for item in flat]
        else:
            array = np.array(flat, dtype)
        return array.reshape(tensor["shape"])
    except (ValueError, TypeError, OverflowError) as error:
        found = f"data of {tensor['name']}: {error}"
        raise InputError([Problem(file=file, found=found, allowed=str(tensor["datatype"]))]) from error


def _flat(data: Any) -> list[Any]:
    return [item for part in data for item in _flat(part)] if isinstance(data, list) else [data]


def _saved(content: bytes, file: str) -> Arrays:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as saved:
            return dict(saved)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError([Problem(file=file, found=str(error), allowed="arrays that numpy.savez wrote")]) from error


def _tensor(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    flat = array.reshape(-1).tolist()
    if array.dtype == object:
        raw = [item.encode() if isinstance(item, str) else bytes(item) for item in flat]
        flat = [base64.b64encode(item).decode() for item in raw]
    return {"name": name, "datatype": np_to_triton_dtype(array.dtype), "shape": list(array.shape), "data": flat}


def _named(problem: Problem, file: str) -> Problem:
    return Problem(
        file=problem.file or file,
        field=problem.field,
        found=problem.found,
        allowed=problem.allowed,
        advice=problem.advice,
    )
