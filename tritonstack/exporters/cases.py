"""Inputs that an exported model is tried with, and the comparison of its answers with the source framework's.

NumPy only: source framework and exported model may each need an environment of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arrays, Options
from tritonstack.exporters.draws import Draw, drawn
from tritonstack.exporters.graph import BATCH, Graph
from tritonstack.exporters.progress import say

Model = Callable[[Arrays], Arrays]
"""Inputs by name → outputs by name."""

AXIS_SIZES = (3, 8)
"""Sizes that a dynamic axis is tried at, unless told otherwise."""


@dataclass(frozen=True)
class Case:
    """Inputs to try, and how to call them in a message."""

    name: str
    inputs: Arrays


@dataclass(frozen=True)
class Answered:
    """A case with the source framework's answer."""

    name: str
    inputs: Arrays
    outputs: Arrays


def batches(options: Options) -> tuple[int, ...]:
    """The batch sizes to prove: 1 and the model's largest, or the recipe's ``proof.largest_batch`` below it: said."""
    largest = options.max_batch_size
    proved = largest if options.largest_batch is None else min(options.largest_batch, largest)
    if proved < largest:
        say(f"proved up to batch {proved} (proof.largest_batch), not up to the model's {largest}")
    return (1, proved) if proved > 1 else (1,)


def cases(
    graph: Graph,
    *,
    batches: Sequence[int],
    sample: Arrays | None,
    draws: Mapping[str, Draw],
    axes: Mapping[str, Sequence[int]],
    seed: int,
) -> Iterator[Case]:
    """Random inputs at each batch size and both sizes of the dynamic axes; the sample alone and leading each batch."""
    generator = np.random.default_rng(seed)
    tries: Sequence[dict[str, int]] = [
        {axis: axes.get(axis, AXIS_SIZES)[position] for axis in graph.axes}
        for position in range(2 if graph.axes else 1)
    ]
    for batch, sizes in itertools.product(batches, tries):
        inputs = {
            tensor.name: drawn(tensor, draws, generator=generator, sizes={BATCH: batch, **sizes})
            for tensor in graph.inputs
        }
        yield Case(_named("random input", batch, sizes), inputs)
    if sample is None:
        return
    missing = [tensor.name for tensor in graph.inputs if tensor.name not in sample]
    if missing:
        raise WorkFailedError(f"the sample has no input {', '.join(missing)}")
    sizes = _sizes_of(graph, sample)
    for batch in batches:
        inputs = {
            tensor.name: drawn(tensor, draws, generator=generator, sizes={BATCH: batch, **sizes})
            for tensor in graph.inputs
        }
        for tensor in graph.inputs:
            inputs[tensor.name][:1] = sample[tensor.name][:1]
        yield Case(_named("sample input", batch, sizes), inputs)


def _sizes_of(graph: Graph, sample: Arrays) -> dict[str, int]:
    return {
        axis: sample[tensor.name].shape[position]
        for tensor in graph.inputs
        for position, axis in enumerate(tensor.shape)
        if isinstance(axis, str) and axis != BATCH
    }


def _named(what: str, batch: int, sizes: Mapping[str, int]) -> str:
    return ", ".join([what, f"batch {batch}", *(f"{axis} {size}" for axis, size in sizes.items())])


def answered(tried: Iterator[Case], reference: Model) -> Iterator[Answered]:
    """Each case with what the source framework answers."""
    for case in tried:
        yield Answered(case.name, case.inputs, reference(case.inputs))


def compare(
    exported: Model,
    cases: Iterator[Answered],
    graph: Graph,
    *,
    tolerance: float,
    failures: tuple[type[Exception], ...],
) -> float:
    """The largest difference over all cases. Raises :class:`WorkFailedError` naming the tensor and the case.

    ``failures``: what a run of the exported model raises.
    """
    largest = 0.0
    for case in cases:
        try:
            given = exported(case.inputs)
        except failures as error:
            reason = str(error).strip().splitlines()[-1]  # TorchScript's has a listing of its code before it
            raise WorkFailedError(f"{case.name}: the exported model fails: {reason}") from error
        differences = {
            tensor.name: _difference(
                given[tensor.name], case.outputs[tensor.name], f"tensor {tensor.name}, {case.name}"
            )
            for tensor in graph.outputs
        }
        for name, difference in differences.items():
            if not difference <= tolerance:
                raise WorkFailedError(
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
            raise WorkFailedError(f"{what}: the {side} answers NaN or infinity")
    if given.shape != expected.shape or given.dtype != expected.dtype:
        raise WorkFailedError(
            f"{what}: the exported model answers {given.dtype} {list(given.shape)}, "
            f"the source framework {expected.dtype} {list(expected.shape)}"
        )
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(given, expected) else math.inf
    return float(np.abs(given - expected).max(initial=0.0))
