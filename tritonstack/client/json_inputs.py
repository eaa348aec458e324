"""JSON to a model's inputs: KServe-v2 requests, ``{name: nested list}``, or one nested list for the only input."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from tritonstack.client.body import Array
from tritonstack.client.tables import TensorSpec, TensorTable, shape_text
from tritonstack.errors import InputError, Problem

_KINDS = {"f": "numbers with fractions", "b": "truth values", "U": "texts"}
_FORMS = '{"inputs": [{"name", "shape", "datatype", "data"}, …]}, {name: nested list}, or a nested list'


def inputs_from_json(content: bytes, *, file: str, named: str | None, table: TensorTable | None) -> dict[str, Array]:
    """The arrays in a JSON text.

    Numbers take the datatype of the table; without one, integers are INT64, other numbers FP32, texts BYTES. In the
    short forms a batch dimension of one is put in front where the shape fits the table only with it.

    Args:
        content: the JSON text.
        file: the file's name, for messages.
        named: the input that the whole file is for, where the user said so.
        table: the model's tensor table, where it can be read.

    Raises:
        InputError: every tensor that cannot be read.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError([Problem(file=file, found=f"no JSON: {error}", allowed=_FORMS)]) from error
    if named is not None or not isinstance(value, dict):
        value = {single_input(file=file, named=named, table=table): value}
    elif "inputs" in value and isinstance(value["inputs"], list) and _are_tensors(value["inputs"]):
        _refuse_more_than_inputs(value, file)
        return _gather([(str(tensor.get("name", index)), tensor) for index, tensor in enumerate(value["inputs"])], file)
    problems: list[Problem] = []
    arrays = {}
    for name, nested in value.items():
        try:
            arrays[name] = _short(nested, table.input(name) if table else None)
        except (ValueError, OverflowError, TypeError) as error:
            found = str(error).splitlines()[0]
            problems.append(Problem(file=file, field=name, found=found, allowed=_allowed(table, name)))
    if problems:
        raise InputError(problems)
    return arrays


def single_input(*, file: str, named: str | None, table: TensorTable | None) -> str:
    """The name of the input that a file without names is for.

    Raises:
        InputError: nobody said it, and the model does not have exactly one input.
    """
    if named is not None:
        return named
    if table is not None and len(table.inputs) == 1:
        return table.inputs[0].name
    if table is None:
        found = "an array without a name, and the model's manifest cannot be read"
        allowed = "name=file"
    else:
        found = f"an array without a name, and the model has {len(table.inputs)} inputs"
        allowed = ", ".join(f"{spec.name}=file" for spec in table.inputs)
    raise InputError([Problem(file=file, found=found, allowed=allowed)])


def _are_tensors(inputs: list[Any]) -> bool:
    """Whether these are KServe tensors, and not the rows of an input that happens to be called ``inputs``."""
    return bool(inputs) and all(isinstance(tensor, dict) for tensor in inputs)


def _refuse_more_than_inputs(request: dict[str, Any], file: str) -> None:
    """What else a KServe request may say would be lost; an ``id`` changes nothing."""
    advice = "name outputs with --output"
    problems = [
        Problem(file=file, field=key, found="a part of the request that is not sent", allowed="inputs", advice=advice)
        for key in request.keys() - {"inputs", "id"}
    ]
    if problems:
        raise InputError(problems)


def _gather(tensors: list[tuple[str, dict[str, Any]]], file: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    problems = []
    for name, times in Counter(name for name, _ in tensors).items():
        if times > 1:
            problems.append(Problem(file=file, field=f"inputs.{name}", found=f"given {times} times", allowed="once"))
    for name, tensor in tensors:
        try:
            arrays[name] = _kserve(tensor)
        except (ValueError, OverflowError, TypeError, KeyError) as error:
            found = f"no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
            allowed = "name, shape, datatype and as many data as the shape says"
            problems.append(Problem(file=file, field=f"inputs.{name}", found=found, allowed=allowed))
    if problems:
        raise InputError(problems)
    return arrays


def _kserve(tensor: dict[str, Any]) -> Array:
    missing = [key for key in ("name", "shape", "datatype", "data") if key not in tensor]
    if missing:
        raise KeyError(", ".join(missing))
    shape = tensor["shape"]
    if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"shape {shape!r}")
    array = _typed(tensor["data"], str(tensor["datatype"]))
    if array.size != math.prod(shape):
        raise ValueError(f"{array.size} data for shape {shape_text(shape)}")
    return array.reshape(shape)


def _short(nested: Any, spec: TensorSpec | None) -> Array:
    array = _typed(nested, spec.datatype if spec else _guess(nested))
    if spec is not None and array.ndim == len(spec.shape) - 1 and spec.shape[0] == -1:
        array = array[None]
    return array


def _guess(nested: Any) -> str:
    """The datatype of numbers and texts whose model is not known."""
    array = np.asarray(nested)
    kinds = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP32", "U": "BYTES"}
    if array.dtype.kind not in kinds:
        raise ValueError("neither numbers, truth values nor texts of one shape")
    return kinds[array.dtype.kind]


def _typed(nested: Any, datatype: str) -> Array:
    """A nested list as an array of a datatype; what would lose its value on the way is refused with a ValueError."""
    if datatype == "BYTES":
        return _texts(nested)
    dtype = triton_to_np_dtype(datatype)
    if dtype is None:
        raise ValueError(f"datatype {datatype!r}")
    wanted = np.dtype(dtype)
    if wanted.kind in "iu":
        return _integers(nested, wanted, datatype)
    array = np.asarray(nested)
    if array.size == 0:
        return array.astype(wanted)
    if array.dtype.kind not in ("b" if wanted.kind == "b" else "iuf"):
        raise ValueError(f"{_KINDS.get(array.dtype.kind, 'values')} for datatype {datatype}")
    with np.errstate(over="ignore"):
        cast = array.astype(wanted)
    if wanted.kind != "b" and bool((np.isinf(cast.astype(float)) & np.isfinite(array.astype(float))).any()):
        raise ValueError(f"numbers too large for datatype {datatype}")
    return cast


def _integers(nested: Any, wanted: np.dtype[Any], datatype: str) -> Array:
    """Python's own integers until the range is checked: NumPy would make floats of some lists of large ones."""
    array = np.asarray(nested, dtype=object)
    wrong = next((item for item in array.ravel() if type(item) is not int), None)
    if wrong is not None:
        raise ValueError(f"{_KINDS.get(np.asarray(wrong).dtype.kind, 'values')} for datatype {datatype}")
    limits = np.iinfo(wanted)
    least, most = min(array.ravel(), default=0), max(array.ravel(), default=0)
    if least < limits.min or most > limits.max:
        raise ValueError(f"numbers from {least} to {most} for datatype {datatype}")
    return array.astype(wanted)


def _texts(nested: Any) -> Array:
    array = np.asarray(nested, dtype=object)
    flat = array.ravel()
    if not all(isinstance(item, str) for item in flat):
        raise ValueError("what is no text for datatype BYTES")
    texts = np.empty(array.shape, dtype=object)
    texts.ravel()[:] = [item.encode() for item in flat]
    return texts


def _allowed(table: TensorTable | None, name: str) -> str:
    spec = table.input(name) if table else None
    return str(spec) if spec else "a nested list of numbers, truth values or texts"
