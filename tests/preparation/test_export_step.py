"""The export step's parts: files of a graph, its precision, the proof's inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.cases import cases
from tests.engines.stand_ins import doubling_graph, quantised_graph
from tests.lint.onnx_files import number, part, write_graph
from tritonstack.archives.programs import run_script
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxGraph
from tritonstack.models.runtime_options import Engine
from tritonstack.preparation.export_step import (
    graph_for_engine,
    graph_of,
    outputs_of_graph,
    parts_of_graph,
    proof_inputs,
    quantisation_problems,
    read_onnx,
)


def _with_weights_in(name: str) -> bytes:
    entry = part(13, part(1, b"location") + part(2, name.encode()))
    return number(1, 8) + part(7, part(5, part(8, b"w") + entry))


def test_external_weights_are_parts_of_the_graph(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(b"weights")
    (tmp_path / "model.onnx").write_bytes(_with_weights_in("data/w.bin"))
    assert parts_of_graph(tmp_path / "model.onnx") == {
        "model.onnx": tmp_path / "model.onnx",
        "data/w.bin": tmp_path / "data/w.bin",
    }


@pytest.mark.parametrize("name", ["", "../w.bin", "/w.bin", "a/../../w.bin", "gone.bin"])
def test_weights_elsewhere_or_missing_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "w.bin").write_bytes(b"weights")
    (tmp_path / "version").mkdir()
    (tmp_path / "version/model.onnx").write_bytes(_with_weights_in(name))
    with pytest.raises(WorkFailedError, match="which is no file next to the graph"):
        parts_of_graph(tmp_path / "version/model.onnx")


def test_the_graph_is_model_onnx_or_the_only_one(tmp_path: Path) -> None:
    assert graph_of(tmp_path) is None
    (tmp_path / "net.onnx").write_bytes(b"")
    assert graph_of(tmp_path) == tmp_path / "net.onnx"
    (tmp_path / "other.onnx").write_bytes(b"")
    assert graph_of(tmp_path) is None
    (tmp_path / "model.onnx").write_bytes(b"")
    assert graph_of(tmp_path) == tmp_path / "model.onnx"


def test_what_is_no_graph_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff")
    with pytest.raises(WorkFailedError, match=r"model\.onnx: no ONNX graph"):
        read_onnx(tmp_path / "model.onnx")
    write_graph(tmp_path / "model.onnx", {"inputs": [{"name": "x", "dtype": "FP32", "shape": [1]}], "outputs": []})
    assert [tensor.name for tensor in read_onnx(tmp_path / "model.onnx").inputs] == ["x"]


CHECK_GRAPH = Path(__file__).parents[1] / "engines" / "check_graph.py"


def engine(**fields: Any) -> Engine:
    shapes = {"x": {"min": [1, 3], "opt": [8, 3], "max": [16, 3]}}
    return Engine.model_validate({"shapes": shapes, "precision": "graph", "graph_precision": "fp16", **fields})


def test_weights_become_fp16_and_inputs_and_outputs_keep_their_types(tmp_path: Path) -> None:
    graph, lines = tmp_path / "model.onnx", list[str]()
    arguments = ["-P", str(CHECK_GRAPH), str(graph)]
    run_script(environment="exporters", arguments=arguments, folder=tmp_path, what="graph", report=lambda _line: None)
    half = graph_for_engine(engine(), exported=graph, work=tmp_path, report=lines.append)
    assert lines[0] == "model.onnx in FP16: 2 of 2 FP32 weights are FP16 now"
    read = read_onnx(half)
    assert [each.datatype for each in (*read.inputs, *read.outputs)] == ["FP32", "FP32"]
    given = {"x": np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)}
    full, made = (
        outputs_of_graph(path, read, given, work=tmp_path, what="answer", report=lines.append)["y"]
        for path in (graph, half)
    )
    assert np.allclose(full, made, atol=2e-2)
    assert not np.array_equal(full, made), "the exported graph stays as it is"


def test_a_graph_that_stays_as_it_is_is_an_error(tmp_path: Path) -> None:
    graph = tmp_path / "model.onnx"
    graph.write_bytes(doubling_graph())
    with pytest.raises(WorkFailedError, match="none of its 0 FP32 weights"):
        graph_for_engine(engine(), exported=graph, work=tmp_path, report=lambda _line: None)


def test_without_a_graph_precision_the_exported_graph_is_used(tmp_path: Path) -> None:
    graph = tmp_path / "model.onnx"
    plain = engine(graph_precision=None)
    assert graph_for_engine(plain, exported=graph, work=tmp_path, report=lambda _line: None) == graph


@cases("precision, cache, is_quantised, refused")
def test_int8_has_its_ranges_from_a_cache_or_from_the_graph(
    tmp_path: Path, precision: str, cache: str | None, is_quantised: bool, refused: str
) -> None:
    graph = tmp_path / "model.onnx"
    graph.write_bytes(quantised_graph() if is_quantised else doubling_graph())
    if cache is not None:
        (tmp_path / "c.cache").write_text(cache)
    half, _, precision = precision.rpartition(" ")
    wanted = engine(precision=precision, graph_precision=half or None, calibration_cache="c.cache" if cache else None)
    lines = [f"{one.field}: {one.found}" for one in quantisation_problems(wanted, graph, tmp_path)]
    assert len(lines) == bool(refused)
    assert refused in "".join(lines)


@pytest.mark.parametrize("precision", ["fp16", "fp32", "bf16"])
def test_a_graphs_precision_is_only_for_engines_that_take_the_graphs_types(precision: str) -> None:
    with pytest.raises(ValidationError, match="only with precision: graph"):
        engine(precision=precision)


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
    return proof_inputs(engine.profiles[0], graph, sample=sample, seed=seed, file="recipe.yaml")


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


def test_every_problem_is_reported_at_once() -> None:
    engine = _engine(x=((1, 2), (1, 2), (4, 2)))
    graph = _graph(x=("INT32", (None, 2)), free=("FP32", (None,)), fixed=("FP32", (3,)))
    with pytest.raises(InputError) as refused:
        _inputs(engine, graph, {"x": np.zeros((1, 2), np.float32)})
    assert [problem.field for problem in refused.value.problems] == ["sample.request", "engine.shapes"]


def test_a_fixed_input_needs_no_shapes() -> None:
    assert _inputs(_engine(x=((1,), (1,), (1,))), _graph(fixed=("FP32", (3, 2))))["fixed"].shape == (3, 2)
