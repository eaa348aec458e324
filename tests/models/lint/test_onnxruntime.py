"""ONNX Runtime's options: a recipe's words in the form that has effect; what the backend refuses or ignores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from tests.models.folders import write
from tritonstack.catalogue import load_catalogue
from tritonstack.models.lint.onnxruntime import check_onnxruntime, configured, differences, expected_config
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.view import Target, view_folder
from tritonstack.models.model_config import read_config
from tritonstack.models.runtime_options import OnnxRuntimeOptions, TensorRtAccelerator

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
    target = Target(release=load_catalogue().release(release)) if release else None
    return list(check_onnxruntime(view_folder(root / "m", target)))


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def _accelerator(name: str, key: str = "", value: str = "", *, kind: str = "gpu") -> str:
    inside = f'parameters {{ key: "{key}" value: "{value}" }}' if key else ""
    body = f'{kind}_execution_accelerator [ {{ name: "{name}" {inside} }} ]'
    return f"optimization {{ execution_accelerators {{ {body} }} }}\n"


@pytest.mark.parametrize(
    ("config", "rule", "found"),
    [
        (_accelerator("xnnpack", kind="cpu"), "refused", "cpu_execution_accelerator xnnpack"),
        (_accelerator("tensorrt", "precision", "FP16"), "refused", "parameter precision of tensorrt"),
        (_accelerator("tensorrt", "precision_mode", "fp16"), "refused", 'precision_mode "fp16"'),
        (_parameter("execution_mode", "2"), "refused", 'parameter execution_mode: "2"'),
        (_parameter("enable_mem_arena", "on"), "refused", 'parameter enable_mem_arena: "on"'),
        (_accelerator("cuda", "gpu_mem_limit", "1"), "ignored", "parameter gpu_mem_limit of the accelerator cuda"),
        (_parameter("enable_cpu_mem_arena", "1"), "ignored", "parameter enable_cpu_mem_arena"),
        (_parameter("execution_mode", "1"), "ignored", "execution_mode 1 (parallel) on a GPU"),
        (_parameter("inter_op_thread_count", "2"), "ignored", "inter_op_thread_count without execution_mode 1"),
        (
            CPU + _parameter("execution_mode", "1") + _parameter("enable_mem_pattern", "true"),
            "ignored",
            "enable_mem_pattern 1 beside execution_mode 1",
        ),
    ],
)
def test_what_the_backend_refuses_or_ignores_is_found(tmp_path: Path, config: str, rule: str, found: str) -> None:
    (finding,) = _found(tmp_path, config)
    assert finding.rule == f"onnxruntime-{rule}"
    assert finding.level == ("error" if rule == "refused" else "warning")
    assert finding.line > CONFIG.count("\n")
    assert found in finding.found


@pytest.mark.parametrize(
    "config",
    [
        "",
        _accelerator("tensorrt", "precision_mode", "BF16"),
        _accelerator("tensorrt", "trt_profile_min_shapes", "x:1x1"),
        _accelerator("cuda", "use_tf32", "0"),
        _accelerator("openvino", kind="cpu"),
        CPU + _parameter("execution_mode", "1") + _parameter("inter_op_thread_count", "2"),
        _parameter("share_session_between_instances", "true"),
    ],
)
def test_what_the_backend_reads_has_no_finding(tmp_path: Path, config: str) -> None:
    assert _found(tmp_path, config) == []


@pytest.mark.parametrize(
    ("accelerator", "key", "value", "release", "known"),
    [
        ("cuda", "use_tf32", "0", "24.05", False),
        ("cuda", "use_tf32", "0", "24.07", True),
        ("cuda", "use_tf32", "0", None, True),
        ("tensorrt", "trt_engine_cache_enable", "1", "23.12", True),
        ("tensorrt", "trt_profile_min_shapes", "x:1x1", "24.01", False),
        ("tensorrt", "trt_profile_min_shapes", "x:1x1", "24.09", True),
        ("tensorrt", "precision_mode", "BF16", "25.04", False),
        ("tensorrt", "precision_mode", "BF16", "25.09", True),
    ],
)
def test_what_an_accelerator_takes_depends_on_the_release(
    *, tmp_path: Path, accelerator: str, key: str, value: str, release: str | None, known: bool
) -> None:
    found = _found(tmp_path, _accelerator(accelerator, key, value), release=release)
    assert [finding.rule for finding in found] == ([] if known else ["onnxruntime-refused"])


def test_a_configuration_that_differs_from_the_recipe_is_told_the_fragment_to_write(tmp_path: Path) -> None:
    options = {"graph_optimization": "extended", "enable_mem_arena": True, "tensorrt": {"precision": "fp16"}}
    config = _parameter("enable_mem_arena", "0") + _parameter("gpu_mem_limit", "1")
    (finding,) = _found(tmp_path, config, options=options)
    assert (finding.rule, finding.level) == ("onnxruntime-recipe", "error")
    assert finding.found == (
        "accelerator tensorrt: none, the recipe wants one; "
        'enable_mem_arena: "0", the recipe wants "1"; gpu_mem_limit: "1", the recipe wants none; '
        "optimization.graph.level: none (all), the recipe wants 1 (extended)"
    )
    fragment = finding.advice.partition("\n")[2]
    assert _found(tmp_path, fragment, options=options) == []


def test_a_default_batch_size_in_a_recipe_is_told_its_place(tmp_path: Path) -> None:
    (finding,) = _found(tmp_path, "", options={"default_max_batch_size": 4})
    assert finding.rule == "onnxruntime-ignored"
    assert "--backend-config=onnxruntime,default-max-batch-size=4" in finding.allowed
    assert "container.additional_args" in finding.advice


TENSORRT = {
    "precision": "fp16",
    "workspace_bytes": 2**30,
    "engine_cache": True,
    "engine_cache_path": "/tmp",
    "profiles": {name: {"min": [1, 8], "opt": [4, 8], "max": [8, 8]} for name in ("ids", "mask")},
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"graph_optimization": "extended", "execution_mode": "parallel", "inter_op_thread_count": 2},
        {"execution_mode": "sequential", "intra_op_thread_count": 0, "enable_mem_arena": False},
        {"enable_mem_pattern": True, "arena_shrinkage": "cpu:0;gpu:0", "device_allocator_for_initializers": True},
        {"arena_extend_strategy": "next_power_of_two", "gpu_mem_limit": 2**40, "do_copy_in_default_stream": False},
        {"cudnn_conv_algo_search": "heuristic", "cuda": {"use_tf32": False}, "tensorrt": TENSORRT},
    ],
    ids=lambda options: " ".join(options) or "none",
)
def test_the_fragment_of_options_is_a_configuration_that_says_them(options: dict[str, Any]) -> None:
    wanted = expected_config(OnnxRuntimeOptions.model_validate(options))
    config = read_config(wanted.fragment())
    assert config.complaints == ()
    assert configured(config) == wanted
    assert differences(wanted=wanted, found=configured(config)) == []
    changed = {"graph_optimization": "basic", "gpu_mem_limit": 1}
    other = expected_config(OnnxRuntimeOptions.model_validate(options | changed))
    assert len(differences(wanted=other, found=configured(config))) == len(changed)


def test_tensorrt_has_the_keys_and_values_of_tritons_readme() -> None:
    accelerator = TensorRtAccelerator.model_validate(TENSORRT)
    assert expected_config(OnnxRuntimeOptions(tensorrt=accelerator)).accelerators["tensorrt"] == {
        "precision_mode": "FP16",
        "max_workspace_size_bytes": "1073741824",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": "/tmp",
        "trt_profile_min_shapes": "ids:1x8,mask:1x8",
        "trt_profile_opt_shapes": "ids:4x8,mask:4x8",
        "trt_profile_max_shapes": "ids:8x8,mask:8x8",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tensorrt": {"engine_cache_path": "/tmp"}}, "engine_cache: true beside engine_cache_path"),
        ({"cuda": {"gpu_mem_limit": 1}}, "Extra inputs are not permitted"),
        ({"arena_shrinkage": "gpu"}, "should match pattern"),
        ({"graph_optimization": 2}, "all, extended, basic or disabled, as a word"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OnnxRuntimeOptions.model_validate(options)
