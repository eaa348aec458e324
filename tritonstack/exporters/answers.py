"""Write arrays as KServe tensors: the sample's answer, and its request where the script makes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.files import write_text
from tritonstack.exporters.graph import DTYPES

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_DIGITS = {np.dtype(np.float16): 5, np.dtype(np.float32): 9, np.dtype(np.float64): 17}
"""Significant decimal digits that give each value back exactly."""


def write(path: Path, outputs: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write ``sample/answer.json``. Raises :class:`WorkFailedError` naming a tensor that has no numbers in it."""
    _write(path, "outputs", outputs)


def write_request(path: Path, inputs: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write ``sample/request.json``. Raises :class:`WorkFailedError` as :func:`write`."""
    _write(path, "inputs", inputs)


def _write(path: Path, key: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    lines = ",\n".join(f"    {json.dumps(_tensor(name, array))}" for name, array in arrays.items())
    write_text(path, f'{{\n  "{key}": [\n{lines}\n  ]\n}}\n')


def _tensor(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype not in _NAMES:
        raise WorkFailedError(f"tensor {name}: {array.dtype} cannot be written as an answer")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise WorkFailedError(f"tensor {name}: the source framework answers the sample with NaN or infinity")
    digits = _DIGITS.get(array.dtype)
    values = array.ravel().tolist()
    data = [float(f"{value:.{digits}g}") for value in values] if digits else values
    return {"name": name, "datatype": _NAMES[array.dtype], "shape": list(array.shape), "data": data}
