"""The step that builds a plan in the Triton image, run as a program; trtexec and nvidia-smi are the stand-ins."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.engines.stand_ins import OPTIONS, EngineStepRun, doubling_graph
from tritonstack.engines import engine_step
from tritonstack.engines.engine_step import StepError, read_outputs, version_in
from tritonstack.model_files.marked_plan import read_graph, read_header

SOURCE = Path(str(engine_step.__file__))
LEFT = ["model.plan", "outputs.json", "result.json", "timing.cache", "trtexec.log"]


def left(step: EngineStepRun) -> list[str]:
    return sorted(path.name for path in step.output.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[EngineStepRun, str]:
    """A step that was run on the planned machine in the planned image, and its log."""
    step = EngineStepRun.make(tmp_path_factory.mktemp("built"))
    status, log = step.run(CUDA_VERSION="12.6.1", NVIDIA_TRITON_SERVER_VERSION="24.09")
    assert status == 0, log
    return step, log


def test_a_plan_is_built_and_passes_the_proof(built: tuple[EngineStepRun, str]) -> None:
    step, _ = built
    assert left(step) == LEFT
    outputs = json.loads((step.output / "outputs.json").read_text())
    assert outputs == [
        {"name": "y", "shape": [1, 3], "values": [2, 4, 0.2]},
        {"name": "m", "shape": [1, 3], "values": [2, -4, 6]},
    ]
    assert read_graph(step.output / "model.plan") == doubling_graph()
    assert read_header(step.output / "model.plan")["options"]["--fp16"] == ""
    lines = (step.output / "trtexec.log").read_text().splitlines()
    assert lines
    assert all("trtexec-stand-in" in line for line in lines)


def test_the_result_records_what_built_it_and_the_files_digests(built: tuple[EngineStepRun, str]) -> None:
    step, log = built
    result = step.result
    assert (result["outcome"], result["release"], result["image"]) == ("built", "24.09", {"CUDA_VERSION": "12.6.1"})
    assert result["trtexec"]["tensorrt"] == "10.4.0"
    assert result["trtexec"]["stand_in"] is True
    assert result["gpu"]["compute_capability"] == "8.6"
    assert (result["cuda"]["by"], result["cuda"]["driver"]) == ("driver", result["gpu"]["driver"])
    assert "by: driver" in log
    assert log.count("== nvidia_entrypoint-stand-in ==") == 1, "the step starts itself once through NVIDIA's entrypoint"
    assert result["cuda"]["entrypoint"] == str(step.programs.entrypoint)
    assert set(result["durations"]) == {"build_seconds", "proof_seconds"}
    assert set(OPTIONS) <= set(result["command"])
    for name, one in result["files"].items():
        content = (step.output / name).read_bytes()
        assert (one["bytes"], one["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


@cases("machine, expected")
def test_another_machine_than_planned_is_refused_before_anything_is_built(
    tmp_path: Path, machine: dict[str, Any], expected: list[str]
) -> None:
    step = EngineStepRun.make(tmp_path, **machine)
    status, log = step.run()
    assert status == 3
    assert left(step) == ["result.json"]
    assert step.result["phase"] == "machine"
    for words in expected:
        assert words in step.result["reason"]
        assert words in log


SUMMARY = """
cat <<'EOF'
[01/02/2026-03:04:05] [I] === Performance summary ===
[01/02/2026-03:04:05] [I] Throughput: 812.5 qps
[01/02/2026-03:04:05] [I] Latency: min = 1.2 ms, max = 3 ms, mean = 1.3 ms, median = 1.25 ms, percentile(90%) = 1.4 ms, percentile(95%) = 1.5 ms, percentile(99%) = 2.5e+00 ms
[01/02/2026-03:04:05] [I] Enqueue Time: min = 0.1 ms, max = 0.2 ms, mean = 0.1 ms, median = 0.1 ms, percentile(90%) = 0.1 ms
[01/02/2026-03:04:05] [I] H2D Latency: min = 0.1 ms, max = 0.2 ms, mean = 0.1 ms, median = 0.1 ms, percentile(90%) = 0.1 ms
[01/02/2026-03:04:05] [I] GPU Compute Time: min = 1 ms, max = 2 ms, mean = 1.1 ms, median = 1.1 ms, percentile(90%) = 1.2 ms
[01/02/2026-03:04:05] [I] Total GPU Compute Time: 2.9 s
EOF
"""  # noqa: E501 - as trtexec writes it (samples/common/sampleReporting.cpp)
LATENCY = {"min": 1.2, "max": 3, "mean": 1.3, "median": 1.25, "p90": 1.4, "p95": 1.5, "p99": 2.5}


def measuring_trtexec(step: EngineStepRun, *, summary: str = SUMMARY) -> None:
    """The stand-in in the place of a trtexec that is none: it measures where it gets ``--percentile``."""
    stand_in = step.programs.trtexec.with_name("stand-in-itself")
    shutil.copy(step.programs.trtexec, stand_in)
    banner = 'echo "&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec"'
    step.programs.trtexec.write_text(
        f'#!/bin/sh\n[ "$1" = --help ] && {{ {banner}; exit 0; }}\n'
        f'case "$*" in *--percentile*)\n{summary}\nexit 0;; esac\nexec {shlex.quote(str(stand_in))} "$@"\n'
    )


SHAPES = {"x": [4, 3], "k": [4, 3]}
MEASURE = {"seconds": 3, "shapes": [SHAPES]}


def test_what_trtexec_measures_is_in_the_result(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path, measure=MEASURE)
    measuring_trtexec(step)
    status, log = step.run()
    assert status == 0, log
    (measured,) = step.result["measurements"]
    assert (measured["profile"], measured["shapes"], measured["throughput"]) == (0, SHAPES, 812.5)
    assert measured["latency"] == LATENCY
    assert measured["gpu_compute"]["median"] == 1.1
    assert "--duration=3 --percentile=90,95,99" in log
    assert step.result["durations"]["measure_seconds"] >= 0


@pytest.mark.parametrize(
    ("measure", "summary", "reason"),
    [
        ({**MEASURE, "seconds": 0}, SUMMARY, ""),
        (MEASURE, "echo '[I] Throughput: 812.5 qps'", "trtexec printed no performance summary"),
        (MEASURE, "echo '[E] CUDA out of memory'; exit 1", "ends with status 1: [E] CUDA out of memory"),
    ],
)
def test_an_engine_that_is_not_measured_is_built_all_the_same(
    tmp_path: Path, measure: dict[str, Any], summary: str, reason: str
) -> None:
    step = EngineStepRun.make(tmp_path, measure=measure)
    measuring_trtexec(step, summary=summary)
    status, log = step.run()
    assert status == 0, log
    assert step.result["measurements"] == []
    assert reason in log


def test_a_stand_in_measures_nothing(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path, measure=MEASURE)
    status, log = step.run()
    assert (status, step.result["measurements"]) == (0, [])
    assert "not measured: a stand-in has no speed of an engine" in log
    assert "measure_seconds" not in step.result["durations"]


TWO_PROFILES = [
    "--profile=0", "--minShapes=x:1x3,k:1x3", "--optShapes=x:1x3,k:1x3", "--maxShapes=x:1x3,k:1x3",
    "--profile=1", "--minShapes=x:2x3,k:2x3", "--optShapes=x:4x3,k:4x3", "--maxShapes=x:8x3,k:8x3", "--skipInference",
]  # fmt: skip


def test_every_profile_is_proven_with_its_own_inputs(tmp_path: Path) -> None:
    np.array([[1, 2, 3], [4, 5, 6]], np.float32).tofile(tmp_path / "x1.raw")
    np.array([[1, 2, 3], [4, 5, 6]], np.int64).tofile(tmp_path / "k1.raw")
    more: dict[str, Any] = {name: {"file": f"{name}1.raw", "shape": [2, 3]} for name in ("x", "k")}
    step = EngineStepRun.make(tmp_path, options=TWO_PROFILES, more_inputs=[more])
    status, log = step.run()
    assert status == 0, log
    assert left(step) == sorted([*LEFT, "outputs1.json"])
    assert json.loads((step.output / "outputs1.json").read_text())[0]["values"] == [2, 4, 6, 8, 10, 12]
    assert {"outputs.json", "outputs1.json"} <= set(step.result["files"])
    assert "--useProfile=1" in log
    assert len(read_header(step.output / "model.plan")["profiles"]) == 2
    more["x"]["shape"] = more["k"]["shape"] = [1, 3]
    other = EngineStepRun.make(tmp_path, options=TWO_PROFILES, more_inputs=[more])
    assert other.run()[0] == 5
    assert "is not between (2, 3) and (8, 3), the optimisation profile's" in other.result["reason"]
    assert left(other) == ["result.json", "trtexec.log"], "outputs of an earlier run do not count"


OLD = {"driver": "470.256.02", "supports": "11.4"}
"""The driver that g4dn and g5 have on SageMaker without another AMI (developer guide, "inference-gpu-drivers")."""
UNAVAILABLE = "CUDA Driver UNAVAILABLE (cuInit(0) returned 803)"


ADVICE = ["builds.engine_builder", "release with an older CUDA"]


@pytest.mark.parametrize(
    ("machine", "by"),
    [
        ({"driver": "535.161.08", "supports": "12.2"}, "minor version compatibility"),
        ({"driver": "580.82.07", "supports": "13.0"}, "driver"),
        ({**OLD, "cuda": None}, "not known"),
        ({"driver": "580.82.07", "supports": ""}, "minor version compatibility"),
        (OLD, ["470.256.02 supports CUDA 11.4", "has CUDA 12.6.1", "driver 525 or newer", *ADVICE]),
        ({"cuda": "13.0.1"}, ["560.35.03 supports CUDA 12.6", "CUDA 13.0.1", "driver 580", *ADVICE]),
        ({**OLD, "supports": ""}, ["in a version that it does not print"]),
    ],
)
def test_a_driver_runs_the_images_cuda_or_is_refused_with_what_is_needed_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: dict[str, Any], by: str | list[str]
) -> None:
    step = EngineStepRun.make(tmp_path, **machine)
    for name, value in {**step.programs.environment(), engine_step.THROUGH: ""}.items():
        monkeypatch.setenv(name, value)
    job, driver = engine_step.read_job(tmp_path / "job.json"), engine_step.find_gpus()[0]["driver"]
    if isinstance(by, str):
        assert engine_step.check_driver(job, driver)["by"] == by
        return
    with pytest.raises(StepError) as refused:
        engine_step.check_driver(job, driver)
    assert refused.value.status == engine_step.MACHINE
    assert all(words in refused.value.reason for words in by)


def test_forward_compatibility_that_the_entrypoint_sets_up_runs_the_images_cuda(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path, **OLD, compat="CUDA Driver OK")
    status, log = step.run()
    assert status == 0, log
    assert step.result["cuda"]["by"] == "forward compatibility"


@pytest.mark.parametrize(
    ("compat", "image", "expected"),
    [
        (UNAVAILABLE, {}, [UNAVAILABLE, "nvidia_entrypoint-stand-in.sh reports"]),
        ("", {"TRITONSTACK_NVIDIA_ENTRYPOINT": ""}, ["without NVIDIA's entrypoint (/opt/nvidia/nvidia_entrypoint.sh"]),
    ],
)
def test_nothing_is_built_where_the_entrypoint_makes_no_old_driver_run(
    tmp_path: Path, compat: str, image: dict[str, str], expected: list[str]
) -> None:
    step = EngineStepRun.make(tmp_path, **OLD, compat=compat)
    status, log = step.run(**image)
    assert status == 3, log
    assert left(step) == ["result.json"]
    assert step.result["phase"] == "machine"
    assert all(words in step.result["reason"] for words in [*expected, *ADVICE])
    assert ("starts without NVIDIA's entrypoint" in log) == bool(image)


def test_an_entrypoint_that_does_not_run_is_no_failure(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path, tensorrt="10.13.3", planned=["10.9", "10.13"])
    status, log = step.run(TRITONSTACK_NVIDIA_ENTRYPOINT=str(tmp_path / "no-such-program"))
    assert status == 0, log
    assert step.result["cuda"]["entrypoint"] is None
    assert "does not run here" in log
    assert step.result["trtexec"]["tensorrt"] == "10.13.3", "any of several planned versions will do"


def test_another_release_of_the_image_is_refused_and_what_an_earlier_run_left_does_not_count(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path)
    step.output.mkdir()
    for name in LEFT:
        (step.output / name).touch()
    assert step.run(NVIDIA_TRITON_SERVER_VERSION="25.04")[0] == 3
    assert "this image is Triton 25.04" in step.result["reason"]
    assert left(step) == ["result.json"]


def test_a_job_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path)
    (tmp_path / "job.json").write_text('{"output": "output"}')
    status, log = step.run()
    assert status == 2
    assert "KeyError('inputs')" in log
    assert not step.output.exists()


@cases("job, trtexec, phase, expected")
def test_a_failure_has_phase_reason_and_log(
    tmp_path: Path, job: dict[str, Any], trtexec: str | None, phase: str, expected: str
) -> None:
    step = EngineStepRun.make(tmp_path, **job)
    if trtexec is not None:
        step.replace_trtexec(trtexec)
    status = step.run()[0]
    assert (step.result["phase"], step.result["status"]) == (phase, status)
    assert status == {"build": 4, "proof": 5, "time": 6}[phase]
    assert expected in step.result["reason"]
    assert step.result["log_tail"] or trtexec
    assert left(step) == ["result.json", "trtexec.log"]


def test_a_signal_ends_trtexec_and_leaves_nothing(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path).replace_trtexec('echo "started as $$"; exec sleep 600')
    with step.start() as child:
        assert child.stdout
        started = next(line for line in child.stdout if line.startswith("started as "))
        child.send_signal(signal.SIGTERM)
        rest = child.stdout.read()
    assert child.returncode == 128 + signal.SIGTERM
    assert "nothing is left" in rest
    assert left(step) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.split()[-1]), 0)


def test_a_timing_cache_is_taken_and_given_back_grown(tmp_path: Path) -> None:
    (tmp_path / "timing.cache").write_text("timed before\n")
    step = EngineStepRun.make(tmp_path)
    stand_in = step.programs.trtexec.with_name("stand-in-itself")
    shutil.copy(step.programs.trtexec, stand_in)
    grow = 'for one; do case $one in --timingCacheFile=*) echo "timed now" >> "${one#*=}";; esac; done'
    step.programs.trtexec.write_text(f'#!/bin/sh\n{grow}\n{shlex.quote(str(stand_in))} "$@" --noBuilderCache\n')
    grown = step.run()
    assert grown[0] == 0, grown[1]
    assert (step.output / "timing.cache").read_text().startswith("timed before\ntimed now\n")
    assert (tmp_path / "timing.cache").read_text() == "timed before\n", "the given cache stays as it is"


def old_nvidia_smi(step: EngineStepRun) -> None:
    """A driver whose nvidia-smi has no compute_cap."""
    step.programs.nvidia_smi.write_text(
        '#!/bin/sh\ncase "$*" in *compute_cap*) echo "not a valid field to query"; exit 2;; esac\n'
        'echo "NVIDIA A10G, 470.57.02"\n'
    )


def test_with_an_old_driver_the_compute_capability_is_trtexecs(tmp_path: Path) -> None:
    step = EngineStepRun.make(tmp_path, compat="CUDA Driver OK")
    old_nvidia_smi(step)
    assert step.run()[0] == 0
    assert step.result["gpu"] == {"name": "NVIDIA A10G", "driver": "470.57.02", "compute_capability": "8.6"}
    other = EngineStepRun.make(tmp_path, compute_capability="8.9", compat="CUDA Driver OK")
    old_nvidia_smi(other)
    assert other.run()[0] == 3
    assert "compute capability 8.9" in other.result["reason"]
    assert left(other) == ["result.json", "trtexec.log"]


def test_an_image_without_trtexec_is_refused_with_the_places(tmp_path: Path) -> None:
    if any(Path(place).exists() for place in engine_step.TRTEXEC_PLACES):
        pytest.skip("this machine has trtexec")
    step = EngineStepRun.make(tmp_path)
    status, _ = step.run(TRITONSTACK_TRTEXEC="", PATH="/nonexistent")
    assert status == 3
    assert "looked in /usr/src/tensorrt/bin/trtexec, /usr/src/bin/trtexec, PATH" in step.result["reason"]


@cases("banner, version")
def test_the_version_is_read_from_trtexecs_first_line(banner: str, version: str | None) -> None:
    assert version_in(banner) == version


def test_numbers_that_are_none_are_read_as_trtexec_writes_them(tmp_path: Path) -> None:
    exported = tmp_path / "exported.json"
    exported.write_text('[ { "name" : "y"\n  , "dimensions" : "2x2"\n  , "values" : [ nan, -nan, -inf, inf ]\n  }\n]')
    (read,) = read_outputs(exported, ["y"])
    assert read["shape"] == [2, 2]
    assert [str(one) for one in read["values"]] == ["nan", "nan", "-inf", "inf"]


def test_outputs_that_are_cut_off_are_an_error_of_the_proof(tmp_path: Path) -> None:
    (tmp_path / "exported.json").write_text('[ { "name" : "y"')
    with pytest.raises(StepError, match="cannot be read") as refused:
        read_outputs(tmp_path / "exported.json", ["y"])
    assert refused.value.status == 5


def test_the_file_is_python_3_8_of_the_standard_library_alone() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 8))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    vermin = Path(sys.executable).with_name("vermin")
    command = [str(vermin), "--no-tips", "--target=3.8-", "--violations", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def interpreter(version: str) -> str:
    """A Python of a version on this machine. Skips, with the reason, where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for found in [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]:
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip(f"no Python {version} on this machine")


@pytest.mark.parametrize(
    "version", ["3.8", *(pytest.param(f"3.{minor}", marks=pytest.mark.long) for minor in (9, 10, 11)), "3.12"]
)
def test_it_runs_with_the_python_of_every_triton_image(tmp_path: Path, version: str) -> None:
    step = EngineStepRun.make(tmp_path)
    status, log = step.run(interpreter(version))
    assert status == 0, log
    assert left(step) == LEFT


def test_a_failure_is_left_where_sagemaker_looks_for_it_in_no_more_than_a_kilobyte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine_step, "MESSAGE", tmp_path / "message")
    reason = "trtexec ends with status 1: " + "€" * 1000
    assert engine_step.fail(engine_step.BUILD, reason) == engine_step.BUILD
    left = (tmp_path / "message").read_bytes()
    assert left.decode().startswith("FAILED in phase build: trtexec ends with status 1: €")
    assert len(left) <= 1024
    assert reason in capsys.readouterr().out
