"""ONNX Runtime's options: a recipe's words in the form that has effect; what the backend refuses or ignores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import cases
from tests.models.folders import write
from tritonstack.catalogue import load_catalogue
from tritonstack.lint import Finding, lint_folder
from tritonstack.lint.view import ServingTarget

CONFIG = """\
name: "m"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
CPU = "instance_group [ { kind: KIND_CPU } ]\n"
RECIPE: dict[str, Any] = {
    "description": "A model.",
    "kind": "onnx",
    "sample": {"request": "request.json", "answer": "answer.json"},
}


def _found(
    root: Path, config: str, *, options: dict[str, Any] | None = None, release: str | None = None
) -> list[Finding]:
    recipe = RECIPE if options is None else RECIPE | {"onnxruntime": options}
    write(root / "m", {"m/config.pbtxt": CONFIG + config, "recipe.yaml": yaml.safe_dump(recipe)})
    target = ServingTarget(release=load_catalogue().release(release)) if release else None
    rules = ("onnxruntime-", "parameter-")
    return [each for each in lint_folder(root / "m", target=target) if each.rule.startswith(rules)]


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def _accelerator(name: str, key: str = "", value: str = "", *, kind: str = "gpu") -> str:
    inside = f'parameters {{ key: "{key}" value: "{value}" }}' if key else ""
    body = f'{kind}_execution_accelerator [ {{ name: "{name}" {inside} }} ]'
    return f"optimization {{ execution_accelerators {{ {body} }} }}\n"


@pytest.mark.parametrize(
    ("config", "rule", "found"),
    [
        (_accelerator("xnnpack", kind="cpu"), "onnxruntime-refused", "cpu_execution_accelerator xnnpack"),
        (_accelerator("tensorrt", "precision", "FP16"), "onnxruntime-refused", "parameter precision of tensorrt"),
        (_accelerator("tensorrt", "precision_mode", "fp16"), "onnxruntime-refused", 'precision_mode "fp16"'),
        (_parameter("execution_mode", "2"), "parameter-value", 'parameter execution_mode: "2"'),
        (_parameter("enable_mem_arena", "on"), "parameter-value", 'parameter enable_mem_arena: "on"'),
        (_parameter("gpu_mem_limit", "1G"), "parameter-value", 'parameter gpu_mem_limit: "1G"'),
        (_accelerator("cuda", "gpu_mem_limit", "1"), "onnxruntime-ignored", "gpu_mem_limit of the accelerator cuda"),
        (_parameter("enable_cpu_mem_arena", "1"), "parameter-unknown", "parameter enable_cpu_mem_arena"),
        (_parameter("execution_mode", "1"), "onnxruntime-ignored", "execution_mode 1 (parallel) on a GPU"),
        (_parameter("inter_op_thread_count", "2"), "onnxruntime-ignored", "inter_op_thread_count without"),
        (
            CPU + _parameter("execution_mode", "1") + _parameter("enable_mem_pattern", "true"),
            "onnxruntime-ignored",
            "enable_mem_pattern 1 together with execution_mode 1",
        ),
    ],
)
def test_what_the_backend_refuses_or_ignores_is_found(tmp_path: Path, config: str, rule: str, found: str) -> None:
    (finding,) = _found(tmp_path, config)
    assert finding.rule == rule
    assert finding.line > CONFIG.count("\n")
    assert found in finding.found


@pytest.mark.parametrize(
    "config",
    [
        "",
        _accelerator("openvino", kind="cpu"),
        CPU + _parameter("execution_mode", "1") + _parameter("inter_op_thread_count", "2"),
        _parameter("share_session_between_instances", "true") + _parameter("enable_mem_arena", "True"),
    ],
)
def test_what_the_backend_reads_has_no_finding(tmp_path: Path, config: str) -> None:
    assert _found(tmp_path, config) == []


@cases("accelerator, key, value, release, known")
def test_what_an_accelerator_takes_depends_on_the_release(
    *, tmp_path: Path, accelerator: str, key: str, value: str, release: str | None, known: bool
) -> None:
    found = _found(tmp_path, _accelerator(accelerator, key, value), release=release)
    assert [finding.rule for finding in found] == ([] if known else ["onnxruntime-refused"])


OPTIONS = {"graph_optimization": "extended", "enable_mem_arena": True, "cudnn_conv_algo_search": "heuristic"}


def test_a_configuration_that_differs_from_the_recipe_is_reported_with_the_fragment_to_write(tmp_path: Path) -> None:
    config = _parameter("enable_mem_arena", "0") + _parameter("gpu_mem_limit", "1")
    (finding,) = _found(tmp_path, config, options=OPTIONS)
    assert (finding.rule, finding.level) == ("onnxruntime-recipe", "error")
    assert finding.found == (
        "cudnn_conv_algo_search: none, the recipe wants 1; enable_mem_arena: 0, the recipe wants 1; "
        "gpu_mem_limit: 1, the recipe wants none; optimization.graph.level: none, the recipe wants 1"
    )
    assert _found(tmp_path, finding.advice.partition("\n")[2], options=OPTIONS) == []
