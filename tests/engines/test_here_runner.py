"""The engine step as a process of this machine, with stand-ins in the place of its programs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.engines.tiny_engine import TinyProject
from tritonstack.engines.export_step import STEP
from tritonstack.engines.gpu_step import EngineFailedError, EngineStoppedError
from tritonstack.engines.runners import HereRunner


def write_step(folder: Path, text: str) -> Path:
    """A job whose step is this text."""
    folder.mkdir()
    (folder / "job.json").write_text('{"output": "?"}')
    (folder / "engine_step.py").write_text(text)
    return folder


def run(runner: HereRunner, job: Path, output: Path) -> list[str]:
    """Run a job; the lines that were reported."""
    said: list[str] = []
    runner.run(name="run", job=job, output=output, report=said.append)
    return said


def test_a_plan_is_built_with_the_machines_programs(tmp_path: Path) -> None:
    project = TinyProject.make(tmp_path / "project")
    (job,) = project.export_step(tmp_path / "work").jobs
    assert (job.folder / "engine_step.py").read_bytes() == STEP.read_bytes()
    said = run(HereRunner(stop=threading.Event(), variables=project.programs.environment()), job.folder, tmp_path / "o")
    assert (tmp_path / "o/model.plan").is_file()
    assert any("TensorRT 10.4.0" in line for line in said)


def test_another_machine_than_planned_is_the_reason_of_the_failure(tmp_path: Path) -> None:
    project = TinyProject.make(tmp_path / "project", gpu="T4", capability="7.5")
    (job,) = project.export_step(tmp_path / "work").jobs
    with pytest.raises(EngineFailedError, match=r"planned for A10G .* T4 .*\(phase machine of the engine step\)"):
        run(HereRunner(stop=threading.Event(), variables=project.programs.environment()), job.folder, tmp_path / "o")


def test_a_step_that_dies_without_a_word_shows_its_last_lines(tmp_path: Path) -> None:
    job = write_step(tmp_path / "job", "print('half way', flush=True); raise SystemExit(9)")
    with pytest.raises(EngineFailedError) as failed:
        run(HereRunner(stop=threading.Event()), job, tmp_path / "o")
    assert failed.value.reason == "the engine step ended with exit code 9"
    assert failed.value.log_tail == ("half way",)


def test_a_step_that_is_given_up_is_ended(tmp_path: Path) -> None:
    job = write_step(tmp_path / "job", "import time\nprint('begun', flush=True)\ntime.sleep(600)")
    stop = threading.Event()
    with pytest.raises(EngineStoppedError):
        HereRunner(stop=stop).run(name="run", job=job, output=tmp_path / "o", report=lambda _line: stop.set())
