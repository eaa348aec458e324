"""perf_analyzer: its options, its export, and the message where it is not installed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.tritonstack_capacity.bench.test_settings import SETTINGS
from tritonstack.errors import InputError, WorkFailedError
from tritonstack_capacity.bench.load import Budget, Load, Rate, Users
from tritonstack_capacity.bench.perf_analyzer import (
    VARIABLE,
    Analyser,
    arguments,
    find_program,
    kserve_data,
)
from tritonstack_capacity.bench.subject import Payload

SECOND = 1_000_000_000


def export(*, requests: int = 300, windows: int = 3) -> str:
    """As version 2.51.0 writes it: calls of 5 ms, 100 a second, one of which failed."""
    calls: list[dict[str, Any]] = [
        {
            "timestamp": number * SECOND // 100,
            "request_inputs": {"x": [1.0]},
            "response_timestamps": [number * SECOND // 100 + 5_000_000],
            "response_outputs": [{}],
            **({"success": False} if number == 7 else {}),
        }
        for number in range(requests)
    ]
    boundaries = [number * SECOND for number in range(windows + 1)] if windows else []
    experiment = {"experiment": {"mode": "concurrency", "value": 2}, "requests": calls, "window_boundaries": boundaries}
    return json.dumps({"experiments": [experiment], "version": "2.51.0", "service_kind": "triton", "endpoint": ""})


def payload(**arrays: Any) -> Payload:
    return Payload(inputs=arrays, outputs=None, source="the test")


def analyser(*, calls: int = 10_000, seconds: float = 60.0) -> Analyser:
    budget = Budget(calls=calls, seconds=seconds, now=time.monotonic)
    return Analyser(SETTINGS, ["-m", "digits-onnx"], data='{"data": []}', budget=budget)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Users(count=4), ["--concurrency-range", "4:4"]),
        (Rate(per_second=2.5), ["--async", "--request-rate-range", "2.5:2.5", "--request-distribution", "poisson"]),
        (
            Rate(per_second=50, arrivals="even"),
            ["--async", "--request-rate-range", "50:50", "--request-distribution", "constant"],
        ),
    ],
)
def test_it_gets_the_load_as_its_own_options(load: Load, expected: list[str]) -> None:
    options = arguments(load, SETTINGS, data=Path("in"), export=Path("out"))

    place = options.index(expected[0])
    assert options[place : place + len(expected)] == expected
    assert options[options.index("--measurement-interval") + 1] == "5000"


BATCHES = {"model": {"max_batch_size": 8}}


def test_shapes_are_without_the_batch_dimension_where_the_model_batches() -> None:
    given = payload(x=np.zeros((1, 2, 3), dtype=np.float32))

    assert json.loads(kserve_data(given, BATCHES))["data"][0]["x"]["shape"] == [2, 3]
    assert json.loads(kserve_data(given, None))["data"][0]["x"]["shape"] == [1, 2, 3]


@pytest.mark.parametrize("array", [np.zeros((2, 3)), np.array([[b"text"]], dtype=object)], ids=["a batch", "bytes"])
def test_what_it_cannot_send_is_refused(array: Any) -> None:
    with pytest.raises(InputError):
        kserve_data(payload(x=array), BATCHES)


def test_where_it_is_not_installed_the_way_to_get_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tritonstack_capacity.bench.perf_analyzer.machine_folder", lambda: tmp_path)

    with pytest.raises(WorkFailedError, match=r"tritonstack setup perf-analyzer;"):
        find_program()

    program = tmp_path / "perf"
    program.touch()
    monkeypatch.setenv(VARIABLE, str(program))
    assert find_program() == program


PROGRAM = """#!{python}
import pathlib, sys, time
told = sys.argv[1:]
calls = pathlib.Path({calls!r})
calls.write_text(calls.read_text() + " ".join(told) + "\\n" if calls.exists() else " ".join(told) + "\\n")
{does}
"""
"""Stands in for perf_analyzer: keeps what it is told, and does what the test says."""
EXPORTS = "pathlib.Path(told[told.index('--profile-export-file') + 1]).write_text({export!r})"
DEFAULTS = (
    "told[told.index('--stability-percentage') + 1] == '1e+06' or sys.exit('Failed to obtain stable measurement.')"
)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Creates the program that is found in place of perf_analyzer; returns the file of its arguments."""

    def made(does: str) -> Path:
        file, calls = tmp_path / "perf_analyzer", tmp_path / "calls"
        file.write_text(PROGRAM.format(python=sys.executable, calls=str(calls), does=does))
        file.chmod(0o755)
        monkeypatch.setenv(VARIABLE, str(file))
        return calls

    return made


def test_measurements_that_never_agree_are_taken_as_they_come(program: Callable[[str], Path]) -> None:
    calls = program(DEFAULTS + "\n" + EXPORTS.format(export=export()))

    found = asyncio.run(analyser().level(Users(count=2)))

    assert found is not None
    assert [round(one.per_minute) for one in found.rounds] == [5940, 6000, 6000]
    assert found.all.percentiles_ms["95"] == pytest.approx(5.0)
    assert (found.all.answered, found.all.failed) == (299, 1)
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("sys.exit('error: no such model')", "error: no such model"),
        ("print('Thread [1] had error: a'); sys.exit('  model.py(14): execute')", "Thread .1. had error: a"),
    ],
    ids=["its last line", "an error before a trace"],
)
def test_its_output_is_reported_where_it_measured_nothing(
    does: str, message: str, program: Callable[[str], Path]
) -> None:
    program(does)

    with pytest.raises(WorkFailedError, match=f"perf_analyzer, 2 users: {message}$"):
        asyncio.run(analyser().level(Users(count=2)))


def test_its_calls_count_towards_the_budget(program: Callable[[str], Path]) -> None:
    program(EXPORTS.format(export=export()))
    one = analyser(calls=300)

    assert asyncio.run(one.level(Users(count=1))) is not None
    assert asyncio.run(one.level(Users(count=2))) is None


def test_ctrl_c_leaves_no_perf_analyzer_behind(program: Callable[[str], Path], tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    program(f"import os; pathlib.Path({str(started)!r}).write_text(str(os.getpid())); time.sleep(60)")

    async def work() -> int:
        task = asyncio.create_task(analyser().level(Users(count=1)))
        pid = int(await asyncio.to_thread(started.read_text))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return pid

    assert not psutil.pid_exists(asyncio.run(work()))
