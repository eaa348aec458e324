"""trtexec's options for a recipe, a release and a GPU, and the job of the engine step."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.trtexec_options import takes_option, tensorrt_candidates, trtexec_table
from tritonstack.engines.trtexec import (
    EngineTarget,
    engine_options,
    engine_problems,
    tensorrt_versions,
    write_job,
)
from tritonstack.errors import InputError
from tritonstack.models.recipe import read_recipe
from tritonstack.models.runtime_options import Engine
from tritonstack.naming import Platform
from tritonstack_local.trtexec.arguments import Arguments
from tritonstack_local.trtexec.launchers import machine_with

CATALOGUE = load_catalogue()
GPUS = sorted({row.gpu for row in CATALOGUE.instances.values()})
SHAPES = {"x": {"min": [1, 3], "opt": [8, 3], "max": [16, 3]}}
FIELDS = st.fixed_dictionaries(
    {
        "precision": st.sampled_from(["fp16", "bf16", "fp32", "int8", "graph"]),
        "workspace_mib": st.integers(1, 80000),
        "optimisation_level": st.none() | st.integers(0, 5),
        "timing_cache": st.booleans(),
        "tf32": st.booleans(),
        "verbose": st.booleans(),
        "version_compatible": st.booleans(),
        "hardware_compatibility": st.sampled_from(["none", "ampere_plus", "same_compute_capability"]),
    }
)


def engine(**fields: Any) -> Engine:
    return Engine.model_validate({"shapes": SHAPES, **fields})


@pytest.mark.parametrize("release", CATALOGUE.releases)
@settings(max_examples=15)
@given(fields=FIELDS, gpu=st.sampled_from(GPUS))
def test_every_option_exists_in_every_tensorrt_of_the_release_or_the_engine_is_refused(
    release: str, fields: dict[str, Any], gpu: str
) -> None:
    which = engine(**fields)
    problems = engine_problems(which, release=release, gpu=gpu)
    if problems:
        with pytest.raises(InputError) as refused:
            engine_options(which, release=release, gpu=gpu)
        assert refused.value.problems == problems
        return
    row = CATALOGUE.releases[release]
    for version in tensorrt_candidates(row, releases=tuple(CATALOGUE.releases.values())):
        for option in engine_options(which, release=release, gpu=gpu):
            name, _, value = option.partition("=")
            assert takes_option(version, name, value), option


def test_an_fp32_engine_without_options_can_be_built_on_every_gpu_of_every_release() -> None:
    for release, gpu in itertools.product(CATALOGUE.releases, GPUS):
        assert not engine_problems(engine(precision="fp32"), release=release, gpu=gpu), (release, gpu)


@cases("fields, release, options")
def test_fields_become_the_options_of_the_release(fields: dict[str, Any], release: str, options: list[str]) -> None:
    assert list(engine_options(engine(**fields), release=release, gpu="l4")[: len(options)]) == options


@pytest.mark.parametrize("name", ["a,b", "it's", ""])
def test_a_name_that_trtexec_cannot_read_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="without comma"):
        engine(shapes={name: SHAPES["x"]})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"y": SHAPES["x"]}, "profile 1 has y, profile 0 x"),
        ({"x": {"min": [1], "opt": [1], "max": [1]}}, "one rank"),
        (SHAPES, "profile 1 equals an earlier one"),
    ],
)
def test_profiles_that_no_engine_has_are_refused(second: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        engine(shapes=[SHAPES, second])


@pytest.mark.parametrize(
    ("shapes", "field"), [("    x: {min: [1], opt: [1]}\n", ".x"), ("    - x: {min: [1], opt: [1]}\n", "[0].x")]
)
def test_a_wrong_shape_is_reported_at_its_place_in_a_list_and_in_a_mapping(
    tmp_path: Path, shapes: str, field: str
) -> None:
    head = "description: A net.\nkind: tensorrt\nsample: {request: a.json, answer: b.json}\nengine:\n  shapes:\n"
    (tmp_path / "recipe.yaml").write_text(head + shapes)
    with pytest.raises(InputError) as refused:
        read_recipe(tmp_path)
    (problem,) = refused.value.problems
    assert (problem.field, str(problem.file).rpartition(":")[2]) == (f"engine.shapes{field}.max", "6")


def test_an_option_that_only_some_candidates_have_is_one_that_the_release_may_not_have() -> None:
    row = CATALOGUE.releases["25.04"]
    target = EngineTarget(release=row, gpu="L4", compute_capability=(8, 9), tensorrt=("10.16", "11.0"))
    assert not target.takes("--fp16")
    assert (target.lacks("--fp16"), target.lacks("--uff")) == ("may not have", "does not have")


@cases("fields, release, gpu, found, allowed, advice")
def test_what_release_or_gpu_lack_is_refused_with_what_works(  # noqa: PLR0917
    fields: dict[str, Any], release: str, gpu: str, found: str, allowed: str, advice: str
) -> None:
    (problem,) = engine_problems(engine(**fields), release=release, gpu=gpu)
    assert problem.field == f"engine.{next(iter(fields))}"
    assert found in problem.found
    assert problem.allowed.startswith(allowed)
    assert problem.advice == advice


def test_every_refusal_is_reported_at_once() -> None:
    fields = {"optimisation_level": 5, "version_compatible": True, "hardware_compatibility": "ampere_plus"}
    problems = engine_problems(engine(**fields), release="22.12", gpu="t4")
    assert sorted({problem.field for problem in problems}) == sorted(f"engine.{name}" for name in fields)


def test_the_versions_that_an_image_may_have_are_minor_versions() -> None:
    assert tensorrt_versions("24.03") == ("8.6",)
    assert tensorrt_versions("26.05") == ("10.14", "10.15", "10.16")
    assert tensorrt_versions("99.01") == tensorrt_versions(list(CATALOGUE.releases)[-1])
    assert set(tensorrt_versions("25.10")) <= set(tensorrt_versions("25.09")) | set(tensorrt_versions("25.12"))
    with pytest.raises(InputError, match="not in the catalogue"):
        tensorrt_versions("19.01")


JOB_SHAPES = {name: {"min": (1, 3), "opt": (2, 3), "max": (4, 3)} for name in ("x", "k")}
ENGINE = Engine.model_validate({"precision": "fp32", "workspace_mib": 64, "shapes": JOB_SHAPES})
INPUTS: dict[str, Any] = {"x": np.array([[1, 2, 0.5]], np.float32), "k": np.array([[1, -2, 3]], np.int64)}


def write(
    folder: Path, *, engine: Engine = ENGINE, release: str = "24.09", inputs: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A job for an A10G in a folder."""
    return write_job(
        folder,
        engine=engine,
        platform=Platform(release=release, gpu="a10g"),
        inputs=INPUTS if inputs is None else inputs,
        outputs=("y", "m"),
        timeout_seconds=120,
    )


def test_arrays_in_another_order_are_written_row_by_row(tmp_path: Path) -> None:
    write(tmp_path, inputs={"x": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))})
    assert np.fromfile(tmp_path / "input0.raw", np.float32).tolist() == [0, 1, 2, 3, 4, 5]


def test_types_that_no_engine_takes_are_refused_together_and_nothing_is_written(tmp_path: Path) -> None:
    inputs = {"a": np.zeros(1), "b": np.array([b"text"], object), "x": np.zeros(1, np.float32)}
    with pytest.raises(InputError) as refused:
        write(tmp_path, inputs=inputs)
    assert [problem.field for problem in refused.value.problems] == ["inputs.a", "inputs.b"]
    assert not list(tmp_path.iterdir())


def test_a_number_above_int32_is_refused_before_tensorrt_10_only(tmp_path: Path) -> None:
    large = {"k": np.array([[1 << 40]], np.int64)}
    write(tmp_path, inputs=large)
    with pytest.raises(InputError, match="INT32"):
        write(tmp_path, release="23.10", inputs=large)


def test_a_recipe_that_wants_no_timing_cache_has_none(tmp_path: Path) -> None:
    assert write(tmp_path)["timing_cache"] is True
    assert write(tmp_path, engine=ENGINE.model_copy(update={"timing_cache": False}))["timing_cache"] is False


@pytest.mark.parametrize("release", sorted(load_catalogue().releases))
def test_the_stand_in_of_every_version_that_a_release_may_have_takes_its_options(release: str) -> None:
    gpus = sorted({row.gpu for row in load_catalogue().instances.values()})
    checked = 0
    for gpu in gpus:
        if engine_problems(ENGINE, release=release, gpu=gpu):
            continue
        for planned in tensorrt_versions(release):
            version = trtexec_table().row_of(planned + ".0")
            assert version in trtexec_table().versions
            machine = machine_with(tensorrt=str(version), gpu=gpu, compute_capability="8.6")
            options = list(engine_options(ENGINE, release=release, gpu=gpu))
            Arguments.parse(options, known=frozenset(machine.options))
            checked += 1
    assert checked or int(tensorrt_versions(release)[0].split(".")[0]) >= 11, "fp32 has an engine before TensorRT 11"
