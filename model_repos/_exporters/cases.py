"""Inputs that an exported model is tested with, the source framework's outputs for them, and the comparison.

NumPy only: source framework and exported model may each need an environment of its own. Then the cases and the weights
are files in the exports' target folder, under names that no recipe lists.
"""

from __future__ import annotations

import itertools
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _exporters.script import BATCH, Arrays, ExportError, Graph, Options, Tensor, atomic, say

Array = np.ndarray[Any, Any]
Model = Callable[[Arrays], Arrays]
"""Inputs by name → outputs by name."""
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Generator and shape → values; they are converted to the input's type."""
AXIS_SIZES = (3, 8)
"""Default sizes that a dynamic axis is tested at."""
WEIGHTS = Path("weights.npz")
CASES = Path("proof.npz")
_NAMES = "names"


@dataclass(frozen=True)
class Case:
    """Inputs, the source framework's outputs, and their name in messages."""

    name: str
    inputs: Arrays
    outputs: Arrays


def batches(options: Options) -> tuple[int, ...]:
    """The batch sizes to prove: 1 and the model's largest, or the recipe's ``proof.largest_batch`` below it."""
    largest = options.max_batch_size
    proved = largest if options.largest_batch is None else min(options.largest_batch, largest)
    if proved < largest:
        say(f"proved up to batch {proved} (proof.largest_batch), not up to the model's {largest}")
    return (1, proved) if proved > 1 else (1,)


def cases(
    graph: Graph,
    reference: Model,
    *,
    batches: Sequence[int],
    sample: Arrays | None = None,
    draws: Mapping[str, Draw] | None = None,
    axes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> Iterator[Case]:
    """Random inputs at each batch size and both sizes of the dynamic axes; the sample alone and leading each batch.

    Args:
        graph: names, types and axes.
        reference: the source framework's model.
        batches: batch sizes, the smallest first; of graphs without a batch axis any one number.
        sample: the sample request's inputs, batch size 1.
        draws: input → how its random values are drawn; floating-point inputs are normal by default.
        axes: dynamic axis → two sizes to test. Default: :data:`AXIS_SIZES`.
        seed: of the random values.

    Raises:
        ExportError: the sample lacks an input, or an input of integers has no draw.
    """
    generator = np.random.default_rng(seed)
    tries: Sequence[dict[str, int]] = [
        {axis: (axes or {}).get(axis, AXIS_SIZES)[position] for axis in graph.axes}
        for position in range(2 if graph.axes else 1)
    ]

    def random(batch: int, sizes: Mapping[str, int]) -> Arrays:
        all_sizes = {BATCH: batch, **sizes}
        return {one.name: drawn(one, draws or {}, generator=generator, sizes=all_sizes) for one in graph.inputs}

    def case(what: str, batch: int, sizes: Mapping[str, int], inputs: Arrays) -> Case:
        name = ", ".join([what, f"batch {batch}", *(f"{axis} {size}" for axis, size in sizes.items())])
        return Case(name, inputs, reference(inputs))

    for batch, sizes in itertools.product(batches, tries):
        yield case("random input", batch, sizes, random(batch, sizes))
    if sample is None:
        return
    missing = [tensor.name for tensor in graph.inputs if tensor.name not in sample]
    if missing:
        raise ExportError(f"the sample has no input {', '.join(missing)}")
    sizes = _sizes_of(graph, sample)
    for batch in batches:
        inputs = random(batch, sizes)
        for tensor in graph.inputs:
            inputs[tensor.name][:1] = sample[tensor.name][:1]
        yield case("sample input", batch, sizes, inputs)


def _sizes_of(graph: Graph, sample: Arrays) -> dict[str, int]:
    return {
        axis: sample[tensor.name].shape[position]
        for tensor in graph.inputs
        for position, axis in enumerate(tensor.shape)
        if isinstance(axis, str) and axis != BATCH
    }


def compare(
    exported: Model,
    cases: Iterator[Case],
    graph: Graph,
    *,
    tolerance: float,
    failures: tuple[type[Exception], ...],
) -> float:
    """The largest difference over all cases. Raises :class:`ExportError` naming the tensor and the case.

    ``failures``: exceptions of the exported model's runtime.
    """
    largest = 0.0
    for case in cases:
        try:
            given = exported(case.inputs)
        except failures as error:
            reason = str(error).strip().splitlines()[-1]  # TorchScript's begins with a listing of its code
            raise ExportError(f"{case.name}: the exported model fails: {reason}") from error
        differences = {
            tensor.name: _difference(
                given[tensor.name], case.outputs[tensor.name], f"tensor {tensor.name}, {case.name}"
            )
            for tensor in graph.outputs
        }
        for name, difference in differences.items():
            if not difference <= tolerance:
                raise ExportError(
                    f"tensor {name}, {case.name}: the exported model differs by {difference:.3g} from the source "
                    f"framework, allowed {tolerance:.3g}"
                )
        largest = max(largest, *differences.values())
        say(f"proved on {case.name}: largest difference {max(differences.values()):.2e}")
    return largest


def _difference(given: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], what: str) -> float:
    """The largest absolute difference; infinity where values that are no floating-point numbers differ."""
    for side, array in (("source framework", expected), ("exported model", given)):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ExportError(f"{what}: the {side} returns NaN or infinity")
    if given.shape != expected.shape or given.dtype != expected.dtype:
        raise ExportError(
            f"{what}: the exported model returns {given.dtype} {list(given.shape)}, "
            f"the source framework {expected.dtype} {list(expected.shape)}"
        )
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(given, expected) else math.inf
    return float(np.abs(given - expected).max(initial=0.0))


# Random inputs.


def normal(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Standard normal, like a normalised image."""
    return generator.standard_normal(shape)


def token_ids(vocabulary: int, *, first: int = 0) -> Draw:
    """Tokens of a vocabulary of that size, from ``first`` on: below it are special ones."""
    return lambda generator, shape: generator.integers(first, vocabulary, shape)


def masks(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Rows that begin with 1 and end with 0, as a tokenizer pads. Shape [batch, length]."""
    lengths = generator.integers(1, shape[1] + 1, (shape[0], 1))
    return np.arange(shape[1])[None, :] < lengths


def drawn(
    tensor: Tensor, draws: Mapping[str, Draw], *, generator: np.random.Generator, sizes: Mapping[str, int]
) -> Array:
    """Random values for an input. Raises :class:`ExportError` for integers without a draw."""
    draw = draws.get(tensor.name)
    if draw is None and tensor.numpy.kind != "f":
        raise ExportError(f"input {tensor.name}: {tensor.dtype} needs a range to draw from, and none is given")
    return (draw or normal)(generator, tensor.sized(sizes)).astype(tensor.numpy)


# Weights and cases for an export in another environment.


def write_weights(target: Path, weights: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write weights by name."""
    _write(target / WEIGHTS, weights)


def read_weights(target: Path) -> Arrays:
    """Weights by name. Raises :class:`ExportError` where an export before this did not write them."""
    return _read(target / WEIGHTS)


def write_cases(target: Path, cases: Iterator[Case]) -> None:
    """Write the cases in their order, compressed."""
    names: list[str] = []
    arrays: Arrays = {}
    for number, case in enumerate(cases):
        names.append(case.name)
        arrays |= {f"{number}/inputs/{name}": array for name, array in case.inputs.items()}
        arrays |= {f"{number}/outputs/{name}": array for name, array in case.outputs.items()}
    _write(target / CASES, {_NAMES: np.array(names), **arrays})


def read_cases(target: Path) -> Iterator[Case]:
    """The cases. Raises :class:`ExportError` as :func:`read_weights`, or where there are none."""
    arrays = _read(target / CASES)
    names = arrays.get(_NAMES, np.array([]))
    if not len(names):
        raise ExportError(f"{target / CASES} holds no case: nothing would be proved")
    for number, name in enumerate(names.tolist()):
        yield Case(name, _below(arrays, f"{number}/inputs/"), _below(arrays, f"{number}/outputs/"))


def _below(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _read(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ExportError(f"{path} is needed, which the export before this writes: {error}") from error
