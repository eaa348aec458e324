"""Processes that outlive a command: found again, and ended for certain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_local.fake_parts import kill, record_of, wait_for
from tritonstack.errors import WorkFailedError
from tritonstack_local.processes import ProcessRecord, log_tail, start_process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not to be touched."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def run(code: str, folder: Path) -> ProcessRecord:
    """Start a piece of Python; wait until it prints ``ready``."""
    log = folder / "logs" / "process.log"
    record = start_process(
        [sys.executable, "-S", "-c", code], environment={"PATH": os.environ["PATH"]}, folder=folder, log=log
    )
    wait_for(lambda: b"ready" in log.read_bytes())
    return record


def test_a_started_process_runs_until_it_is_stopped(tmp_path: Path) -> None:
    record = run("import time; print('ready', flush=True); time.sleep(600)", tmp_path)
    assert record.running
    record.stop()
    assert not record.running
    assert not psutil.pid_exists(record.pid)


def test_a_started_process_has_a_session_of_its_own_and_only_the_given_variables(tmp_path: Path) -> None:
    record = run("import os, time; print(sorted(os.environ), 'ready', flush=True); time.sleep(600)", tmp_path)
    try:
        assert os.getsid(record.pid) == record.pid
        said = Path(record.log).read_text()
        assert "PATH" in said
        assert "HOME" not in said
    finally:
        record.stop()


def test_output_and_errors_are_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "process.log"
    log.parent.mkdir()
    log.write_text("before\n")
    record = run("import sys; print('out'); sys.stdout.flush(); print('ready', file=sys.stderr)", tmp_path)
    wait_for(lambda: not record.running)
    assert log.read_text().splitlines() == ["before", "out", "ready"]


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
    record = run(code, tmp_path)
    record.stop(seconds=0.2)
    assert not record.running


def test_descendants_that_a_process_leaves_behind_are_ended(tmp_path: Path) -> None:
    code = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "print(child.pid, 'ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    record = run(code, tmp_path)
    child = psutil.Process(int(Path(record.log).read_text().split()[0]))
    assert child.is_running()
    record.stop()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_later_process_with_the_same_id_is_neither_ours_nor_touched(sleeper: subprocess.Popen[bytes]) -> None:
    record = record_of(sleeper.pid)
    assert record.running
    stale = replace(record, started=record.started - 100)
    assert not stale.running
    stale.stop(seconds=0.1)
    assert sleeper.poll() is None


@pytest.mark.parametrize("pid", [2**22 + 1, -5])
def test_an_id_that_no_process_can_have_is_not_running(pid: int) -> None:
    record = ProcessRecord(pid=pid, started=0.0, log="")
    assert not record.running
    record.stop(seconds=0.1)


def test_an_unreaped_process_counts_as_ended() -> None:
    child = subprocess.Popen(["sleep", "600"])
    record = record_of(child.pid)
    os.kill(child.pid, 9)
    wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert not record.running
    child.wait()


def test_a_stop_does_not_wait_for_someone_to_reap_what_has_ended(tmp_path: Path) -> None:
    """In a container without an init the processes of an earlier command stay zombies for ever."""
    code = (
        "import os, time\n"
        "if (child := os.fork()) == 0:\n"
        "    time.sleep(600)\n"
        "print(child, 'ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = run(code, tmp_path)
    child = record_of(int(Path(parent.log).read_text().split()[0]))
    try:
        child.stop(seconds=600)  # pytest-timeout ends this test, should it wait so long
        assert not child.running
        assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
    finally:
        parent.stop()


def test_stopping_twice_is_harmless(tmp_path: Path) -> None:
    record = run("import time; print('ready', flush=True); time.sleep(600)", tmp_path)
    kill(record)
    record.stop()
    record.stop()
    assert not record.running


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkFailedError, match="/no/such/program cannot be run: No such file"):
        start_process(["/no/such/program"], environment={}, folder=tmp_path, log=tmp_path / "log")


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    assert log_tail(log, 2) == "line 998\nline 999"


def test_a_missing_log_and_an_empty_one_are_reported(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "none") == "(no log)"
    (tmp_path / "empty").touch()
    assert log_tail(tmp_path / "empty") == "(empty)"


@given(content=st.binary(max_size=3000), lines=st.integers(1, 5))
def test_the_tail_of_any_bytes_has_at_most_so_many_lines(
    content: bytes, lines: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("tail") / "log"
    log.write_bytes(content)
    assert len(log_tail(log, lines).splitlines()) <= lines
