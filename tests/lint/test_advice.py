"""Advice of the linter about values that people commonly confuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import write
from tritonstack.lint import Finding, lint_folder
from tritonstack.lint.view import ServingTarget

MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
TENSORS = """\
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
PYTHON = f'backend: "python"\n{TENSORS}'


def found(folder: Path, rule: str, target: ServingTarget | None = None) -> list[Finding]:
    return [each for each in lint_folder(folder, target=target) if each.rule == rule]


@pytest.mark.parametrize(
    ("value", "written", "advice"),
    [
        ("TYPE_FP32", "TYPE_BYTES", "write TYPE_STRING"),
        ("TYPE_FP32", "TYPE_FLOAT32", "write TYPE_FP32"),
        ("TYPE_FP32", "TYPE_LONG", "write TYPE_INT64"),
        ("TYPE_FP32", "DOUBLE", "write TYPE_FP64"),
        ("TYPE_FP32", "FP16", "write TYPE_FP16"),
        ("TYPE_FP32", "type_int8", "write TYPE_INT8"),
        ("TYPE_FP32", '"TYPE_FP32"', "write TYPE_FP32 without quotes"),
        ("TYPE_FP32", "TYPE_FP23", "Did you mean TYPE_FP32"),
        ("KIND_CPU", '"KIND_CPU"', "write KIND_CPU without quotes"),
        ("KIND_CPU", "GPU", "write KIND_GPU"),
    ],
)
def test_an_enumeration_s_value_by_another_name_is_reported_with_the_right_one(
    tmp_path: Path, value: str, written: str, advice: str
) -> None:
    config = f"{PYTHON}instance_group [ {{ kind: KIND_CPU }} ]\n".replace(value, written, 1)
    write(tmp_path, {"net/config.pbtxt": config, "net/1/model.py": MODEL})
    assert [each.advice.startswith(advice) for each in found(tmp_path, "config")] == [True]


@pytest.mark.parametrize(
    ("line", "rule", "expected"),
    [
        ('platform: "python"', "platform-unknown", 'backend: "python"'),
        ('platform: "onnxruntime"', "platform-unknown", 'backend: "onnxruntime" or platform: "onnxruntime_onnx"'),
        ('platform: "ONNXRuntime"', "platform-unknown", 'backend: "onnxruntime" or platform: "onnxruntime_onnx"'),
        ('platform: "identity"', "platform-unknown", 'backend: "identity"'),
        ('backend: "onnx"', "backend-not-in-release", 'write backend: "onnxruntime" or platform: "onnxruntime_onnx"'),
        ('backend: "ONNXRuntime"', "backend-not-in-release", 'write backend: "onnxruntime" or platform:'),
        ('backend: "pytorch_libtorch"', "backend-not-in-release", 'write backend: "pytorch" or platform:'),
        ('backend: "tensorrt_plan"', "backend-not-in-release", 'write backend: "tensorrt" or platform:'),
        ('backend: "xgboost"', "backend-not-in-release", 'write backend: "fil"'),
        ('backend: "pythn"', "backend-not-in-release", "Did you mean python?"),
    ],
)
def test_a_backend_by_another_name_is_reported_with_the_right_pair(
    tmp_path: Path, line: str, rule: str, expected: str
) -> None:
    write(tmp_path, {"net/config.pbtxt": f"{line}\n{TENSORS}", "net/1/model.py": MODEL})
    [finding] = found(tmp_path, rule, ServingTarget.of_names(release="24.09", instance_type=None))
    assert expected in f"{finding.allowed}; {finding.advice}"


def test_a_backend_that_the_release_lacks_is_not_called_another_name(tmp_path: Path) -> None:
    write(
        tmp_path, {"net/config.pbtxt": f'backend: "tensorflow"\n{TENSORS}', "net/1/model.savedmodel/saved_model.pb": ""}
    )
    [finding] = found(tmp_path, "backend-not-in-release", ServingTarget.of_names(release="25.09", instance_type=None))
    assert "write backend" not in finding.advice


def test_a_repeated_key_of_an_output_map_is_named(tmp_path: Path) -> None:
    """Protobuf takes the last: the tensor of the first is given by nothing."""
    two = TENSORS.replace(" } ]\noutput", " } ]\noutput").replace(
        "output [ ", 'output [ { name: "z" data_type: TYPE_FP32 dims: [ 4 ] }, '
    )
    steps = (
        '{ model_name: "pre" input_map { key: "x" value: "x" }\n'
        'output_map { key: "y" value: "a" }\noutput_map { key: "y" value: "b" } },\n'
        '{ model_name: "net" input_map { key: "x" value: "a" } output_map { key: "y" value: "y" } }'
    )
    ensemble = f'platform: "ensemble"\n{TENSORS}ensemble_scheduling {{ step [ {steps} ] }}\n'
    files = {"all/config.pbtxt": ensemble, "pre/config.pbtxt": f'backend: "python"\n{two}', "net/config.pbtxt": PYTHON}
    write(tmp_path, {**files, "all/1/keep": "", "pre/1/model.py": MODEL, "net/1/model.py": MODEL})
    [finding] = found(tmp_path, "ensemble-tensor-missing")
    assert finding.found.startswith("tensor a, which step net takes and nothing gives: output_map of step pre")
    assert "has the key y twice (line 5), and the last, b, counts" in finding.found


@pytest.mark.parametrize("backend", ["", 'backend: "python"\n'])
def test_a_program_that_calls_others_is_one_whether_its_backend_is_named_or_derived(
    tmp_path: Path, backend: str
) -> None:
    calls = (
        "import triton_python_backend_utils as pb_utils\n"
        "class TritonPythonModel:\n"
        "    def execute(self, requests):\n"
        "        return [pb_utils.InferenceRequest(model_name='net', requested_output_names=['y'], inputs=[]).exec()]\n"
    )
    write(tmp_path, {"main/config.pbtxt": f"{backend}{TENSORS}", "main/1/model.py": calls})
    write(tmp_path, {"net/config.pbtxt": PYTHON, "net/1/model.py": MODEL})
    assert found(tmp_path, "several-models-no-ensemble") == []
    assert len(found(tmp_path, "bls-default-model")) == 1
