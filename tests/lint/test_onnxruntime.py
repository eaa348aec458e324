"""ONNX Runtime's options: a recipe's words in the form that has effect; what the backend refuses or ignores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from tests.cases import cases
from tests.models.folders import write
from tritonstack.catalogue import load_catalogue
from tritonstack.lint import Finding, lint_folder
from tritonstack.lint.backends.onnxruntime import configured_options, fragment, wanted_options
from tritonstack.lint.view import ServingTarget
from tritonstack.models.model_config import read_config
from tritonstack.models.runtime_options import OnnxRuntimeOptions

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


TENSORRT = {
    "precision": "fp16",
    "workspace_bytes": 2**30,
    "engine_cache": True,
    "engine_cache_path": "/tmp",
    "profiles": {name: {"min": [1, 8], "opt": [4, 8], "max": [8, 8]} for name in ("ids", "mask")},
    "parameters": {"trt_timing_cache_enable": "1"},
}
POST = {
    "graph_optimization": "extended",
    "cudnn_conv_algo_search": "heuristic",
    "arena_extend_strategy": "same_as_requested",
    "enable_mem_arena": True,
    "enable_mem_pattern": True,
    "do_copy_in_default_stream": True,
    "gpu_mem_limit": 2**34,
    "execution_mode": "sequential",
}
"""The options that the first AWS post tunes."""


def test_the_tensorrt_accelerator_has_the_keys_and_values_of_tritons_readme() -> None:
    options = OnnxRuntimeOptions.model_validate({"tensorrt": TENSORRT})
    assert wanted_options(options) == {
        "accelerator tensorrt": "1",
        "accelerator tensorrt: precision_mode": "FP16",
        "accelerator tensorrt: max_workspace_size_bytes": "1073741824",
        "accelerator tensorrt: trt_engine_cache_enable": "1",
        "accelerator tensorrt: trt_engine_cache_path": "/tmp",
        "accelerator tensorrt: trt_profile_min_shapes": "ids:1x8,mask:1x8",
        "accelerator tensorrt: trt_profile_opt_shapes": "ids:4x8,mask:4x8",
        "accelerator tensorrt: trt_profile_max_shapes": "ids:8x8,mask:8x8",
        "accelerator tensorrt: trt_timing_cache_enable": "1",
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        POST,
        {**POST, "graph_optimization": "all", "tensorrt": TENSORRT},
        {"tensorrt": {}, "cuda": {"use_tf32": False, "parameters": {"tunable_op_enable": "1"}}},
    ],
    ids=["none", "the post's", "TensorRT", "both accelerators"],
)
def test_the_fragment_of_options_is_a_configuration_that_has_them(tmp_path: Path, options: dict[str, Any]) -> None:
    wanted = wanted_options(OnnxRuntimeOptions.model_validate(options))
    config = read_config(fragment(wanted))
    assert config.complaints == ()
    assert configured_options(config) == wanted
    assert _found(tmp_path, fragment(wanted), options=options) == []


@cases("config, found")
def test_an_accelerator_is_the_recipes_where_it_names_one(tmp_path: Path, config: str, found: str) -> None:
    findings = _found(tmp_path, config, options={"tensorrt": {"precision": "fp16"}})
    assert [finding.found for finding in findings] == ([found] if found else [])


def test_an_accelerator_that_the_recipe_does_not_name_is_the_configurations_own(tmp_path: Path) -> None:
    assert _found(tmp_path, _accelerator("tensorrt", "precision_mode", "FP16"), options={}) == []


def test_a_default_batch_size_beside_the_models_own_has_no_effect(tmp_path: Path) -> None:
    (finding,) = _found(tmp_path, "", options={"default_max_batch_size": 4})
    assert (finding.rule, finding.line) == ("onnxruntime-ignored", 3)
    assert finding.found == "max_batch_size 8 with default_max_batch_size 4 of the recipe"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tensorrt": {"engine_cache_path": "/tmp"}}, "engine_cache: true with engine_cache_path"),
        ({"cuda": {"gpu_mem_limit": 1}}, "Extra inputs are not permitted"),
        ({"graph_optimization": 2}, "all, extended, basic or disabled, as a word"),
        ({"default_max_batch_size": 0}, "greater than or equal to 1"),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OnnxRuntimeOptions.model_validate(options)
