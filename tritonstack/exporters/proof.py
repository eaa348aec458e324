"""Prove an exported model: the same inputs give the same outputs as in the source framework, within a tolerance."""

# mypy: disable-error-code="import-not-found"
# PyTorch and ONNX Runtime are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnxruntime
import torch
from onnxruntime.capi import onnxruntime_pybind11_state as native

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arrays
from tritonstack.exporters.cases import Model, answered, batches, cases, compare
from tritonstack.exporters.draws import Draw
from tritonstack.exporters.graph import Graph

__all__ = ["batches", "prove_onnx", "prove_torchscript"]

_FAILURES = (native.Fail, native.InvalidArgument, native.RuntimeException, native.NotImplemented, RuntimeError)


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
        axes: dynamic axis → two sizes to try; ``cases.AXIS_SIZES`` where not given.
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
    return compare(exported, answered(tried, reference), graph, tolerance=tolerance, failures=_FAILURES)


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
    return compare(exported, answered(tried, reference), graph, tolerance=tolerance, failures=_FAILURES)
