"""TorchScript under a production configuration, on a real server."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.environments import needs
from tests.model_repos.test_t5_export import FOLDER, MODEL, export
from tritonstack.models.model_config import ConfigFile, merge_configs
from tritonstack.paths import environment_python

pytestmark = needs("torch")

SCALE = """
platform: "pytorch_libtorch"
max_batch_size: 8
input [ { name: "INPUT__1" data_type: TYPE_FP32 dims: [1] }, { name: "INPUT__0" data_type: TYPE_FP32 dims: [3] } ]
output [ { name: "OUTPUT__1" data_type: TYPE_INT64 dims: [1] }, { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [3] } ]
instance_group [ { kind: KIND_GPU } ]
parameters { key: "ENABLE_NVFUSER" value: { string_value: "true" } }
dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 30000000 }
"""
BY_ARGUMENT = """
backend: "pytorch"
max_batch_size: 0
input [ { name: "factor" data_type: TYPE_FP32 dims: [1, 1] }, { name: "x" data_type: TYPE_FP32 dims: [1, 3] } ]
output [ { name: "product" data_type: TYPE_FP32 dims: [1, 3] } ]
"""


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torchscript")
    subprocess.run([environment_python("torch"), Path(__file__).with_name("torch_models.py"), folder], check=True)
    return folder / "scale" / "model.pt"


def test_numbered_tensors_reach_their_argument_and_a_batch_is_one_call(sagemaker: Any, scale: Path) -> None:
    assert sagemaker.load("torch", {"scale/config.pbtxt": SCALE, "scale/1/model.pt": scale}).status == 200

    def call(factor: int) -> Any:
        inputs = {"INPUT__0": ("FP32", [1, 3], [1, 2, 3]), "INPUT__1": ("FP32", [1, 1], [factor])}
        return sagemaker.invoke("torch", **inputs).outputs

    with ThreadPoolExecutor(2) as callers:
        two, three = callers.map(call, (2, 3))
    assert two == {"OUTPUT__0": [2, 4, 6], "OUTPUT__1": [2]}
    assert three == {"OUTPUT__0": [3, 6, 9], "OUTPUT__1": [2]}
    log = sagemaker.container.log_path.read_text()
    assert "tritonstack stand-in: backend pytorch runs model.pt with PyTorch 2." in log
    assert "ENABLE_NVFUSER is for a GPU and is ignored on the CPU (model torch.tar.gz)" in log


def test_tensors_named_after_arguments_reach_them(sagemaker: Any, scale: Path) -> None:
    assert sagemaker.load("named", {"scale/config.pbtxt": BY_ARGUMENT, "scale/1/model.pt": scale}).status == 200
    reply = sagemaker.invoke("named", x=("FP32", [1, 3], [1, 2, 3]), factor=("FP32", [1, 1], [10]))
    assert reply.outputs == {"product": [10, 20, 30]}


def test_t5_has_the_threads_that_its_configuration_names(sagemaker: Any, tmp_path: Path) -> None:
    exported, folder = export(tmp_path / "t5"), FOLDER / "t5-python"
    config = (folder / "config.pbtxt").read_text()
    files = {
        "t5-python/1/model.py": folder / "1/model.py",
        "t5-python/1/batching.py": folder / "1/batching.py",
        "t5-python/1/model": exported / MODEL,
    }
    many = 'parameters { key: "intra_op_thread_count" value { string_value: "3" } }'
    for name, text in (
        ("t5", config),
        ("t5-of-three", merge_configs(ConfigFile(file="t5", text=config), [ConfigFile(file="t5", text=many)])),
    ):
        assert sagemaker.load(name, {"t5-python/config.pbtxt": text, **files}).status == 200
    log = sagemaker.container.log_path.read_text()
    assert re.findall(r"T5 on cpu, CPU threads .* operators: (\d+ and \d+)", log) == ["1 and 1", "3 and 1"]
