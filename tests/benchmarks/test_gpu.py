"""BERT large on a GPU: refused where there is none, and its code on the CPU with a tiny BERT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import measurements
from benchmarks.scenarios.gpu import DEVICE_VARIABLE, bert_large_scenario, files_on
from benchmarks.scenarios.measuring import Measured, Repeats, measure
from benchmarks.scenarios.served import Way
from tests.benchmarks.measured import measured
from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY
from tritonstack_local.container.repository import TritonFiles

ENVIRONMENTS = REPOSITORY / ".envs"
ON_CPU = files_on("cpu", environments=ENVIRONMENTS, torch="torch")


def program(path: Path, output: str) -> Path:
    """A program that prints ``output``, whatever its arguments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose nvidia-smi finds a T4; environments and docs of its own; nothing may be measured."""
    monkeypatch.setenv("TRITONSTACK_NVIDIA_SMI", str(program(tmp_path / "nvidia-smi", "Tesla T4, 550.54, 7.5")))
    monkeypatch.setattr(measurements, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.setattr(measurements, "measure", lambda *_, **__: pytest.fail("something was measured"))
    monkeypatch.setattr(measurements, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(TritonFiles, "check", lambda _self: None)
    return tmp_path


def test_without_a_gpu_it_is_refused_in_one_message(
    gpu: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TRITONSTACK_NVIDIA_SMI")
    monkeypatch.setenv("PATH", str(gpu / "nothing"))
    assert measurements.command(["--gpu", "--write"]) == 2
    printed = capsys.readouterr()
    assert "nvidia-smi is not" in printed.err
    assert "allowed: a machine with an NVIDIA GPU and its driver" in printed.err
    assert printed.out == ""


def test_on_a_gpu_the_server_computes_there_and_the_page_has_a_place_of_its_own_for_it(
    gpu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(gpu / "envs" / "torch-cuda" / "bin" / "python", "True")
    (gpu / "envs" / "backends").mkdir()
    (gpu / "envs" / "backends" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    before, file = measurements.PAGE.read_text(), gpu / "measurements.md"
    file.write_text(before)
    ways: list[Way] = []

    def fake(given: Sequence[Way], **_: object) -> list[Measured]:
        ways.extend(given)
        return measured(bert_large_scenario(ON_CPU))

    monkeypatch.setattr(measurements, "PAGE", file)
    monkeypatch.setattr(measurements, "measure", fake)
    assert measurements.command(["--gpu", "--write"]) == 0
    environments = [way.files.process_environment() for way in ways if way.files is not None]
    assert [one[DEVICE_VARIABLE] for one in environments] == ["cuda"] * 4
    site = gpu / "envs" / "torch-cuda" / "lib" / "python3.11" / "site-packages"
    assert {one["TRITONSTACK_TORCH_SITE"] for one in environments} == {str(site)}
    written = file.read_text()
    begin, end = written.index("<!-- measured on a GPU -->"), written.index("<!-- /measured on a GPU -->")
    assert ", Tesla T4, driver 550.54; " in written[begin:end]
    assert before.partition("<!-- measured on a GPU -->")[0] == written[:begin]


@pytest.mark.long
@pytest.mark.timeout(900)  # its archive is built where it is not there
def test_a_tiny_bert_is_measured_on_the_cpu_by_the_same_code(tmp_path: Path) -> None:
    """A device that PyTorch lacks shows that the stand-in uses the given device."""
    scenario = bert_large_scenario(ON_CPU, size="tiny")
    repeats = Repeats(turns=1, users=4)
    assert [way.name for way in scenario.ways] == ["plain", "dynamic batching", "two instances", "both"]
    found = measure(scenario.ways[:2], repeats=repeats, folder=tmp_path)
    batches = {one.way: one.load.mean_batch for one in found if one.load is not None}
    assert batches["plain"] == pytest.approx(1.0)
    assert (batches["dynamic batching"] or 0) > 1.5
    elsewhere = replace(scenario.ways[0], files=replace(ON_CPU, device="nowhere"))
    with pytest.raises(WorkFailedError, match=r"PyTorch cannot load 'model\.pt': .*nowhere"):
        measure([elsewhere], repeats=repeats, folder=tmp_path)
