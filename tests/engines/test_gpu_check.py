"""Engines that the engine step builds, compared with ONNX Runtime: by the stand-ins, and by ``make gpu-check`` really.

With the real programs this shows what stand-ins cannot: that ``nvidia-smi`` and ``trtexec`` print what the engine step
reads, that the catalogue has the options that this TensorRT takes, that a plan returns what ONNX Runtime returns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tritonstack.archives.programs import run_script
from tritonstack.catalogue import load_catalogue
from tritonstack.engines import engine_step
from tritonstack.engines.trtexec import GRAPH, JOB, change_job, engine_problems, tensorrt_versions, write_job
from tritonstack.models.runtime_options import Engine
from tritonstack.naming import Platform
from tritonstack.preparation.export_step import graph_for_engine, outputs_of_graph, proof_inputs, read_onnx
from tritonstack.preparation.pack_step import compare_engine
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

REAL = "TRITONSTACK_GPU_CHECK"  # set by make gpu-check
CHECK_GRAPH = Path(__file__).with_name("check_graph.py")
FULL_GPU = "L4"  # supports every option of trtexec that a recipe may set
SHAPES = {"x": {"min": [1, 64], "opt": [4, 64], "max": [8, 64]}}
# The largest difference for outputs of about 1; FP32 runs in TF32 on GPUs that have it.
TOLERANCES = {"fp32": 1e-3, "fp16": 2e-2, "graph": 2e-2}


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """This machine's GPU, or the stand-ins' L4."""
    if REAL not in os.environ:
        machine = machine_with(tensorrt="10.4.0", gpu=FULL_GPU, compute_capability="8.9")
        for name, value in make_stand_ins(tmp_path / "programs", machine).environment().items():
            monkeypatch.setenv(name, value)
    try:
        return engine_step.find_gpus()[0]
    except engine_step.StepError as error:
        pytest.skip(error.reason)


def release_here() -> str:
    """A release of the catalogue with the TensorRT of this machine's trtexec."""
    try:
        program = engine_step.find_program("TRITONSTACK_TRTEXEC", engine_step.TRTEXEC_PLACES, "trtexec")
    except engine_step.StepError as error:
        pytest.skip(error.reason)
    version = engine_step.version_in(engine_step.output_of([program, "--help"])[1])
    assert version is not None, f"{program} --help does not say its TensorRT"
    minor = ".".join(version.split(".")[:2])
    releases = [name for name in load_catalogue().releases if tensorrt_versions(name) == (minor,)]
    if not releases:
        pytest.skip(f"no release of the catalogue has exactly TensorRT {minor}")
    return releases[0]


def test_the_catalogue_has_the_compute_capability_that_nvidia_smi_reports(gpu: dict[str, Any]) -> None:
    words = set(gpu["name"].lower().replace("-", " ").split())
    known = {
        row.compute_capability
        for row in load_catalogue().instances.values()
        if set(row.gpu.lower().split("-")) <= words
    }
    if not known:
        pytest.skip(f"no instance type of the catalogue has a {gpu['name']}")
    assert known == {gpu["compute_capability"]}


@pytest.mark.parametrize(
    "fields",
    [{"precision": "fp32"}, {"precision": "fp16"}, {"precision": "graph", "graph_precision": "fp16"}],
    ids=lambda fields: "-".join(fields.values()),
)
def test_an_engine_returns_what_onnx_runtime_returns(
    tmp_path: Path, gpu: dict[str, Any], fields: dict[str, str]
) -> None:
    release = release_here()
    engine = Engine.model_validate({**fields, "shapes": SHAPES, "timing_cache": False})
    problems = engine_problems(engine, release=release, gpu=FULL_GPU)
    if problems:
        pytest.skip(problems[0].found)
    lines: list[str] = []
    folder, script = tmp_path / "work", str(CHECK_GRAPH)
    folder.mkdir()
    exported = folder / "exported.onnx"
    arguments = ["-P", script, str(exported)]
    run_script(environment="exporters", arguments=arguments, folder=folder, what="graph", report=lines.append)
    graph = read_onnx(exported)
    inputs = proof_inputs(engine.profiles[0], graph, sample=None, seed=0, file=script)
    reference = outputs_of_graph(exported, graph, inputs, work=folder, what="reference", report=lines.append)
    shutil.copyfile(graph_for_engine(engine, exported=exported, work=folder, report=lines.append), folder / GRAPH)
    platform = Platform(release=release, gpu=FULL_GPU)  # whose options do not depend on the GPU
    write_job(folder, engine=engine, platform=platform, inputs=inputs, outputs=["y"], timeout_seconds=600)
    # This machine's trtexec is of no image, so its CUDA is not the release's.
    change_job(folder, gpu={key: gpu[key] for key in ("name", "compute_capability")}, cuda=None)
    command = [sys.executable, str(engine_step.__file__), str(folder / JOB)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    outputs = folder / "output/outputs.json"
    difference = compare_engine(outputs, reference, tolerance=TOLERANCES[engine.precision], what="engine")
    seconds = json.loads((folder / "output/result.json").read_text())["durations"]["build_seconds"]
    print(f"built in {seconds:.1f} s with {release}; largest difference from ONNX Runtime {difference:.2g}")
