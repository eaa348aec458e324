"""An engine is asked what its shapes allow: the sample, or the same random numbers every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.engines.export_step import proof_inputs
from tritonstack.errors import InputError
from tritonstack.models.lint.onnx_graph import GraphTensor, OnnxGraph
from tritonstack.models.runtime_options import Engine

TYPES = {
    "FP32": np.float32,
    "FP16": np.float16,
    "INT64": np.int64,
    "INT32": np.int32,
    "INT8": np.int8,
    "BOOL": np.bool_,
}


def _graph(**inputs: tuple[str, tuple[int | None, ...]]) -> OnnxGraph:
    tensors = tuple(GraphTensor(name=name, datatype=kind, shape=shape) for name, (kind, shape) in inputs.items())
    return OnnxGraph(inputs=tensors, outputs=(), opset=17)


def _engine(**shapes: tuple[tuple[int, ...], ...]) -> Engine:
    described = {name: dict(zip(("min", "opt", "max"), given, strict=True)) for name, given in shapes.items()}
    return Engine.model_validate({"shapes": described})


def _inputs(
    engine: Engine, graph: OnnxGraph, sample: dict[str, np.ndarray[Any, Any]] | None = None, seed: int = 1
) -> dict[str, np.ndarray[Any, Any]]:
    return proof_inputs(engine, graph, sample=sample, seed=seed, file="recipe.yaml")


AXES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3)


@given(kind=st.sampled_from(sorted(TYPES)), axes=AXES, seed=st.integers(0, 2**32))
def test_random_inputs_lie_within_the_shapes_and_are_the_same_every_time(
    kind: str, axes: list[tuple[int, int, int]], seed: int
) -> None:
    shapes = tuple(zip(*((low, low + a, low + a + b) for low, a, b in axes), strict=True))
    graph, engine = _graph(x=(kind, (None,) * len(axes))), _engine(x=shapes)
    made = _inputs(engine, graph, seed=seed)["x"]
    assert made.dtype == TYPES[kind]
    assert all(low <= length <= high for low, length, high in zip(shapes[0], made.shape, shapes[2], strict=True))
    assert made.shape[0] == shapes[0][0]
    assert made.shape[1:] == shapes[1][1:]
    assert np.array_equal(made, _inputs(engine, graph, seed=seed)["x"])
    if made.dtype.kind != "f":
        assert set(made.ravel().tolist()) <= {0, 1}


def test_an_input_s_numbers_do_not_depend_on_the_others_but_on_the_seed() -> None:
    engine = _engine(x=((1, 8), (1, 8), (1, 8)), k=((1, 8), (1, 8), (1, 8)))
    both = _inputs(engine, _graph(k=("FP32", (None, 8)), x=("FP32", (None, 8))))
    assert np.array_equal(both["x"], _inputs(engine, _graph(x=("FP32", (None, 8))))["x"])
    assert not np.array_equal(both["x"], both["k"])
    assert not np.array_equal(both["x"], _inputs(engine, _graph(x=("FP32", (None, 8))), seed=2)["x"])


def test_the_sample_is_taken_in_the_graph_s_type() -> None:
    engine, graph = _engine(x=((1, 2), (1, 2), (4, 2))), _graph(x=("INT64", (None, 2)))
    made = _inputs(engine, graph, {"x": np.array([[1, -2], [3, 4]], np.int32), "unknown": np.zeros(1)})
    assert list(made) == ["x"]
    assert (made["x"].dtype, made["x"].tolist()) == (np.int64, [[1, -2], [3, 4]])


@pytest.mark.parametrize("shape", [(5, 2), (0, 2), (1, 3), (2,), (1, 2, 1)])
def test_a_sample_outside_the_shapes_is_refused_with_its_field(shape: tuple[int, ...]) -> None:
    engine, graph = _engine(x=((1, 2), (1, 2), (4, 2))), _graph(x=("FP32", (None, 2)))
    with pytest.raises(InputError) as refused:
        _inputs(engine, graph, {"x": np.zeros(shape, np.float32)})
    (problem,) = refused.value.problems
    assert (problem.file, problem.field) == ("recipe.yaml", "engine.shapes.x")
    assert problem.found == f"the proof's input has shape {list(shape)}"


def test_every_problem_is_told_at_once() -> None:
    engine = _engine(x=((1, 2), (1, 2), (4, 2)))
    graph = _graph(x=("INT32", (None, 2)), free=("FP32", (None,)), fixed=("FP32", (3,)))
    with pytest.raises(InputError) as refused:
        _inputs(engine, graph, {"x": np.zeros((1, 2), np.float32)})
    assert [problem.field for problem in refused.value.problems] == ["sample.request", "engine.shapes"]


def test_a_fixed_input_needs_no_shapes() -> None:
    assert _inputs(_engine(x=((1,), (1,), (1,))), _graph(fixed=("FP32", (3, 2))))["fixed"].shape == (3, 2)
