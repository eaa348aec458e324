"""Requests held against a tensor table."""

from __future__ import annotations

import numpy as np

from tritonstack.client.manifest import TensorSpec, TensorTable

TABLE = TensorTable(
    inputs=(
        TensorSpec(name="image", datatype="FP32", shape=(-1, 8, 8)),
        TensorSpec(name="label", datatype="BYTES", shape=(-1, 1)),
        TensorSpec(name="seed", datatype="INT64", shape=(-1, 1)),
    ),
    outputs=(TensorSpec(name="scores", datatype="FP32", shape=(-1, 10)),),
    max_batch_size=4,
    optional_inputs=frozenset({"seed"}),
)


def test_what_fits_has_no_problems() -> None:
    inputs = {"image": np.zeros((4, 8, 8), np.float32), "label": np.array([["a"]] * 4)}
    assert TABLE.problems(inputs, ["scores"]) == []


def test_wrong_name_type_shape_and_output_are_said_at_once() -> None:
    inputs = {"image": np.zeros((1, 64)), "imgae": np.zeros(1)}
    said = {(problem.field, problem.found, problem.allowed) for problem in TABLE.problems(inputs, ["score"], file="x")}
    assert said == {
        ("inputs.image", "datatype FP64 (NumPy's float64)", "datatype FP32"),
        ("inputs.image", "shape [1, 64]", "shape [-1, 8, 8]"),
        ("inputs.imgae", "no such input", "image FP32 [-1, 8, 8]; label BYTES [-1, 1]; seed INT64 [-1, 1]"),
        ("inputs.label", "nothing", "label BYTES [-1, 1]"),
        ("outputs.score", "no such output", "scores FP32 [-1, 10]"),
    }


def test_a_missing_batch_dimension_is_named() -> None:
    inputs = {"image": np.zeros((8, 8), np.float32), "label": np.array([["a"]])}
    (problem,) = TABLE.problems(inputs)
    assert "batch dimension" in problem.advice


def test_a_batch_that_is_too_large_is_named() -> None:
    inputs = {"image": np.zeros((5, 8, 8), np.float32), "label": np.array([["a"]] * 4)}
    (problem,) = TABLE.problems(inputs)
    assert (problem.found, problem.allowed) == ("a batch of 5", "at most 4")
