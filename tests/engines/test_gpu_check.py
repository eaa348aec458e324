"""``make gpu-check`` reports what it tried; here it tries the stand-ins, named so, and machines that lack things."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonstack.engines import engine_step, gpu_check
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins


def stand_ins(folder: Path, monkeypatch: pytest.MonkeyPatch, *, gpu: str = "L4") -> None:
    """The programs of a machine, found by the check's own variables."""
    machine = machine_with(tensorrt="10.4.0", gpu=gpu, compute_capability="8.9")
    for name, value in make_stand_ins(folder / "programs", machine).environment().items():
        monkeypatch.setenv(name, value)


def outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    work = folder / "work"
    work.mkdir()
    return {check.name: (check.outcome, check.detail) for check in gpu_check.checks(work)}


def test_every_precision_is_built_and_its_answer_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins(tmp_path, monkeypatch)
    monkeypatch.setitem(gpu_check.TOLERANCES, "fp32", -1.0)
    found = outcomes(tmp_path)
    assert [outcome for outcome, _ in found.values()] == [*["passed"] * 3, "failed", "passed", "passed"], found
    assert "(a stand-in)" in found["trtexec"][1]
    assert "differs" in found["engine, precision: fp32"][1]
    assert "largest difference" in found["engine, precision: graph, graph_precision: fp16"][1]


def test_a_precision_that_the_tensorrt_lacks_is_not_run_and_says_why(tmp_path: Path) -> None:
    gpu, fields = {"name": "L4"}, {"precision": "graph", "graph_precision": "fp16"}
    found = gpu_check.engine_check(tmp_path / "work", fields=fields, gpu=gpu, release="23.10")
    assert found.outcome == "not run"
    assert "--stronglyTyped" in found.detail


def test_a_gpu_whose_capability_is_not_the_catalogues_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins(tmp_path, monkeypatch, gpu="A10G")
    found = gpu_check.catalogue_check(engine_step.find_gpus()[0])
    assert (found.outcome, found.detail) == ("failed", "A10G of g5: compute capability 8.6, here 8.9")


def test_a_machine_without_a_gpu_runs_nothing_and_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("TRITONSTACK_NVIDIA_SMI", raising=False)
    assert gpu_check.main() == 2
    assert "nvidia-smi is not in this image" in " ".join(capsys.readouterr().out.split())


def test_a_machine_without_trtexec_says_so_and_goes_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins(tmp_path, monkeypatch)
    monkeypatch.delenv("TRITONSTACK_TRTEXEC")
    found = outcomes(tmp_path)
    assert found["trtexec"][0] == "not run"
    assert list(found)[-1] == "trtexec"
