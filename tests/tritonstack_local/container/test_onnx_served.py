"""ONNX graphs under production configurations, loaded and called on a real server as SageMaker does it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.engines.stand_ins import doubling_graph
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

Files = dict[str, str | Path]

DOUBLE = """
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [3] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [3] }, { name: "rows" data_type: TYPE_INT64 dims: [1] } ]
instance_group [ { kind: KIND_GPU gpus: [0] } ]
"""
TYPES = """
backend: "onnxruntime"
max_batch_size: 0
input [
  { name: "half" data_type: TYPE_FP16 dims: [-1] }, { name: "text" data_type: TYPE_STRING dims: [-1] },
  { name: "whole" data_type: TYPE_INT64 dims: [-1] }, { name: "flag" data_type: TYPE_BOOL dims: [-1] }
]
output [
  { name: "half_out" data_type: TYPE_FP16 dims: [-1] }, { name: "text_out" data_type: TYPE_STRING dims: [-1] },
  { name: "whole_out" data_type: TYPE_INT64 dims: [-1] }, { name: "flag_out" data_type: TYPE_BOOL dims: [-1] }
]
"""
TABLE = """
backend: "onnxruntime"
max_batch_size: 4
default_model_filename: "table.onnx"
input [ { name: "index" data_type: TYPE_INT64 dims: [1] } ]
output [ { name: "row" data_type: TYPE_FP32 dims: [1, 2] } ]
dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 10000000 }
"""


def double(graphs: Path, config: str = DOUBLE, folder: str = "double") -> Files:
    return {f"{folder}/config.pbtxt": config, f"{folder}/1/model.onnx": graphs / "double" / "model.onnx"}


def row(*numbers: float) -> tuple[str, list[int], list[float]]:
    return "FP32", [1, 3], list(numbers)


def test_a_model_is_loaded_invoked_and_unloaded_and_the_log_reports_the_stand_in_once(
    sagemaker: Any, graphs: Path
) -> None:
    files = double(graphs, DOUBLE.replace("kind: KIND_GPU", "count: 2 kind: KIND_GPU"))
    assert sagemaker.load("double", files).status == 200
    assert sagemaker.load("double", files).status == 409
    reply = sagemaker.invoke("double", x=row(1, 2, 3))
    assert json.loads(reply.text)["model_name"] == "double.tar.gz"
    assert reply.outputs == {"y": [2, 4, 6], "rows": [1]}
    found = json.loads(sagemaker.call("GET", "/models/double").text)
    assert found == {"modelName": "double", "modelUrl": sagemaker.container.model_url("double")}
    assert sagemaker.unload("double").status == 200
    assert sagemaker.invoke("double", x=row(1, 2, 3)).status == 404
    line = (
        "tritonstack stand-in: backend onnxruntime runs model.onnx with ONNX Runtime on the CPU (model double.tar.gz)"
    )
    assert sagemaker.container.log_path.read_text().splitlines().count(line) == 1


def test_an_archive_with_its_configuration_at_the_root_loads(sagemaker: Any, graphs: Path) -> None:
    if sagemaker.container.isolation != "namespace":
        pytest.skip("the front end knows such an archive by the path /opt/ml/models, which needs namespaces")
    files = {path.removeprefix("double/"): content for path, content in double(graphs).items()}
    assert sagemaker.load("root", files).status == 200
    assert sagemaker.invoke("root", x=row(1, 1, 1)).outputs["y"] == [2, 2, 2]


def test_requests_of_one_batch_are_one_run(sagemaker: Any, graphs: Path) -> None:
    batching = "dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 30000000 }"
    assert sagemaker.load("batch", double(graphs, DOUBLE + batching)).status == 200
    with ThreadPoolExecutor(4) as callers:
        replies = list(callers.map(lambda number: sagemaker.invoke("batch", x=row(number, 0, 0)), range(4)))
    assert [reply.outputs["y"] for reply in replies] == [[2 * number, 0, 0] for number in range(4)]
    assert [reply.outputs["rows"] for reply in replies] == [[4]] * 4


def test_an_error_of_one_request_does_not_reach_the_others_of_its_batch(sagemaker: Any, graphs: Path) -> None:
    files: Files = {
        "table/config.pbtxt": TABLE,
        "table/1/table.onnx": graphs / "table" / "model.onnx",
        "table/1/weights.bin": graphs / "table" / "weights.bin",
    }
    assert sagemaker.load("table", files).status == 200
    with ThreadPoolExecutor(2) as callers:
        good, bad = callers.map(lambda index: sagemaker.invoke("table", index=("INT64", [1, 1], [index])), (2, 7))
    assert good.outputs == {"row": [20, 21]}
    assert bad.status == 400
    assert "ONNX Runtime" in bad.text
    assert "table.tar.gz" in bad.text


def test_half_precision_text_numbers_and_booleans_keep_their_type(sagemaker: Any, graphs: Path) -> None:
    files = {"types/config.pbtxt": TYPES, "types/1/model.onnx": graphs / "types" / "model.onnx"}
    assert sagemaker.load("types", files).status == 200
    arrays = {
        "half": np.array([0.5, -2], np.float16),
        "text": np.array(["Zürich".encode(), b""], np.object_),
        "whole": np.array([-(2**62)], np.int64),
        "flag": np.array([True, False]),
    }
    outputs = sagemaker.invoke_binary("types", arrays)
    for name, array in arrays.items():
        assert outputs[f"{name}_out"].dtype == array.dtype
        assert outputs[f"{name}_out"].tolist() == array.tolist()


@cases("old, new, message")
def test_a_configuration_that_does_not_fit_the_graph_does_not_load(
    sagemaker: Any, graphs: Path, old: str, new: str, message: str
) -> None:
    assert old in DOUBLE
    reply = sagemaker.load("unfit", double(graphs, DOUBLE.replace(old, new)))
    assert reply.status == 400
    assert message in json.loads(reply.text)["error"]


def test_a_missing_graph_and_a_file_that_is_none_are_reported(sagemaker: Any, graphs: Path) -> None:
    files = {"double/config.pbtxt": DOUBLE, "double/1/other.onnx": graphs / "double" / "model.onnx"}
    reply = sagemaker.load("missing", files)
    assert reply.status == 400
    assert "model.onnx' for model 'missing.tar.gz'; found in that folder: other.onnx" in reply.text
    reply = sagemaker.load("text", {"double/config.pbtxt": DOUBLE, "double/1/model.onnx": "not a graph"})
    assert reply.status == 400
    assert "ONNX Runtime cannot load 'model.onnx'" in reply.text


def test_what_is_for_a_gpu_is_ignored_and_reported_once(sagemaker: Any, graphs: Path) -> None:
    config = (
        DOUBLE
        + """
    parameters { key: "gpu_mem_limit" value: { string_value: "1000" } }
    parameters { key: "intra_op_thread_count" value: { string_value: "2" } }
    optimization { graph { level: 1 } cuda { graphs: true }
      execution_accelerators { gpu_execution_accelerator [ { name: "tensorrt" } ] } }
    """
    )
    assert sagemaker.load("gpu", double(graphs, config)).status == 200
    lines = [line for line in sagemaker.container.log_path.read_text().splitlines() if "(model gpu.tar.gz)" in line]
    for name in ("gpu_mem_limit", "optimization.cuda", "gpu_execution_accelerator tensorrt"):
        assert [line for line in lines if f"{name} is for a GPU" in line] != []
    assert len(lines) == 4


PLAN = DOUBLE.replace("onnxruntime_onnx", "tensorrt_plan").replace("FP32", "FP16")


def test_a_tensorrt_plan_is_served_from_the_graph_in_its_folder(sagemaker: Any, graphs: Path) -> None:
    files = {**double(graphs, PLAN), "double/1/model.plan": "a plan, which only its GPU can read"}
    assert sagemaker.load("plan", files).status == 200
    result = sagemaker.invoke_binary("plan", {"x": np.array([[1, 2, 3]], np.float16)})["y"]
    assert result.dtype == np.float16
    assert result.tolist() == [[2, 4, 6]]
    log = sagemaker.container.log_path.read_text()
    assert "tritonstack stand-in: backend tensorrt runs model.onnx with ONNX Runtime on the CPU (model plan" in log


def test_a_plan_without_its_graph_reports_where_to_put_it(sagemaker: Any) -> None:
    reply = sagemaker.load("alone", {"double/config.pbtxt": PLAN, "double/1/model.plan": "a plan"})
    assert reply.status == 400
    assert "a TensorRT plan cannot run on a CPU" in reply.text
    assert "/double/1/model.onnx' to serve the model locally" in reply.text


ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "raw" data_type: TYPE_FP32 dims: [3] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [3] } ]
ensemble_scheduling { step [
  { model_name: "plus-one" model_version: -1 input_map { key: "raw" value: "raw" } output_map { key: "x" value: "x" } },
  { model_name: "double" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }
] }
"""


def test_an_ensemble_of_a_python_step_and_a_graph_is_invoked(
    sagemaker: Any, graphs: Path, python_model: Callable[..., Files]
) -> None:
    files = {**double(graphs), **python_model(), "whole/config.pbtxt": ENSEMBLE, "whole/1/.keep": ""}
    assert sagemaker.load("ensemble", files).status == 200
    assert sagemaker.invoke("ensemble", raw=row(1, 2, 3)).outputs == {"y": [4, 6, 8]}


# What trtexec-stand-in writes is served by the tensorrt backend ---------------------------

MARKED = """
platform: "tensorrt_plan"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [3] }, { name: "k" data_type: TYPE_INT32 dims: [3] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [3] }, { name: "m" data_type: TYPE_INT64 dims: [3] } ]
instance_group [ { kind: KIND_GPU } ]
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "model.onnx").write_bytes(doubling_graph())
    programs = make_stand_ins(folder, machine_with(tensorrt="10.4.0", gpu="A10G", compute_capability="8.6"))
    built = [f"--onnx={folder / 'model.onnx'}", f"--saveEngine={folder / 'model.plan'}", "--skipInference"]
    subprocess.run([programs.trtexec, *built], check=True, capture_output=True)
    return folder / "model.plan"


@pytest.mark.parametrize(
    ("name", "config", "file", "whole_numbers"),
    [
        ("plan-marked", MARKED, "model.plan", "INT32"),
        ("plan-named", MARKED + 'cc_model_filenames { key: "8.6" value: "a10g.plan" }\n', "a10g.plan", "INT32"),
        ("plan-filled", 'backend: "tensorrt"\ninstance_group [ { kind: KIND_GPU } ]\n', "model.plan", "INT64"),
    ],
    ids=["as configured", "by compute capability", "tensors of the plan"],
)
def test_the_graph_in_a_marked_plan_is_served_and_the_log_reports_it(
    name: str, config: str, file: str, whole_numbers: str, *, sagemaker: Any, plan: Path
) -> None:
    assert sagemaker.load(name, {"double/config.pbtxt": config, f"double/1/{file}": plan}).status == 200
    outputs = sagemaker.invoke(name, x=row(1, 2, 3), k=(whole_numbers, [1, 3], [1, -2, 3])).outputs
    assert outputs == {"y": [2, 4, 6], "m": [2, -4, 6]}
    notice = f"backend tensorrt runs the ONNX graph in {file}, which trtexec-stand-in wrote, with ONNX Runtime"
    assert notice in sagemaker.container.log_path.read_text()
