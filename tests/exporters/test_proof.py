"""Proofs: they fail where an exported model is not the source framework's, and name the tensor."""

from __future__ import annotations

import pytest

from tests.exporters.torch_environment import Tasks, needs_torch

pytestmark = needs_torch


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            "prove_another_model",
            "tensor wide, random input, batch 1, length 3: the exported model differs by 0.01 from",
        ),
        ("prove_nan", "tensor wide, random input, batch 1, length 3: the source framework answers NaN"),
        ("prove_sample_without_mask", "the sample has no input mask"),
        ("prove_damaged_file", "ONNX Runtime cannot load model.onnx"),
    ],
)
def test_what_is_not_the_source_frameworks_model_is_named(tasks: Tasks, task: str, said: str) -> None:
    assert said in tasks.refused(task)
