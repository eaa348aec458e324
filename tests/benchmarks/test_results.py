"""Figures, bounds and verdicts, and the run of several benchmarks."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from benchmarks import __main__ as run
from benchmarks.results import Figure, machine, tell
from tritonstack.errors import WorkFailedError

MACHINE = {"cores": "2"}


@pytest.mark.parametrize(
    ("value", "bound", "at_least", "verdict"),
    [
        (1.0, 1.0, False, "PASS"),
        (1.1, 1.0, False, "FAIL"),
        (0.9, 1.0, False, "PASS"),
        (1.0, 1.0, True, "PASS"),
        (0.9, 1.0, True, "FAIL"),
        (9.0, None, True, ""),
        (float("nan"), 1.0, False, "FAIL"),
    ],
)
def test_a_bound_is_kept_or_missed(value: float, bound: float | None, at_least: bool, verdict: str) -> None:
    assert Figure(what="x", value=value, unit="s", bound=bound, at_least=at_least).verdict == verdict


def test_figures_are_printed_and_written_with_what_they_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [Figure(what="rate", value=12_345.6, unit="/s"), Figure(what="ratio", value=2, unit="times", bound=1.5)]
    assert tell("mine", figures, machine=MACHINE, versions={"triton": "2.51.0"}, folder=tmp_path) == 1
    printed = capsys.readouterr().out
    assert "12,346 /s" in printed
    assert "FAIL" in printed
    assert "cores 2, triton 2.51.0" in printed
    written = json.loads((tmp_path / "mine.json").read_text())
    assert written["stated"] == {"cores": "2", "triton": "2.51.0"}
    assert [figure["verdict"] for figure in written["figures"]] == ["", "FAIL"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_kept_bounds_end_with_zero(tmp_path: Path) -> None:
    assert tell("mine", [Figure(what="x", value=1, unit="s", bound=2)], machine=MACHINE, folder=tmp_path) == 0


def test_the_machine_and_the_commit_are_stated() -> None:
    assert {"processor", "cores", "memory", "python", "commit"} <= machine().keys()
    assert all(machine().values())


def benchmark(outcome: int | BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the only benchmark return or raise that."""

    def main() -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(run, "BENCHMARKS", {"one": ("module", "what")})
    monkeypatch.setattr("importlib.import_module", lambda _: types.SimpleNamespace(main=main))


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [(0, 0, "PASS"), (1, 1, "a bound is missed"), (WorkFailedError("no Triton"), 1, "could not run: no Triton")],
)
def test_a_missed_bound_and_a_benchmark_that_could_not_run_fail_the_run(
    outcome: int | Exception,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    benchmark(outcome, monkeypatch)
    assert run.main([]) == code
    assert said in " ".join(capsys.readouterr().out.split())


def test_ctrl_c_ends_all_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark(KeyboardInterrupt(), monkeypatch)
    assert run.main([]) == 130
    assert "one: interrupted" in capsys.readouterr().out


def test_how_long_a_long_benchmark_takes_is_said_beforehand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [(name, minutes), *_] = run.LONG.items()
    assert name in run.BENCHMARKS
    benchmark(0, monkeypatch)
    run.main([])
    assert "minutes" not in capsys.readouterr().out
    monkeypatch.setattr(run, "BENCHMARKS", {name: ("module", "what")})
    run.main([])
    assert capsys.readouterr().out.startswith(f"{name} takes about {minutes} minutes")


def test_a_name_that_is_no_benchmark_is_refused_before_any_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["packing", "speed"]) == 2
    assert "no benchmark is called speed" in capsys.readouterr().out


def test_every_benchmark_of_the_table_has_a_main() -> None:
    import importlib

    for module, _ in run.BENCHMARKS.values():
        assert callable(importlib.import_module(module).main)
