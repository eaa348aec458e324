"""The reader of ONNX files: what it finds, that it skips weights, and that no bytes break it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lint.onnx_files import TYPES, graph_file, number, part
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxError, external_files, read_graph

_AXES = st.lists(st.one_of(st.integers(0, 2**62), st.text(max_size=4), st.none()), max_size=4)
_TENSORS = st.lists(
    st.fixed_dictionaries({"name": st.text(max_size=12), "dtype": st.sampled_from(sorted(TYPES)), "shape": _AXES}),
    max_size=4,
    unique_by=lambda tensor: tensor["name"],
)


def _file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    path.write_bytes(content)
    return path


def _expected(tensors: list[dict[str, Any]]) -> tuple[GraphTensor, ...]:
    return tuple(
        GraphTensor(
            name=each["name"],
            datatype=each["dtype"],
            shape=tuple(axis if isinstance(axis, int) else None for axis in each["shape"]),
        )
        for each in tensors
    )


@given(inputs=_TENSORS, outputs=_TENSORS, opset=st.integers(1, 30))
def test_names_types_and_shapes_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]], opset: int
) -> None:
    found = read_graph(_file(tmp_path_factory, graph_file({"inputs": inputs, "outputs": outputs, "opset": opset})))
    assert (found.inputs, found.outputs, found.opset) == (_expected(inputs), _expected(outputs), opset)


_SMALL = graph_file(
    {
        "inputs": [{"name": "x", "dtype": "FP32", "shape": ["batch", 4]}],
        "outputs": [{"name": "y", "dtype": "INT64", "shape": ["batch"]}],
        "weights": {"w": 100},
    }
)


@given(cut=st.integers(0, len(_SMALL) - 1))
def test_a_file_that_is_cut_off_is_an_error(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    with pytest.raises(OnnxError):
        read_graph(_file(tmp_path_factory, _SMALL[:cut]))


def test_initialisers_are_no_inputs_and_their_values_are_not_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    tensors = [{"name": name, "dtype": "FP32", "shape": [1]} for name in ("x", "w")]
    path = _file(
        tmp_path_factory, graph_file({"inputs": tensors, "outputs": tensors[:1], "weights": {"w": 50_000_000}})
    )
    tracemalloc.start()
    found = read_graph(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [each.name for each in found.inputs] == ["x"]
    assert peak < 1_000_000


def test_non_tensors_and_shapes_that_the_graph_does_not_state_are_left_open(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sequence = part(11, part(1, b"s") + part(2, part(4, b"")))
    shapeless = part(12, part(1, b"y") + part(2, part(1, number(1, 1))))
    found = read_graph(_file(tmp_path_factory, part(7, sequence + shapeless)))
    assert found.inputs == (GraphTensor(name="s", datatype="", shape=None, kind="sequence"),)
    assert found.outputs == (GraphTensor(name="y", datatype="FP32", shape=None),)


def _with_initialisers(*tensors: bytes) -> bytes:
    return number(1, 8) + part(7, b"".join(part(5, tensor) for tensor in tensors))


def _external(key: str, value: str) -> bytes:
    return part(13, part(1, key.encode()) + part(2, value.encode()))


def test_the_files_of_external_weights_are_named_once_each(tmp_path_factory: pytest.TempPathFactory) -> None:
    tensors = (
        part(8, b"inside") + part(9, bytes(100)),
        part(8, b"a") + _external("location", "weights.bin") + _external("offset", "0") + _external("length", "64"),
        part(8, b"b") + _external("offset", "64") + _external("location", "weights.bin"),
        part(8, b"c") + _external("location", "data/../../evil"),
    )
    content = _with_initialisers(*tensors)
    assert external_files(_file(tmp_path_factory, content)) == ("weights.bin", "data/../../evil")
    assert external_files(_file(tmp_path_factory, _with_initialisers(tensors[0]))) == ()
