"""trtexec's options for a recipe, a release and a GPU, and the job of the engine step."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.stand_ins import doubling_graph
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.options import known_versions, tensorrt_candidates, trtexec_options, trtexec_table
from tritonstack.engines import engine_step
from tritonstack.engines.trtexec import (
    EngineJob,
    Target,
    engine_options,
    engine_problems,
    tensorrt_versions,
    write_job,
)
from tritonstack.errors import InputError
from tritonstack.models.runtime_options import Engine
from tritonstack.naming import Platform
from tritonstack_local.trtexec.arguments import Arguments
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

CATALOGUE = load_catalogue()
GPUS = sorted({row.gpu for row in CATALOGUE.instances.values()})
SHAPES = {"x": {"min": [1, 3], "opt": [8, 3], "max": [16, 3]}}
FIELDS = st.fixed_dictionaries(
    {
        "precision": st.sampled_from(["fp16", "bf16", "fp32", "graph"]),
        "workspace_mib": st.integers(1, 80000),
        "optimisation_level": st.none() | st.integers(0, 5),
        "timing_cache": st.booleans(),
        "version_compatible": st.booleans(),
        "hardware_compatibility": st.sampled_from(["none", "ampere+", "same-compute-capability"]),
    }
)


def engine(**fields: Any) -> Engine:
    return Engine.model_validate({"shapes": SHAPES, **fields})


def found(which: Engine, *, release: str, gpu: str = "A10G", own_image: bool = False) -> list[tuple[str, str]]:
    return [
        (problem.field, problem.found)
        for problem in engine_problems(which, release=release, gpu=gpu, own_image=own_image)
    ]


@pytest.mark.parametrize("release", CATALOGUE.releases)
@settings(max_examples=15)
@given(fields=FIELDS, gpu=st.sampled_from(GPUS))
def test_every_option_is_known_to_every_tensorrt_of_the_release_or_the_engine_is_refused(
    release: str, fields: dict[str, Any], gpu: str
) -> None:
    which = engine(**fields)
    problems = engine_problems(which, release=release, gpu=gpu, own_image=True)
    if problems:
        with pytest.raises(InputError) as refused:
            engine_options(which, release=release, gpu=gpu)
        assert refused.value.problems == problems
        return
    row = CATALOGUE.releases[release]
    for version in tensorrt_candidates(row, releases=tuple(CATALOGUE.releases.values())):
        names = {option.partition("=")[0] for option in engine_options(which, release=release, gpu=gpu)}
        assert names <= trtexec_options(version)


@pytest.mark.parametrize("release", CATALOGUE.releases)
@pytest.mark.parametrize("gpu", GPUS)
def test_an_fp32_engine_without_wishes_can_be_built_on_every_gpu_of_every_release(release: str, gpu: str) -> None:
    assert not engine_problems(engine(precision="fp32"), release=release, gpu=gpu, own_image=True)


def test_the_options_for_triton_24_09() -> None:
    assert engine_options(engine(workspace_mib=4096), release="24.09", gpu="t4") == (
        "--minShapes=x:1x3",
        "--optShapes=x:8x3",
        "--maxShapes=x:16x3",
        "--fp16",
        "--memPoolSize=workspace:4096",
        "--skipInference",
    )


def test_tensorrt_8_5_is_asked_to_build_only_by_its_own_word() -> None:
    options = engine_options(engine(), release="22.12", gpu="A10G")
    assert "--buildOnly" in options
    assert "--skipInference" not in options
    assert "--memPoolSize=workspace:14000" in options


def test_every_wish_becomes_an_option() -> None:
    wishes = engine(
        precision="graph",
        optimisation_level=5,
        version_compatible=True,
        hardware_compatibility="same-compute-capability",
    )
    options = engine_options(wishes, release="25.12", gpu="l4")
    assert options[3:] == (
        "--stronglyTyped",
        "--memPoolSize=workspace:14000",
        "--builderOptimizationLevel=5",
        "--versionCompatible",
        "--hardwareCompatibilityLevel=sameComputeCapability",
        "--skipInference",
    )


def test_several_inputs_stand_in_one_list_in_the_order_of_their_names() -> None:
    shapes = {"b": SHAPES["x"], "a": {"min": [1], "opt": [2], "max": [3]}}
    options = engine_options(engine(shapes=shapes), release="24.09", gpu="t4")
    assert options[:3] == ("--minShapes=a:1,b:1x3", "--optShapes=a:2,b:8x3", "--maxShapes=a:3,b:16x3")


def test_a_name_with_a_colon_is_quoted() -> None:
    options = engine_options(engine(shapes={"Input:0": SHAPES["x"]}), release="24.09", gpu="t4")
    assert options[0] == "--minShapes='Input:0':1x3"


@pytest.mark.parametrize("name", ["a,b", "it's", ""])
def test_a_name_that_trtexec_cannot_read_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="without comma"):
        engine(shapes={name: SHAPES["x"]})


@pytest.mark.parametrize(
    ("precision", "way"),
    [
        ("fp16", "say precision: graph and graph_precision: fp16, and the build turns the exported graph into FP16"),
        ("bf16", "say precision: graph, and export the ONNX graph in BF16"),
    ],
)
def test_tensorrt_11_refuses_a_precision_that_the_graph_must_have_and_says_what_to_do(precision: str, way: str) -> None:
    (problem,) = engine_problems(engine(precision=precision), release="26.06", gpu="l4", own_image=True)
    assert problem.field == "engine.precision"
    assert f"does not have --{precision}: from TensorRT 11 on" in problem.found
    assert problem.allowed.startswith("fp32, graph; or release ")
    assert problem.allowed.endswith("26.05")
    assert problem.advice == way


@pytest.mark.parametrize("release", ["24.05", "26.05", "26.06"])
def test_the_graphs_own_precision_is_strong_typing(release: str) -> None:
    assert "--stronglyTyped" in engine_options(engine(precision="graph"), release=release, gpu="l4")


def test_an_option_that_only_some_candidates_have_is_one_that_the_release_may_not_have() -> None:
    target = Target(
        release=CATALOGUE.releases["25.04"], gpu="L4", compute_capability=(8, 9), tensorrt=("10.16", "11.0")
    )
    assert not target.takes("--fp16")
    assert target.lacks("--fp16") == "may not have"
    assert target.lacks("--uff") == "does not have"


@pytest.mark.parametrize(
    ("fields", "release", "gpu", "field", "said"),
    [
        ({"precision": "graph"}, "24.01", "a10g", "engine.precision", "graph for release 24.01 with TensorRT 8.6, "),
        ({"precision": "bf16"}, "24.09", "t4", "engine.precision", "bf16 on T4, which has none"),
        ({"hardware_compatibility": "ampere+"}, "24.09", "t4", "engine.hardware_compatibility", "ampere+ on T4, "),
        ({}, "24.08", "a10g", "release", "24.08: AWS's lists name no region with its image"),
    ],
)
def test_what_release_or_gpu_lack_is_refused(
    fields: dict[str, Any], release: str, gpu: str, field: str, said: str
) -> None:
    [(where, what)] = found(engine(**fields), release=release, gpu=gpu)
    assert where == field
    assert what.startswith(said)


def test_bf16_is_taken_where_the_gpu_has_it() -> None:
    assert not found(engine(precision="bf16"), release="24.09", gpu="a10g")


def test_what_is_allowed_instead_leaves_out_what_the_gpu_has_not() -> None:
    (problem,) = engine_problems(engine(precision="graph"), release="24.01", gpu="t4")
    assert problem.allowed == "fp16, fp32; or release 24.05, 24.09, 25.04, 25.09, 25.12, 26.03, 26.04, 26.05"
    (problem,) = engine_problems(engine(precision="bf16"), release="24.09", gpu="t4")
    assert problem.allowed == "fp16, fp32, graph"


def test_a_value_that_came_later_is_refused_before_and_the_releases_that_have_it_are_named() -> None:
    level = engine(hardware_compatibility="same-compute-capability")
    (problem,) = engine_problems(level, release="25.02", gpu="l4", own_image=True)
    assert problem.field == "engine.hardware_compatibility"
    assert problem.allowed == "release 25.04, 25.09, 25.12, 26.03, 26.04, 26.05; or the field left out"
    assert not found(level, release="25.04")


def test_every_refusal_is_said_at_once() -> None:
    wishes = engine(optimisation_level=5, version_compatible=True, hardware_compatibility="ampere+")
    fields = [field for field, _ in found(wishes, release="22.12")]
    assert fields == ["engine.hardware_compatibility", "engine.optimisation_level", "engine.version_compatible"]


def test_a_release_without_an_image_is_taken_where_the_environment_names_one() -> None:
    assert not found(engine(), release="24.08", own_image=True)


@pytest.mark.parametrize("release", CATALOGUE.release_table.images_without_a_row)
def test_a_release_whose_contents_are_unknown_is_refused_with_the_reason(release: str) -> None:
    reason = CATALOGUE.release_table.images_without_a_row[release]
    assert found(engine(), release=release, own_image=True) == [("release", f"{release}: {reason}")]


def test_an_unknown_release_and_an_unknown_gpu_are_both_named() -> None:
    assert [field for field, _ in found(engine(), release="19.01", gpu="v100")] == ["release", "gpu"]


def test_a_release_newer_than_the_catalogue_has_the_newest_tensorrt_and_needs_an_own_image() -> None:
    assert found(engine(), release="99.01") == [("release", "99.01: AWS's lists name no region with its image")]
    assert tensorrt_versions("99.01") == tensorrt_versions(list(CATALOGUE.releases)[-1])
    assert set(tensorrt_versions("25.10")) <= set(tensorrt_versions("25.09")) | set(tensorrt_versions("25.12"))


def test_the_versions_that_an_image_may_have_are_minor_versions() -> None:
    assert tensorrt_versions("24.03") == ("8.6",)
    assert tensorrt_versions("26.05") == ("10.14", "10.15", "10.16")
    with pytest.raises(InputError, match="does not know the release"):
        tensorrt_versions("19.01")


JOB_SHAPES = {name: {"min": (1, 3), "opt": (2, 3), "max": (4, 3)} for name in ("x", "k")}
ENGINE = Engine.model_validate({"precision": "fp32", "workspace_mib": 64, "shapes": JOB_SHAPES})
JOB = EngineJob(
    engine=ENGINE,
    platform=Platform(release="24.09", gpu="a10g"),
    onnx="model.onnx",
    inputs={"x": np.array([[1, 2, 0.5]], np.float32), "k": np.array([[1, -2, 3]], np.int64)},
    outputs=("y", "m"),
    timing_cache="timing.cache",
    timeout_seconds=120,
)


def of_release(release: str) -> EngineJob:
    return replace(JOB, platform=Platform(release=release, gpu="A10G"))


@pytest.mark.parametrize(("release", "tensorrt", "size"), [("23.10", "8.6.1", 12), ("24.09", "10.4.0", 24)])
def test_the_step_does_the_job_and_whole_numbers_have_the_engines_size(
    tmp_path: Path, release: str, tensorrt: str, size: int
) -> None:
    (tmp_path / "model.onnx").write_bytes(doubling_graph())
    path = write_job(of_release(release), tmp_path)
    machine = machine_with(tensorrt=tensorrt, gpu="A10G", compute_capability="8.6")
    programs = make_stand_ins(tmp_path / "programs", machine)
    done = subprocess.run(
        [sys.executable, Path(str(engine_step.__file__)), path],
        env=programs.environment(), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "input1.raw").stat().st_size == size
    answered = {one["name"]: one["values"] for one in json.loads((tmp_path / "output" / "outputs.json").read_text())}
    assert answered == {"y": [2, 4, 1], "m": [2, -4, 6]}


def test_the_job_of_the_same_inputs_has_the_same_bytes(tmp_path: Path) -> None:
    assert write_job(JOB, tmp_path / "a").read_bytes() == write_job(JOB, tmp_path / "b").read_bytes()


def test_arrays_in_another_order_are_written_row_by_row(tmp_path: Path) -> None:
    columns = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    write_job(replace(JOB, inputs={"x": columns}), tmp_path)
    assert np.fromfile(tmp_path / "input0.raw", np.float32).tolist() == [0, 1, 2, 3, 4, 5]


def test_types_that_no_engine_takes_are_refused_together_and_nothing_is_written(tmp_path: Path) -> None:
    inputs = {"a": np.zeros(1), "b": np.array([b"text"], object), "x": np.zeros(1, np.float32)}
    with pytest.raises(InputError) as refused:
        write_job(replace(JOB, inputs=inputs), tmp_path / "job")
    assert [problem.field for problem in refused.value.problems] == ["inputs.a", "inputs.b"]
    assert not (tmp_path / "job").exists()


def test_a_number_above_int32_is_refused_before_tensorrt_10_only(tmp_path: Path) -> None:
    large = {"k": np.array([[1 << 40]], np.int64)}
    write_job(replace(JOB, inputs=large), tmp_path)
    with pytest.raises(InputError, match="INT32"):
        write_job(replace(of_release("23.10"), inputs=large), tmp_path)


def test_a_recipe_that_wants_no_timing_cache_has_none(tmp_path: Path) -> None:
    engine = ENGINE.model_copy(update={"timing_cache": False})
    assert json.loads(write_job(replace(JOB, engine=engine), tmp_path).read_text())["timing_cache"] is None


@pytest.mark.parametrize("release", sorted(load_catalogue().releases))
def test_the_stand_in_of_every_version_that_a_release_may_have_takes_its_options(release: str) -> None:
    gpus = sorted({row.gpu for row in load_catalogue().instances.values()})
    checked = 0
    for gpu in gpus:
        if engine_problems(ENGINE, release=release, gpu=gpu, own_image=True):
            continue
        for planned in tensorrt_versions(release):
            version = trtexec_table().row_of(planned + ".0")
            assert version in known_versions()
            machine = machine_with(tensorrt=str(version), gpu=gpu, compute_capability="8.6")
            options = list(engine_options(ENGINE, release=release, gpu=gpu))
            Arguments.parse(options, known=frozenset(machine.options), later_values=machine.later_values)
            checked += 1
    assert checked or int(tensorrt_versions(release)[0].split(".")[0]) >= 11, "fp32 has an engine before TensorRT 11"
