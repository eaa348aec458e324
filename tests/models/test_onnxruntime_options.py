"""ONNX Runtime's options: words in a recipe, and the form in config.pbtxt that has effect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tritonstack.models.lint.onnxruntime import OnnxRuntimeConfig, configured, differences, expected_config
from tritonstack.models.model_config import read_config
from tritonstack.models.runtime_options import CudaAccelerator, OnnxRuntimeOptions, TensorRtAccelerator

FLAGS = st.none() | st.booleans()
COUNTS = st.none() | st.integers(0, 64)
SHAPE = st.lists(st.integers(1, 9), min_size=1, max_size=3)


@st.composite
def _profiles(draw: st.DrawFn) -> dict[str, Any]:
    """Input → a profile whose shapes rise."""
    low, more = draw(SHAPE), draw(st.integers(0, 5))
    return {"ids": {"min": low, "opt": low, "max": [length + more for length in low]}}


@st.composite
def _tensorrt(draw: st.DrawFn) -> dict[str, Any]:
    cached = draw(st.booleans())
    return {
        "precision": draw(st.sampled_from(["fp32", "fp16", "bf16"])),
        "workspace_bytes": draw(st.none() | st.integers(1, 2**40)),
        "engine_cache": cached,
        "engine_cache_path": draw(st.none() | st.just("/tmp/engines")) if cached else None,
        "builder_optimization_level": draw(st.none() | st.integers(0, 5)),
        "layer_norm_fp32_fallback": draw(FLAGS),
        "profiles": draw(st.just({}) | _profiles()),
    }


@st.composite
def _options(draw: st.DrawFn) -> dict[str, Any]:
    """Options as a recipe has them, all of which hold together."""
    parallel = draw(st.booleans())
    return {
        "graph_optimization": draw(st.sampled_from(["all", "extended", "basic", "disabled"])),
        "execution_mode": "parallel" if parallel else draw(st.sampled_from([None, "sequential"])),
        "intra_op_thread_count": draw(COUNTS),
        "inter_op_thread_count": draw(COUNTS) if parallel else None,
        "enable_mem_arena": draw(FLAGS),
        "enable_mem_pattern": draw(st.sampled_from([None, False]) if parallel else FLAGS),
        "arena_shrinkage": draw(st.sampled_from([None, "gpu:0", "cpu:0;gpu:0"])),
        "device_allocator_for_initializers": draw(FLAGS),
        "arena_extend_strategy": draw(st.sampled_from([None, "next_power_of_two", "same_as_requested"])),
        "gpu_mem_limit": draw(st.none() | st.integers(1, 2**40)),
        "do_copy_in_default_stream": draw(FLAGS),
        "cudnn_conv_algo_search": draw(st.sampled_from([None, "exhaustive", "heuristic", "default"])),
        "tensorrt": draw(st.none() | _tensorrt()),
        "cuda": draw(st.none() | st.fixed_dictionaries({"use_tf32": FLAGS, "prefer_nhwc": FLAGS})),
    }


@given(_options())
def test_the_fragment_of_any_options_is_a_configuration_that_says_them(given_options: dict[str, Any]) -> None:
    wanted = expected_config(OnnxRuntimeOptions.model_validate(given_options))
    config = read_config(wanted.fragment())
    assert config.complaints == ()
    assert configured(config) == wanted
    assert differences(wanted=wanted, found=configured(config)) == []


@given(_options(), _options())
def test_two_configurations_differ_exactly_where_their_forms_do(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = (expected_config(OnnxRuntimeOptions.model_validate(each)) for each in (one, other))
    assert bool(differences(wanted=first, found=second)) == (first != second)


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


@pytest.mark.parametrize(
    ("field", "value", "number"),
    [
        ("cudnn_conv_algo_search", "heuristic", "1"),
        ("arena_extend_strategy", "same_as_requested", "1"),
        ("gpu_mem_limit", 4 * 2**30, "4294967296"),
        ("do_copy_in_default_stream", False, "0"),
    ],
)
def test_cuda_options_that_an_accelerator_would_ignore_stand_at_the_model(
    field: str, value: object, number: str
) -> None:
    options = OnnxRuntimeOptions.model_validate({field: value, "cuda": {"use_tf32": False}})
    wanted = expected_config(options)
    assert wanted.parameters == {field: number}
    assert wanted.accelerators == {"cuda": {"use_tf32": "0"}}


def test_tensorrt_has_the_keys_and_values_of_tritons_readme() -> None:
    accelerator = TensorRtAccelerator.model_validate(
        {
            "precision": "fp16",
            "workspace_bytes": 2**30,
            "engine_cache": True,
            "engine_cache_path": "/tmp",
            "profiles": {
                "ids": {"min": [1, 8], "opt": [4, 8], "max": [8, 8]},
                "mask": {"min": [1, 8], "opt": [4, 8], "max": [8, 8]},
            },
        }
    )
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


def test_every_option_is_described() -> None:
    for model in (OnnxRuntimeOptions, TensorRtAccelerator, CudaAccelerator):
        assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_the_default_batch_size_is_an_argument_of_the_server_and_nothing_of_a_model() -> None:
    options = OnnxRuntimeOptions(default_max_batch_size=8)
    assert options.server_arguments() == ("--backend-config=onnxruntime,default-max-batch-size=8",)
    assert expected_config(options) == OnnxRuntimeConfig()
    assert OnnxRuntimeOptions().server_arguments() == ()
