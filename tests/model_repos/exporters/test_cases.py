"""Cases of a proof: random inputs, the comparison, and files for an export in another environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from _exporters import cases as cases_module
from _exporters.cases import Case, cases, compare
from _exporters.script import Arrays, ExportError, Graph, Tensor

GRAPH = Graph(0, (Tensor("x", "FP32", ("batch", 3)),), (Tensor("Model/y", "FP32", ("batch", 3)),))
SAMPLE = {"x": np.array([[1, 2, 3]], np.float32)}


def doubled(inputs: Arrays) -> Arrays:
    return {"Model/y": inputs["x"] * 2}


def tried() -> Iterator[Case]:
    return cases(GRAPH, doubled, batches=(1, 4), sample=SAMPLE)


def test_the_cases_are_both_kinds_of_input_at_batch_1_and_at_the_maximum(tmp_path: Path) -> None:
    cases_module.write_cases(tmp_path, tried())
    found = list(cases_module.read_cases(tmp_path))
    for left, case in zip(tried(), found, strict=True):
        np.testing.assert_array_equal(case.inputs["x"], left.inputs["x"])
        np.testing.assert_array_equal(case.outputs["Model/y"], left.outputs["Model/y"])
    assert [(case.name, len(case.inputs["x"])) for case in found] == [
        ("random input, batch 1", 1),
        ("random input, batch 4", 4),
        ("sample input, batch 1", 1),
        ("sample input, batch 4", 4),
    ]
    np.testing.assert_array_equal(found[2].inputs["x"], SAMPLE["x"])
    np.testing.assert_array_equal(found[3].inputs["x"][:1], SAMPLE["x"])


@pytest.mark.parametrize("content", [None, b"no archive"])
def test_what_was_not_left_is_named(tmp_path: Path, content: bytes | None) -> None:
    for path in (cases_module.WEIGHTS, cases_module.CASES):
        if content:
            (tmp_path / path).write_bytes(content)
    with pytest.raises(ExportError, match=r"weights\.npz is needed, which the export before this writes"):
        cases_module.read_weights(tmp_path)
    with pytest.raises(ExportError, match=r"proof\.npz is needed"):
        list(cases_module.read_cases(tmp_path))


def test_no_case_and_integers_from_nowhere_are_no_proof(tmp_path: Path) -> None:
    cases_module.write_cases(tmp_path, iter(()))
    with pytest.raises(ExportError, match="holds no case: nothing would be proved"):
        list(cases_module.read_cases(tmp_path))
    tensor = Tensor("ids", "INT64", ("batch",))
    with pytest.raises(ExportError, match="input ids: INT64 needs a range"):
        cases_module.drawn(tensor, {}, generator=np.random.default_rng(0), sizes={"batch": 1})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: x * 2 + np.float32(0.5), "tensor Model/y, random input, batch 1: the exported model differs by 0.5"),
        (lambda x: x * np.float32(np.nan), "tensor Model/y, random input, batch 1: the exported model returns NaN"),
        (lambda x: x[:, :2], r"returns float32 \[1, 2\], the source framework float32 \[1, 3\]"),
        (lambda x: (x * 2).reshape(1, 3), "random input, batch 4: the exported model fails: cannot reshape array"),
    ],
)
def test_an_exported_model_that_differs_is_told_by_tensor_and_case(
    answer: Callable[[np.ndarray], np.ndarray], said: str
) -> None:
    with pytest.raises(ExportError, match=said):
        compare(lambda inputs: {"Model/y": answer(inputs["x"])}, tried(), GRAPH, tolerance=0.1, failures=(ValueError,))


def test_a_source_framework_that_returns_nan_and_a_sample_without_an_input_are_refused() -> None:
    found = cases(GRAPH, lambda inputs: {"Model/y": inputs["x"] * np.float32(np.nan)}, batches=(1,))
    with pytest.raises(ExportError, match="tensor Model/y, random input, batch 1: the source framework returns NaN"):
        compare(doubled, found, GRAPH, tolerance=0.1, failures=())
    with pytest.raises(ExportError, match="the sample has no input x"):
        list(cases(GRAPH, doubled, batches=(1,), sample={"ids": SAMPLE["x"]}))
