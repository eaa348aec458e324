"""A KServe request (JSON) as arrays, and nested lists as an array of a Triton datatype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tritonclient.utils import triton_to_np_dtype

from tritonstack.client.body import Array
from tritonstack.client.manifest import shape_text
from tritonstack.errors import InputError, Problem, refuse


class _Tensor(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    shape: list[Annotated[int, Field(ge=0)]]
    datatype: str
    data: Any


class _Request(BaseModel):
    """A KServe request; other parts than its inputs would be lost, but for an ``id``, which changes nothing."""

    model_config = ConfigDict(extra="forbid")

    id: Any = None
    inputs: list[_Tensor] = Field(min_length=1)


_KINDS = {float: "numbers with fractions", bool: "truth values", str: "texts"}
_TAKEN = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "V": (int, float), "O": (str,)}
"""Kind of NumPy's type (V: BF16) → the types of JSON's values that it takes."""


def inputs_from_json(content: bytes, *, file: str) -> dict[str, Array]:
    """The arrays of a KServe request. ``file``: its name in messages. Raises InputError with every problem."""
    allowed = (
        'a KServe request, {"inputs": [{"name", "shape", "datatype", "data"}, …]}; outputs are named with --output'
    )
    try:
        request = _Request.model_validate_json(content)
    except ValidationError as error:
        problems = [
            Problem(file=file, location=each["loc"], found=each["msg"], allowed=allowed) for each in error.errors()
        ]
        raise InputError(problems) from error
    arrays: dict[str, Array] = {}
    problems = []
    for tensor in request.inputs:
        wrong = "given twice" if tensor.name in arrays else ""
        try:
            arrays[tensor.name] = typed(datatype=tensor.datatype, shape=tensor.shape, data=tensor.data)
        except ValueError as error:
            wrong = str(error)
        if wrong:
            problems.append(Problem(file=file, field=f"inputs.{tensor.name}", found=wrong, allowed=allowed))
    refuse(problems)
    return arrays


def typed(*, datatype: str, shape: Sequence[int], data: Any) -> Array:
    """A nested list as an array. Raises ValueError: values that would lose on the way, or another number of them."""
    dtype = triton_to_np_dtype(datatype)
    if dtype is None:
        raise ValueError(f"datatype {datatype!r}")
    wanted = np.dtype(dtype)
    # Python's own numbers until they are checked: NumPy would make floats of some lists of large integers.
    array = np.asarray(data, dtype=object)
    wrong = [each for each in array.ravel() if type(each) not in _TAKEN[wanted.kind]]
    if wrong:
        raise ValueError(f"{_KINDS.get(type(wrong[0]), 'values')} for datatype {datatype}")
    if array.size != math.prod(shape):
        raise ValueError(f"{array.size} data for shape {shape_text(shape)}")
    if datatype == "BYTES":
        return np.array([each.encode() for each in array.ravel()], dtype=object).reshape(shape)
    try:
        with np.errstate(over="ignore"):
            cast = array.astype(wanted)
        lost = bool((np.isinf(cast.astype(float)) & np.isfinite(array.astype(float))).any())
    except OverflowError:
        lost = True
    if lost:
        raise ValueError(f"numbers out of the range of datatype {datatype}")
    return cast.reshape(shape)
