"""Programs that are warmed up and send requests to other models: an error where every request does."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from tests.models.folders import MODEL, write
from tritonstack.lint import ServingTarget, lint_folder

CONFIG = """\
backend: "python"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
WARMUP = """\
model_warmup [ {
  name: "w" batch_size: 1
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } }
} ]
"""
HEAD = """\
import triton_python_backend_utils as pb_utils


def ask(x):
    return answer(pb_utils.InferenceRequest(model_name="net", requested_output_names=["y"], inputs=[x]).exec())


def answer(response):
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.InferenceResponse(output_tensors=response.output_tensors())


class TritonPythonModel:
"""
EXECUTE = "def execute(self, requests):\n"
CALL = 'pb_utils.InferenceRequest(model_name="net", requested_output_names=["y"], inputs=[]).exec()'
ONE = f"async def one(self):\n    return answer(await {CALL.replace('exec', 'async_exec')})\n"
LOADS = 'def initialize(self, args):\n    pb_utils.load_model("net")\n'


def _found(root: Path, body: str, *, config: str = CONFIG + WARMUP, multi_model: bool | None = None) -> list[str]:
    write(root, {"front/config.pbtxt": config, "front/1/model.py": HEAD + indent(body, "    ")})
    write(root, {"net/config.pbtxt": CONFIG, "net/1/model.py": MODEL})
    findings = lint_folder(root, target=ServingTarget(multi_model=multi_model))
    return [finding.found for finding in findings if finding.rule == "warmup-calls-others"]


@pytest.mark.parametrize(
    "body",
    [
        f"{EXECUTE}    return [answer({CALL}) for request in requests]\n",
        f"{EXECUTE}    for request in requests:\n        found = answer({CALL})\n    return [found]\n",
        f"{EXECUTE}    return [ask(request) for request in requests]\n",
        f"async {EXECUTE}    return [await self.one() for _ in requests]\n{ONE}",
    ],
)
def test_a_call_that_every_request_makes_fails_the_warm_up(tmp_path: Path, body: str) -> None:
    (found,) = _found(tmp_path, body)
    assert "which model_warmup runs (line 5 of config.pbtxt)" in found


@pytest.mark.parametrize(
    "body",
    [
        f"{EXECUTE}    return []\ndef other(self):\n    return {CALL}\n",
        f"{EXECUTE}    if len(requests) > 1:\n        return [{CALL}]\n    return []\n",
        f"{EXECUTE}    for request in requests:\n        if not request:\n            return []\n    return [{CALL}]\n",
        f"{EXECUTE}    try:\n        {CALL}\n    except Exception:\n        pass\n    return []\n",
        f"{EXECUTE}    return [{CALL} for request in requests if request]\n",
        f"{LOADS}{EXECUTE}    return [{CALL} for request in requests]\n",
    ],
)
def test_a_call_that_a_warm_up_may_not_reach_or_that_finds_its_model_passes(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body) == []


def test_a_starting_server_responds_to_no_program_whatever_it_has_loaded(tmp_path: Path) -> None:
    body = f"{LOADS}{EXECUTE}    return [{CALL} for request in requests]\n"
    assert len(_found(tmp_path, body, multi_model=False)) == 1
    assert _found(tmp_path, body, multi_model=False, config=CONFIG) == []
