"""An exported graph turned into FP16 for a strongly typed engine, by the environment of the exporters."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tritonstack.engines.export_step import graph_for_engine
from tritonstack.errors import WorkFailedError
from tritonstack.models.programs import environment_python
from tritonstack.models.runtime_options import Engine

SHAPES = {"x": {"min": [1, 3], "opt": [8, 3], "max": [16, 3]}}

MAKE = """
import sys, numpy as np, onnx
from onnx import helper, numpy_helper, TensorProto
matrix = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
weights = [numpy_helper.from_array(matrix, "w")] * (sys.argv[2] == "dense")
node = helper.make_node("MatMul", ["x", "w"], ["y"]) if weights else helper.make_node("Relu", ["x"], ["y"])
tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])
           for name, width in (("x", 3), ("y", 2 if weights else 3))]
graph = helper.make_graph([node], "dense", tensors[:1], tensors[1:], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
onnx.save(model, sys.argv[1])
"""

READ = """
import json, sys, numpy as np, onnx, onnxruntime
model = onnx.load(sys.argv[1])
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
answer = session.run(None, {"x": np.array([[1, 2, 3]], np.float32)})[0]
print(json.dumps({"weights": [tensor.data_type for tensor in model.graph.initializer],
                  "types": [one.type for one in [*session.get_inputs(), *session.get_outputs()]],
                  "answer": answer.tolist()}))
"""


def exporters(program: str, *arguments: str) -> str:
    """What a program of the exporters' environment prints."""
    command = [str(environment_python("exporters")), "-c", program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def engine(**fields: Any) -> Engine:
    return Engine.model_validate({"shapes": SHAPES, "precision": "graph", "graph_precision": "fp16", **fields})


def test_weights_become_fp16_and_inputs_and_outputs_keep_their_types(tmp_path: Path) -> None:
    graph = tmp_path / "model.onnx"
    exporters(MAKE, str(graph), "dense")
    said: list[str] = []
    half = graph_for_engine(engine(), exported=graph, work=tmp_path, report=said.append)
    read = json.loads(exporters(READ, str(half)))
    assert read["weights"] == [10]  # TensorProto.FLOAT16
    assert read["types"] == ["tensor(float)", "tensor(float)"]
    assert read["answer"][0] == pytest.approx([0.4, 2.8], abs=5e-3)
    assert said[0] == "model.onnx in FP16: 1 of 1 FP32 weights are FP16 now"
    assert json.loads(exporters(READ, str(graph)))["weights"] == [1], "the exported graph stays as it is"


def test_a_graph_that_stays_as_it_is_is_an_error(tmp_path: Path) -> None:
    graph = tmp_path / "model.onnx"
    exporters(MAKE, str(graph), "none")
    with pytest.raises(WorkFailedError, match="none of its 0 FP32 weights"):
        graph_for_engine(engine(), exported=graph, work=tmp_path, report=lambda _line: None)


def test_without_a_wish_the_exported_graph_is_taken(tmp_path: Path) -> None:
    graph = tmp_path / "model.onnx"
    plain = engine(graph_precision=None)
    assert graph_for_engine(plain, exported=graph, work=tmp_path, report=lambda _line: None) == graph


@pytest.mark.parametrize("precision", ["fp16", "fp32", "bf16"])
def test_a_graphs_precision_is_only_for_engines_that_take_the_graphs_types(precision: str) -> None:
    with pytest.raises(ValidationError, match="only with precision: graph"):
        engine(precision=precision)
