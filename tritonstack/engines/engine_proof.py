"""The engine's proof: the plan's answer against ONNX Runtime's to the same inputs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tritonstack.errors import WorkFailedError

PRINTED = 5e-6
"""trtexec writes six significant digits of a number (``--exportOutput``): so far it may be off by that alone."""

Arrays = Mapping[str, NDArray[Any]]


def compare_engine(outputs: Path, reference: Arrays, *, tolerance: float, what: str) -> float:
    """The largest difference of a floating-point value between a plan's answer and the reference.

    Whole numbers and truth values must be equal. ``tolerance`` is beside what printing costs (:data:`PRINTED`).

    Raises :class:`WorkFailedError`, naming the tensor, where the answer cannot be read, lacks an output, has another
    shape, a value that is no number, or one that differs by more.
    """
    given = read_outputs(outputs, what)
    largest = 0.0
    for name, expected in reference.items():
        if name not in given:
            raise WorkFailedError(f"{what}: the plan gives no {name}; it gives {', '.join(given) or 'nothing'}")
        difference = _difference(given[name], expected, tolerance, f"{what}: tensor {name}")
        largest = max(largest, difference)
    return largest


def read_outputs(path: Path, what: str) -> dict[str, NDArray[Any]]:
    """``outputs.json`` of the engine step: name → values as numbers of 64 bits, in the shape that they have.

    Raises :class:`WorkFailedError` where it is not as the step writes it.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        found = {str(one["name"]): np.array(one["values"], np.float64).reshape(_shape(one["shape"])) for one in listed}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise WorkFailedError(f"{what}: the plan's answer cannot be read: {error}") from error
    return found


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"shape {shape!r}")
    return tuple(shape)


def _difference(given: NDArray[Any], expected: NDArray[Any], tolerance: float, what: str) -> float:
    if given.shape != expected.shape:
        raise WorkFailedError(f"{what}: shape {list(given.shape)}, ONNX Runtime gives {list(expected.shape)}")
    if given.size == 0:
        return 0.0
    wanted = expected.astype(np.float64)
    _refuse(np.isnan(given), given, wanted, f"{what}: not a number")
    is_float = expected.dtype.kind == "f"
    with np.errstate(invalid="ignore"):
        difference = np.where(given == wanted, 0.0, np.abs(given - wanted))  # equal infinities differ by nothing
        allowed = tolerance + PRINTED * np.abs(np.where(np.isfinite(wanted), wanted, 0.0)) if is_float else 0.0
    beyond = ~(difference <= allowed)
    limit = f"{tolerance:g} allowed" if is_float else "and must be equal"
    largest = float(difference.max())
    _refuse(beyond, given, wanted, f"{what}: differs by up to {largest:.3g}, {limit};", difference)
    return largest if is_float and math.isfinite(largest) else 0.0


def _refuse(
    wrong: NDArray[np.bool_],
    given: NDArray[Any],
    wanted: NDArray[Any],
    said: str,
    difference: NDArray[Any] | None = None,
) -> None:
    """Raise with the place of the worst, or the first, wrong value, if there is any."""
    if not wrong.any():
        return
    ranked = wrong if difference is None else np.where(wrong, np.nan_to_num(difference, nan=np.inf), -1.0)
    index = np.unravel_index(int(ranked.argmax()), wrong.shape)
    place = [int(axis) for axis in index]
    count = int(wrong.sum())
    raise WorkFailedError(
        f"{said} at {place}, where the plan gives {given[index]:.7g} and ONNX Runtime {wanted[index]:.7g} "
        f"({count:,} of {wrong.size:,} values)"
    )
