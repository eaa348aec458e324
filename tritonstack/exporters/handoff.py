"""What a source framework leaves for an export that runs in another environment: weights, and cases with its answers.

They lie in the exports' target folder beside what is archived, under names that no recipe lists.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arrays
from tritonstack.exporters.cases import Answered
from tritonstack.exporters.files import whole

WEIGHTS = Path("weights.npz")
CASES = Path("proof.npz")
_NAMES = "names"


def write_weights(target: Path, weights: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Leave weights by name."""
    _write(target / WEIGHTS, weights)


def read_weights(target: Path) -> Arrays:
    """The weights by name. Raises :class:`WorkFailedError` where an export before this did not leave them."""
    return _read(target / WEIGHTS)


def write_cases(target: Path, cases: Iterator[Answered]) -> None:
    """Leave the cases in their order. Random pictures of few colours become small: compressed."""
    names: list[str] = []
    arrays: Arrays = {}
    for number, case in enumerate(cases):
        names.append(case.name)
        arrays |= {f"{number}/inputs/{name}": array for name, array in case.inputs.items()}
        arrays |= {f"{number}/outputs/{name}": array for name, array in case.outputs.items()}
    _write(target / CASES, {_NAMES: np.array(names), **arrays})


def read_cases(target: Path) -> Iterator[Answered]:
    """The cases. Raises :class:`WorkFailedError` as :func:`read_weights` does, or where there are none."""
    arrays = _read(target / CASES)
    names = arrays.get(_NAMES, np.array([]))
    if not len(names):
        raise WorkFailedError(f"{target / CASES} holds no case: nothing would be proved")
    for number, name in enumerate(names.tolist()):
        yield Answered(name, _below(arrays, f"{number}/inputs/"), _below(arrays, f"{number}/outputs/"))


def _below(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _read(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise WorkFailedError(f"{path} is needed, which the export before this leaves: {error}") from error
