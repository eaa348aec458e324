"""Prove an exported model: the same inputs give the same outputs as in the source framework, within a tolerance."""

# mypy: disable-error-code="import-not-found"
# PyTorch and ONNX Runtime are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnxruntime.capi import onnxruntime_pybind11_state as native

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arrays
from tritonstack.exporters.draws import Draw, drawn
from tritonstack.exporters.graph import BATCH, Graph
from tritonstack.exporters.progress import say

Model = Callable[[Arrays], Arrays]
"""Inputs by name → outputs by name."""

AXIS_SIZES = (3, 8)
"""Sizes that a dynamic axis is tried at, unless told otherwise."""

_FAILURES = (native.Fail, native.InvalidArgument, native.RuntimeException, native.NotImplemented, RuntimeError)


@dataclass(frozen=True)
class Case:
    """Inputs to try, and how to call them in a message."""

    name: str
    inputs: Arrays


def batches(max_batch_size: int, *, largest: int | None = None) -> tuple[int, ...]:
    """The batch sizes to prove: 1 and the model's largest, or ``largest`` where memory or time forbid that: said."""
    proved = max_batch_size if largest is None else min(largest, max_batch_size)
    if proved < max_batch_size:
        say(f"proved up to batch {proved}, not up to the model's {max_batch_size}")
    return (1, proved) if proved > 1 else (1,)


def prove_onnx(
    path: Path,
    reference: Model,
    graph: Graph,
    *,
    batches: Sequence[int],
    tolerance: float,
    sample: Arrays | None = None,
    draws: Mapping[str, Draw] | None = None,
    axes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> float:
    """Compare an ONNX file in ONNX Runtime on the CPU with the source framework.

    Args:
        path: of the file.
        reference: the source framework's model.
        graph: names, types and axes.
        batches: batch sizes, the smallest first; of graphs without a batch axis any one number.
        tolerance: the largest absolute difference of a floating-point value. Other values must be equal.
        sample: the sample request's inputs, batch size 1: proved alone, and as the first row of the larger batches.
        draws: input → how its random values are drawn; without one, floating-point inputs are normal.
        axes: dynamic axis → two sizes to try; :data:`AXIS_SIZES` where not given.
        seed: of the random values.

    Returns:
        The largest difference seen.

    Raises:
        WorkFailedError: a difference above the tolerance, a wrong shape or type, or NaN: the message names the tensor.
    """
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except (*_FAILURES, native.InvalidGraph, native.InvalidProtobuf, native.NoSuchFile) as error:
        raise WorkFailedError(f"ONNX Runtime cannot load {path.name}: {error}") from error
    names = [tensor.name for tensor in graph.outputs]

    def exported(inputs: Arrays) -> Arrays:
        return dict(zip(names, session.run(names, inputs), strict=True))

    tried = cases(graph, batches=batches, sample=sample, draws=draws or {}, axes=axes or {}, seed=seed)
    return compare(exported, reference, graph, tried, tolerance=tolerance)


def prove_torchscript(
    path: Path,
    reference: Model,
    graph: Graph,
    *,
    batches: Sequence[int],
    tolerance: float,
    sample: Arrays | None = None,
    draws: Mapping[str, Draw] | None = None,
    axes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> float:
    """Compare a TorchScript file, loaded as Triton's pytorch backend does, with the source framework.

    Inputs and outputs are those of the graph by position. Everything else as :func:`prove_onnx`.
    """
    try:
        module = torch.jit.load(str(path), map_location="cpu").eval()
    except (RuntimeError, ValueError) as error:
        raise WorkFailedError(f"PyTorch cannot load {path.name}: {error}") from error

    def exported(inputs: Arrays) -> Arrays:
        with torch.inference_mode():
            result = module(*(torch.from_numpy(inputs[tensor.name]) for tensor in graph.inputs))
        values = result if isinstance(result, (tuple, list)) else (result,)
        return {tensor.name: value.numpy() for tensor, value in zip(graph.outputs, values, strict=True)}

    tried = cases(graph, batches=batches, sample=sample, draws=draws or {}, axes=axes or {}, seed=seed)
    return compare(exported, reference, graph, tried, tolerance=tolerance)


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


def compare(exported: Model, reference: Model, graph: Graph, tried: Iterator[Case], *, tolerance: float) -> float:
    """The largest difference over all cases. Raises :class:`WorkFailedError` naming the tensor and the case."""
    largest = 0.0
    for case in tried:
        expected = reference(case.inputs)
        try:
            given = exported(case.inputs)
        except _FAILURES as error:
            reason = str(error).strip().splitlines()[-1]  # TorchScript's has a listing of its code before it
            raise WorkFailedError(f"{case.name}: the exported model fails: {reason}") from error
        differences = {
            tensor.name: _difference(given[tensor.name], expected[tensor.name], f"tensor {tensor.name}, {case.name}")
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


def _difference(given: np.ndarray, expected: np.ndarray, what: str) -> float:
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
