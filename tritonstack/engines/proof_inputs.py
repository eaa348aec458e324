"""What an engine is asked before it is packed: the sample request, or random numbers within the recipe's shapes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tritonclient.utils import triton_to_np_dtype

from tritonstack.archives.engine_recipe import Engine, Shape
from tritonstack.archives.lint.onnx_graph import GraphTensor, OnnxGraph
from tritonstack.errors import InputError, Problem

Arrays = dict[str, NDArray[Any]]


def proof_inputs(
    engine: Engine,
    graph: OnnxGraph,
    *,
    sample: Mapping[str, NDArray[Any]] | None,
    seed: int,
    file: str,
) -> Arrays:
    """An array for every input of the graph, in the graph's type.

    Args:
        engine: its shapes say what may be asked.
        graph: the inputs.
        sample: the sample request where it is the model's own; None: random numbers.
        seed: of random numbers; the same inputs for the same seed, in whatever order the graph has them.
        file: the recipe, for messages.

    Raises:
        InputError: an input outside the engine's shapes or of another type than the graph's, or one that the graph
            leaves free and ``engine.shapes`` does not name; with all of them at once.
    """
    problems: list[Problem] = []
    found: Arrays = {}
    for tensor in graph.inputs:
        given = (sample or {}).get(tensor.name)
        shape = _asked_shape(engine, tensor)
        if shape is None and given is None:
            said = f"input {tensor.name} with free axes, and no shapes for it"
            problems.append(Problem(file=file, field="engine.shapes", found=said, allowed="every input's shapes"))
            continue
        array = _random(tensor, shape or (), seed) if given is None else given
        problem = _misfit(engine, tensor, array, file)
        if problem is not None:
            problems.append(problem)
        else:
            found[tensor.name] = array.astype(_dtype(tensor), copy=False)
    if problems:
        raise InputError(problems)
    return found


def _asked_shape(engine: Engine, tensor: GraphTensor) -> Shape | None:
    """The best shape, but of the smallest batch: large batches only make the proof slow."""
    shapes = engine.shapes.get(tensor.name)
    if shapes is not None:
        return (shapes.min[0], *shapes.opt[1:])
    axes = tensor.shape or ()
    return None if None in axes else tuple(axis for axis in axes if axis is not None)


def _misfit(engine: Engine, tensor: GraphTensor, array: NDArray[Any], file: str) -> Problem | None:
    shapes, field = engine.shapes.get(tensor.name), f"engine.shapes.{tensor.name}"
    if not np.can_cast(array.dtype, _dtype(tensor), "same_kind"):
        return Problem(
            file=file, field="sample.request", found=f"{tensor.name} as {array.dtype}", allowed=tensor.datatype
        )
    if shapes is None:
        return None
    fits = array.ndim == len(shapes.min) and all(
        low <= length <= high for low, length, high in zip(shapes.min, array.shape, shapes.max, strict=True)
    )
    if fits:
        return None
    return Problem(
        file=file,
        field=field,
        found=f"the proof asks with {list(array.shape)}",
        allowed=f"from {list(shapes.min)} to {list(shapes.max)}",
        advice="widen the shapes, or take a sample request that lies within them",
    )


def _dtype(tensor: GraphTensor) -> np.dtype[Any]:
    kind = triton_to_np_dtype(tensor.datatype)
    return np.dtype(object if kind is None else kind)


def _random(tensor: GraphTensor, shape: Shape, seed: int) -> NDArray[Any]:
    """Numbers that any model takes: whole ones are 0 or 1, so that they are inside every vocabulary and mask."""
    generator = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    kind = _dtype(tensor)
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, 2, shape).astype(kind)
