"""What trtexec-stand-in writes is served by the local Triton's tensorrt backend, and the log names it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.stand_ins import doubling_graph
from tests.tritonstack_local.container.conftest import QUIET, SageMaker
from tritonstack_local.container import ContainerSettings, TritonContainer
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

CONFIG = """
platform: "tensorrt_plan"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [3] }, { name: "k" data_type: TYPE_INT32 dims: [3] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [3] }, { name: "m" data_type: TYPE_INT64 dims: [3] } ]
instance_group [ { kind: KIND_GPU } ]
"""
ROWS: dict[str, tuple[str, list[int], list[Any]]] = {
    "x": ("FP32", [1, 3], [1.0, 2.0, 3.0]),
    "k": ("INT32", [1, 3], [1, -2, 3]),
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "model.onnx").write_bytes(doubling_graph())
    programs = make_stand_ins(folder, machine_with(tensorrt="10.4.0", gpu="A10G", compute_capability="8.6"))
    built = [f"--onnx={folder / 'model.onnx'}", f"--saveEngine={folder / 'model.plan'}", "--skipInference"]
    subprocess.run([programs.trtexec, *built], check=True, capture_output=True)
    return folder / "model.plan"


@pytest.fixture(scope="module")
def sagemaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMaker]:
    settings = ContainerSettings(environment=QUIET, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=tmp_path_factory.mktemp("container")) as container:
        container.wait_ready(60)
        yield SageMaker(container)


def test_the_graph_in_a_marked_plan_answers_and_the_log_reports_it(sagemaker: SageMaker, plan: Path) -> None:
    assert sagemaker.load("double", {"double/config.pbtxt": CONFIG, "double/1/model.plan": plan}).status == 200
    assert sagemaker.invoke("double", **ROWS).outputs == {"y": [2, 4, 6], "m": [2, -4, 6]}
    said = "backend tensorrt runs the ONNX graph in model.plan, which trtexec-stand-in wrote, with ONNX Runtime"
    assert said in sagemaker.container.log_path.read_text()


def test_a_plan_named_for_a_compute_capability_answers(sagemaker: SageMaker, plan: Path) -> None:
    config = CONFIG + 'cc_model_filenames { key: "8.6" value: "a10g.plan" }\n'
    assert sagemaker.load("named", {"named/config.pbtxt": config, "named/1/a10g.plan": plan}).status == 200
    assert sagemaker.invoke("named", **ROWS).outputs["y"] == [2, 4, 6]


def test_tensors_that_the_configuration_leaves_out_are_those_of_the_marked_plan(
    sagemaker: SageMaker, plan: Path
) -> None:
    config = 'backend: "tensorrt"\ninstance_group [ { kind: KIND_GPU } ]\n'
    assert sagemaker.load("filled", {"filled/config.pbtxt": config, "filled/1/model.plan": plan}).status == 200
    rows = {**ROWS, "k": ("INT64", [1, 3], [1, -2, 3])}
    assert sagemaker.invoke("filled", **rows).outputs["m"] == [2, -4, 6]


def test_another_plan_without_its_graph_is_refused(sagemaker: SageMaker, tmp_path: Path) -> None:
    (tmp_path / "real.plan").write_bytes(b"ptrt" + bytes(100))
    reply = sagemaker.load("real", {"real/config.pbtxt": CONFIG, "real/1/model.plan": tmp_path / "real.plan"})
    assert reply.status >= 400
    assert "a TensorRT plan cannot run on a CPU" in reply.text
