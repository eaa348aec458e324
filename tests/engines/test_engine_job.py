"""The job that is written for the step is one that the step does, whatever the release."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.engines.stand_ins import doubling_graph
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.options import known_versions, trtexec_table
from tritonstack.engines import engine_step
from tritonstack.engines.trtexec import EngineJob, engine_options, engine_problems, tensorrt_versions, write_job
from tritonstack.errors import InputError
from tritonstack.models.runtime_options import Engine
from tritonstack.naming import Platform
from tritonstack_local.trtexec.arguments import Arguments
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

SHAPES = {name: {"min": (1, 3), "opt": (2, 3), "max": (4, 3)} for name in ("x", "k")}
ENGINE = Engine.model_validate({"precision": "fp32", "workspace_mib": 64, "shapes": SHAPES})
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
