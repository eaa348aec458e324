"""Frozen GraphDefs under production configurations, on a real server."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cases import cases
from tests.environments import needs
from tritonstack.paths import environment_python

pytestmark = [pytest.mark.long, needs("tensorflow")]

INPUTS = 'input [ { name: "factor" data_type: TYPE_FP32 dims: [1] }, { name: "x" data_type: TYPE_FP32 dims: [3] } ]'
PRODUCT = '{ name: "Model/product" data_type: TYPE_FP32 dims: [3] }'
SCALE = f"""
platform: "tensorflow_graphdef"
max_batch_size: 8
{INPUTS}
output [ {{ name: "Model/rows" data_type: TYPE_INT64 dims: [1] }}, {PRODUCT} ]
instance_group [ {{ kind: KIND_GPU }} ]
"""
TOGETHER = "dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 30000000 }"
FAILING = """
platform: "tensorflow_graphdef"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [3] } ]
output [ { name: "product" data_type: TYPE_FP32 dims: [3] } ]
"""
X = ("FP32", [1, 3], [1, 2, 3])


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphdefs")
    program = Path(__file__).with_name("tensorflow_models.py")
    subprocess.run([environment_python("tensorflow"), program, folder], check=True)
    return folder


def files(models: Path, config: str = SCALE, *, model: str = "scale") -> dict[str, str | Path]:
    """An archive with one of the GraphDefs."""
    return {f"{model}/config.pbtxt": config, f"{model}/1/model.graphdef": models / model / "model.graphdef"}


def test_a_batch_is_one_run_and_outputs_come_by_their_names(sagemaker: Any, models: Path) -> None:
    accelerated = f"""{TOGETHER}
optimization {{ execution_accelerators {{ gpu_execution_accelerator: [ {{ name: "auto_mixed_precision" }} ] }} }}
"""
    assert sagemaker.load("tf-scale", files(models, SCALE + accelerated)).status == 200

    def call(factor: int) -> Any:
        return sagemaker.invoke("tf-scale", x=X, factor=("FP32", [1, 1], [factor])).outputs

    with ThreadPoolExecutor(2) as callers:
        two, three = callers.map(call, (2, 3))
    assert two == {"Model/product": [2, 4, 6], "Model/rows": [2]}
    assert three == {"Model/product": [3, 6, 9], "Model/rows": [2]}
    log = sagemaker.container.log_path.read_text()
    assert "tritonstack stand-in: backend tensorflow runs model.graphdef with TensorFlow 2.17.1 on the CPU" in log
    assert "tritonstack: auto_mixed_precision has no effect on the CPU (model tf-scale.tar.gz)" in log


@cases("case, message")
def test_a_configuration_that_does_not_suit_the_graph_does_not_load(
    sagemaker: Any, models: Path, case: tuple[str, str], message: str
) -> None:
    before, after = case
    assert before in SCALE
    reply = sagemaker.load("tf-refused", files(models, SCALE.replace(before, after, 1)))
    assert reply.status == 400
    assert message in reply.text


def test_what_is_no_graphdef_does_not_load(sagemaker: Any) -> None:
    reply = sagemaker.load("tf-text", {"text/config.pbtxt": SCALE, "text/1/model.graphdef": "text"})
    assert reply.status == 400
    assert "TensorFlow cannot load 'model.graphdef': no GraphDef" in reply.text


def test_a_saved_model_is_refused_and_reports_what_is_served(sagemaker: Any) -> None:
    saved = SCALE.replace("tensorflow_graphdef", "tensorflow_savedmodel")
    archive = {"saved/config.pbtxt": saved, "saved/1/model.savedmodel/saved_model.pb": "text"}
    reply = sagemaker.load("tf-saved", archive)
    assert reply.status == 400
    assert "the CPU stand-in for tensorflow runs a frozen GraphDef alone" in reply.text


def test_a_request_that_tensorflow_fails_gets_its_error_and_the_others_their_responses(
    sagemaker: Any, models: Path
) -> None:
    assert sagemaker.load("tf-failing", files(models, FAILING + TOGETHER, model="failing")).status == 200
    with ThreadPoolExecutor(2) as callers:
        good, bad = callers.map(lambda x: sagemaker.invoke("tf-failing", x=("FP32", [1, 3], [x, 1, 1])), (1, -1))
    assert good.outputs == {"product": [2, 2, 2]}
    assert bad.status == 400
    assert "TensorFlow: assertion failed: [a value is negative]" in bad.text


def test_an_unload_ends_the_process_that_holds_tensorflows_memory(sagemaker: Any, models: Path) -> None:
    server = psutil.Process(sagemaker.container.pid)
    before = set(server.children(recursive=True))
    assert sagemaker.load("tf-unloaded", files(models)).status == 200
    stubs = set(server.children(recursive=True)) - before
    assert max(stub.memory_info().rss for stub in stubs) > 100 * 2**20
    assert sagemaker.unload("tf-unloaded").status == 200
    assert psutil.wait_procs(stubs, timeout=20)[1] == []
