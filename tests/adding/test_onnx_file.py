"""ONNX files as users have them: what becomes config.pbtxt, and what Triton has no type for."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.lint.onnx_files import node, write_graph
from tritonstack.adding import trial
from tritonstack.adding.additions import Addition, AddOptions, parse_tensors
from tritonstack.adding.model_file import onnx_addition
from tritonstack.adding.seeded_request import body_text
from tritonstack.aws.sagemaker_rules import MAX_PAYLOAD_BYTES
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.model_config import read_config

FIXTURES = Path(__file__).with_name("fixtures")


def added(path: Path, *, options: AddOptions | None = None) -> Addition:
    with TemporaryDirectory() as work:
        return onnx_addition(path, "net", options or AddOptions(), work=Path(work), report=lambda _: None)


def tensor(name: str, dtype: str, *shape: int | str | None) -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": shape}


X, Y = tensor("x", "FP32", "N", 4), tensor("y", "FP32", "N", 3)


@pytest.mark.parametrize(
    ("inputs", "outputs", "batch", "lines"),
    [
        ([X], [Y], 8, ["dims: [ 4 ]", "dims: [ 3 ]"]),
        ([X], [tensor("y", "INT64", "N")], 8, ["TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] }"]),
        ([tensor("x", "FP32", None, 4)], [tensor("y", "FP32", None, 3)], 8, ["dims: [ 4 ]"]),
        ([tensor("x", "FP32", 1, 3, "H", "W")], [Y], 0, ["dims: [ 1, 3, -1, -1 ]", "dims: [ -1, 3 ]"]),
        ([X], [tensor("y", "FP32", 3)], 0, ["dims: [ -1, 4 ]", "dims: [ 3 ]"]),
        ([X], [tensor("y", "FP32")], 0, ["TYPE_FP32 dims: [ 1 ]"]),
        ([X, tensor("z", "BOOL", "M", 4)], [Y], 0, ["dims: [ -1, 4 ]"]),
        ([X], [tensor("boxes", "FP32", "found", 6)], 0, ["dims: [ -1, 6 ]"]),
        ([tensor("te xt\"", "BYTES", "N", "length")], [Y], 8, ['name: "te xt\\"" data_type: TYPE_STRING dims: [ -1 ]']),
    ],
    ids=["batch", "a number a row", "no names", "fixed batch", "fixed output", "scalar", "two names", "rows of results",
         "texts"],
)  # fmt: skip
def test_types_shapes_and_batch_follow_from_the_graph(
    *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: Any, outputs: Any, batch: int, lines: list[str]
) -> None:
    """Without ONNX Runtime to try it, names alone say what a batch is."""
    monkeypatch.setattr("tritonstack.paths.REPOSITORY", tmp_path)
    write_graph(tmp_path / "net.onnx", {"inputs": inputs, "outputs": outputs})
    addition = added(tmp_path / "net.onnx")
    config = read_config(addition.addressed.config)
    assert config.complaints == ()
    assert (config.max_batch_size, config.backend, config.name) == (batch, "onnxruntime", "net")
    assert [tensor.name for tensor in (*config.inputs, *config.outputs)] == [each["name"] for each in inputs + outputs]
    assert [line for line in lines if line not in addition.addressed.config] == []
    assert ("max_batch_size is 8" in addition.unknown[0]) == (batch == 8)
    assert all(1 <= length <= 64 for each in addition.sample_request() for length in each["shape"])


def test_everything_that_triton_cannot_serve_is_said_at_once(tmp_path: Path) -> None:
    outputs = [{"name": "p", "dtype": "FP32", "kind": "sequence"}, tensor("b", "BF16", "N")]
    weights = {"a": "../outside.bin", "c": "gone.bin"}
    write_graph(tmp_path / "net.onnx", {"inputs": [X], "outputs": outputs, "weights": weights})
    with pytest.raises(InputError) as caught:
        added(tmp_path / "net.onnx")
    assert [problem.found.partition(",")[0] for problem in caught.value.problems] == [
        "output p is a sequence",
        "output b is BF16",
        "weights in '../outside.bin'",
        "weights in 'gone.bin'",
    ]
    assert all(problem.advice for problem in caught.value.problems)


def test_weights_beside_the_graph_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.paths.REPOSITORY", tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(b"1234")
    write_graph(tmp_path / "net.onnx", {"inputs": [X], "outputs": [Y], "weights": {"w": "data/w.bin"}})
    assert dict(added(tmp_path / "net.onnx").addressed.files) == {
        "1/model.onnx": tmp_path / "net.onnx",
        "1/data/w.bin": tmp_path / "data/w.bin",
    }


def test_a_zipmap_of_skl2onnx_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"(?s)output_probability is a sequence.*'zipmap': False"):
        added(FIXTURES / "zipmap.onnx")


def test_what_is_no_onnx_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    file.write_bytes(b"no model at all")
    with pytest.raises(InputError, match=r"(?s)no ONNX model: .*an ONNX file, .*a TorchScript file"):
        added(file)


def test_a_shape_that_the_graph_does_not_state_is_tried_and_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton's backend takes a tensor without a shape for a scalar."""
    file = tmp_path / "net.onnx"
    graph = {"inputs": [X], "outputs": [{"name": "y", "dtype": "FP32", "shape": None}]}
    write_graph(file, {**graph, "nodes": [node("Softmax", ["x"], ["y"], axis=1)]})
    addition = added(file)
    assert "of `y`: recorded from a trial run" in addition.unknown[-1]
    assert addition.addressed.files["1/model.onnx"] != file
    monkeypatch.setattr("tritonstack.paths.REPOSITORY", tmp_path)
    with pytest.raises(InputError, match=r"(?s)y, whose shape the graph does not state.*setup.py exporters"):
        added(file)


def test_the_graph_alone_states_its_tensors(tmp_path: Path) -> None:
    write_graph(tmp_path / "net.onnx", {"inputs": [X], "outputs": [Y]})
    with pytest.raises(InputError, match=r"(?s)--input\n  found:   x\n.*--output\n  found:   z\n"):
        options = AddOptions(
            inputs=parse_tensors("--input", ["x:FP32:4"]), outputs=parse_tensors("--output", ["z:FP32:4"])
        )
        added(tmp_path / "net.onnx", options=options)


def test_options_of_tensors_are_refused_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_tensors("--input", ["x", "x:FLOAT:1", "x:FP32:0", "x:FP32:2.5", ":FP32:1", "x:fp32:N, 3"])
    assert [problem.found for problem in caught.value.problems] == [
        "x",
        "x:FLOAT:1",
        "x:FP32:0",
        "x:FP32:2.5",
        ":FP32:1",
    ]


def test_the_batch_is_tried_row_by_row(tmp_path: Path) -> None:
    """The first axis is free and called alike in both; the second graph mixes the rows."""
    graph = {"inputs": [X], "outputs": [tensor("y", "FP32", "N", 4)]}
    for name, axis, size in (("rows", 1, 8), ("mixed", 0, 0)):
        file = tmp_path / f"{name}.onnx"
        write_graph(file, {**graph, "nodes": [node("Softmax", ["x"], ["y"], axis=axis)]})
        addition = added(file)
        assert read_config(addition.addressed.config).max_batch_size == size
    assert "two rows in one request get other responses" in addition.unknown[0]


def test_a_fixed_number_of_rows_that_follows_the_request_is_repaired() -> None:
    """onnxmltools declares [1] for the labels of any number of rows, and Triton would refuse a batch."""
    addition = added(FIXTURES / "lightgbm.onnx")
    config = read_config(addition.addressed.config)
    assert config.max_batch_size == 8
    assert [(each.name, each.dims, each.reshape) for each in config.outputs] == [
        ("label", (1,), ()),
        ("probabilities", (2,), None),
    ]
    assert "of `label`: recorded from a trial run" in addition.unknown[-1]


def test_values_that_an_encoder_knows_are_those_of_the_sample() -> None:
    addition = added(FIXTURES / "pipeline.onnx")
    age, city = addition.sample_request()
    assert city["data"][0] in ("Oslo", "Rome")
    assert 0 <= age["data"][0] <= 1


IMAGES = tensor("x", "FP32", "N", 3, 8, 8)


@pytest.mark.parametrize(
    ("inputs", "outputs", "nodes"),
    [
        ([IMAGES], [tensor("y", "FP32", "found", 192)], [node("Softmax", ["x"], ["all"], axis=0),
                                                         node("Flatten", ["all"], ["y"], axis=1)]),
        ([IMAGES], [tensor("y", "FP32", 3, "N", 8, 8)], [node("Transpose", ["x"], ["y"], perm=[1, 0, 2, 3])]),
        ([X, tensor("z", "FP32", "M", 4)], [Y], [node("MatMul", ["x", "z"], ["y"])]),
    ],
    ids=["rows that depend on each other", "batch in the middle", "two free first axes"],
)  # fmt: skip
def test_a_free_first_axis_that_is_no_batch_has_length_1_in_the_sample(
    *, tmp_path: Path, inputs: Any, outputs: Any, nodes: Any
) -> None:
    write_graph(tmp_path / "net.onnx", {"inputs": inputs, "outputs": outputs, "nodes": nodes})
    addition = added(tmp_path / "net.onnx")
    assert read_config(addition.addressed.config).max_batch_size == 0
    assert [each["shape"][0] for each in addition.sample_request()] == [1] * len(inputs)


def test_a_sample_is_smaller_than_sagemaker_takes(tmp_path: Path) -> None:
    """Free lengths shrink; where the fixed ones alone are too many, no request can reach the model."""
    video = tensor("x", "INT64", "N", "A", "B", "C", "D", "E")
    write_graph(tmp_path / "net.onnx", {"inputs": [video], "outputs": [video], "nodes": []})
    request = added(tmp_path / "net.onnx").sample_request()
    assert 1e6 < len(body_text("inputs", request)) < MAX_PAYLOAD_BYTES
    write_graph(tmp_path / "net.onnx", {"inputs": [tensor("x", "FP32", "N", 3, 4096, 4096)], "outputs": [Y]})
    with pytest.raises(InputError, match=r"(?s)x\n  found: .*\[1, 3, 4096, 4096\].* 201,327,\d+ bytes.*26,214,400"):
        added(tmp_path / "net.onnx")


def test_free_axes_grow_until_the_model_takes_them(tmp_path: Path) -> None:
    """A convolution over 9 refuses 8."""
    weights = [node("Constant", [], ["size"], value_ints=[2, 1, 9]), node("ConstantOfShape", ["size"], ["w"])]
    wave = tensor("x", "FP32", "N", 1, "T")
    graph = {"inputs": [wave], "outputs": [tensor("y", "FP32", "N", 2, "U")]}
    write_graph(tmp_path / "net.onnx", {**graph, "nodes": [*weights, node("Conv", ["x", "w"], ["y"])]})
    addition = added(tmp_path / "net.onnx")
    assert read_config(addition.addressed.config).max_batch_size == 8
    assert [each["shape"] for each in addition.sample_request()] == [[1, 1, 32]]
    assert "no free axis shorter than 32" in addition.unknown[-1]


def test_random_values_do_not_hide_the_batch(tmp_path: Path) -> None:
    graph = {"inputs": [X], "outputs": [tensor("y", "FP32", "N", 4)]}
    write_graph(tmp_path / "net.onnx", {**graph, "nodes": [node("RandomNormalLike", ["x"], ["y"])]})
    addition = added(tmp_path / "net.onnx")
    assert read_config(addition.addressed.config).max_batch_size == 8
    assert "two runs of one request gave other values of y" in addition.unknown[-1]


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [("MEMORY_BYTES", 1 << 30, r"more than the 1\.0 GiB of memory"), ("SECONDS", 1, "did not end within 1 s")],
)
def test_memory_and_time_of_a_trial_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, said: str
) -> None:
    """The product of a column and a row: 2 GB for 50 MB."""
    monkeypatch.setattr(trial, limit, value)
    inputs = [tensor("x", "FP32", "N", 22_000, 1), tensor("z", "FP32", "N", 1, 22_000)]
    nodes = [node("MatMul", ["x", "z"], ["y"])]
    write_graph(
        tmp_path / "net.onnx", {"inputs": inputs, "outputs": [tensor("y", "FP32", "N", "A", "B")], "nodes": nodes}
    )
    with pytest.raises(WorkFailedError, match=f"(?s)trial of net.onnx.*{said}.*add a Triton model folder"):
        added(tmp_path / "net.onnx")
