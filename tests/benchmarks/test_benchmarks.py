"""What each benchmark makes of its measurements, without the hours of measuring; bounds; the run of all."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from benchmarks import __main__ as run
from benchmarks import invoke_overhead, proxy_overhead
from benchmarks.measuring import Figure, Loads
from benchmarks.synthesis import synthesise
from tritonstack.errors import WorkFailedError


def test_overheads_are_the_medians_of_each_rounds_difference_and_ratios() -> None:
    direct = Loads(ms=[1.0, 4.0, 1.0], rates=[1000, 100, 1000])
    through = Loads(ms=[1.2, 5.0, 9.0], rates=[800, 90, 100])
    unchecked = Loads(ms=[1.1, 4.9, 9.2], rates=[800, 100, 100])
    runtime, proxy = (
        {one.bound: one.value for one in figures if one.bound is not None}
        for figures in (
            invoke_overhead.figures(direct, through, unchecked),
            proxy_overhead.figures(direct, through),
        )
    )
    assert runtime == {
        invoke_overhead.ADDED_MS: pytest.approx(1.0),
        invoke_overhead.CHECK_MS: pytest.approx(0.1),
        invoke_overhead.KEPT: pytest.approx(0.8),
    }
    assert proxy == {proxy_overhead.LATENCY_RATIO: pytest.approx(1.25), proxy_overhead.KEPT: pytest.approx(0.8)}


@pytest.mark.parametrize(
    ("app", "message"), [("raise SystemExit('no stack today')", "no stack today"), ("", "manifest.json")]
)
def test_an_app_that_fails_or_synthesises_nothing_is_no_measurement(app: str, message: str, tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(app)
    with pytest.raises(WorkFailedError, match=message):
        synthesise(script, tmp_path / "out")


@pytest.mark.parametrize(
    ("value", "bound", "at_least", "verdict"),
    [
        (1.0, 1.0, False, "PASS"),
        (1.1, 1.0, False, "FAIL"),
        (1.0, 1.0, True, "PASS"),
        (0.9, 1.0, True, "FAIL"),
        (9.0, None, True, ""),
        (float("nan"), 1.0, False, "FAIL"),
    ],
)
def test_a_bound_is_kept_or_missed(value: float, bound: float | None, at_least: bool, verdict: str) -> None:
    assert Figure("x", value, "s", bound, at_least=at_least).verdict == verdict


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (0, 0, "PASS"),
        (1, 1, "a bound is missed"),
        (WorkFailedError("no Triton"), 1, "could not run: no Triton"),
        (KeyboardInterrupt(), 130, "one: interrupted"),
    ],
)
def test_a_missed_bound_and_a_benchmark_that_could_not_run_fail_the_run(
    outcome: int | BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(run, "BENCHMARKS", {"one": "what"})
    monkeypatch.setattr("importlib.import_module", lambda _: types.SimpleNamespace(main=main))
    assert run.main([]) == code
    assert message in " ".join(capsys.readouterr().out.split())
