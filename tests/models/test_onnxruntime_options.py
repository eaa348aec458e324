"""ONNX Runtime's options: words in a recipe, and the form in config.pbtxt that has effect."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tritonstack.models.lint.onnxruntime import OnnxRuntimeConfig, configured, differences, expected_config
from tritonstack.models.model_config import read_config
from tritonstack.models.runtime_options import OnnxRuntimeOptions, TensorRtAccelerator

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


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"graph_optimization": "all"}, ""),
        ({"graph_optimization": "basic"}, "optimization {\n  graph { level: -1 }\n}"),
        ({"graph_optimization": "extended"}, "optimization {\n  graph { level: 1 }\n}"),
        ({"graph_optimization": "disabled"}, "optimization {\n  graph { level: 2 }\n}"),
        ({"execution_mode": "parallel"}, 'parameters { key: "execution_mode" value { string_value: "1" } }'),
        ({"enable_mem_arena": False}, 'parameters { key: "enable_mem_arena" value { string_value: "0" } }'),
        (
            {"arena_shrinkage": "gpu:0"},
            'parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "gpu:0" } }',
        ),
    ],
)
def test_a_word_becomes_the_number_that_the_backend_reads(options: dict[str, Any], text: str) -> None:
    assert expected_config(OnnxRuntimeOptions.model_validate(options)).fragment() == text


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


@pytest.mark.parametrize("level", [-1, 0, 1, 2, 99])
def test_a_graph_level_as_a_number_is_refused_with_the_words(level: int) -> None:
    with pytest.raises(ValidationError, match="all, extended, basic or disabled, as a word"):
        OnnxRuntimeOptions.model_validate({"graph_optimization": level})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enable_mem_pattern": True, "execution_mode": "parallel"}, "in parallel nothing is planned"),
        ({"inter_op_thread_count": 4}, "execution_mode: parallel beside inter_op_thread_count"),
        ({"tensorrt": {"engine_cache_path": "/tmp"}}, "engine_cache: true beside engine_cache_path"),
        ({"tensorrt": {"timing_cache_path": "/tmp"}}, "timing_cache: true beside timing_cache_path"),
        ({"tensorrt": {"int8_calibration_table": "t"}}, "precision: int8 beside int8_calibration_table"),
        ({"tensorrt": {"workspace": 1}}, "Extra inputs are not permitted"),
        ({"cuda": {"gpu_mem_limit": 1}}, "Extra inputs are not permitted"),
        ({"arena_shrinkage": "gpu"}, "should match pattern"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OnnxRuntimeOptions.model_validate(options)


def test_the_default_batch_size_is_an_argument_of_the_server_and_nothing_of_a_model() -> None:
    options = OnnxRuntimeOptions(default_max_batch_size=8)
    assert options.server_arguments() == ("--backend-config=onnxruntime,default-max-batch-size=8",)
    assert expected_config(options) == OnnxRuntimeConfig()
    assert OnnxRuntimeOptions().server_arguments() == ()
