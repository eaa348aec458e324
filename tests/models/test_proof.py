"""The proof's stand-in for Triton: ``reshape`` between what a request sees and what a model sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.models.lint.onnx_files import node, write_graph
from tritonstack.models.model_config import read_config
from tritonstack.models.programs import run_script
from tritonstack.models.sample import PROOF_ENVIRONMENT, PROVER
from tritonstack.models.sample import _plan as plan_of

LABELS = """
    backend: "onnxruntime" max_batch_size: 8
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 2 ] reshape { shape: [ 4 ] } } ]
    output [ { name: "label" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } } ]
"""
GRAPH: dict[str, Any] = {
    "inputs": [{"name": "x", "dtype": "FP32", "shape": ["n", 4]}],
    "outputs": [{"name": "label", "dtype": "INT64", "shape": ["n"]}],
    "nodes": [node("ArgMax", ["x"], ["label"], axis=1, keepdims=0)],
}
REQUEST = [{"name": "x", "datatype": "FP32", "shape": [2, 2, 2], "data": [0, 9, 0, 0, 0, 0, 0, 9]}]


def _prove(folder: Path, config: str) -> dict[str, Any]:
    (folder / "net/1").mkdir(parents=True)
    write_graph(folder / "net/1/model.onnx", GRAPH)
    plan = {"model": "net", "models": {"net": plan_of(folder / "net", read_config(config))}, "request": REQUEST}
    (folder / "plan.json").write_text(json.dumps(plan))
    arguments = ["-P", str(PROVER), str(folder / "plan.json"), str(folder / "result.json")]
    run_script(
        environment=PROOF_ENVIRONMENT, arguments=arguments, folder=folder, what="proof", report=lambda _line: None
    )
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def test_a_classifiers_labels_are_proven_in_the_shapes_that_requests_see(tmp_path: Path) -> None:
    result = _prove(tmp_path, LABELS)
    assert result["outputs"] == [{"name": "label", "datatype": "INT64", "shape": [2, 1], "data": [1, 3]}]


@pytest.mark.parametrize("gone", ["reshape { shape: [ ] }", "reshape { shape: [ 4 ] }"])
def test_without_the_reshape_the_proof_names_the_tensor(tmp_path: Path, gone: str) -> None:
    assert "in the ONNX graph" in _prove(tmp_path, LABELS.replace(gone, ""))["failure"]
