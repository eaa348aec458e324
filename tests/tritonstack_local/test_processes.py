"""Processes that outlive a command: found again, and ended for certain."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.local_keys import KEYS
from tests.tritonstack_local.fake_parts import record_of, wait_for
from tritonstack.errors import InputError
from tritonstack.paths import LocalPaths
from tritonstack_local.processes import (
    ProcessRecord,
    RunningRecord,
    choose_ports,
    exclusive,
    forget_record,
    log_tail,
    read_record,
    start_process,
    write_record,
)


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


@pytest.mark.parametrize("before", ["", "import signal; signal.signal(15, signal.SIG_IGN); "], ids=["ends", "ignores"])
def test_a_started_process_runs_until_it_is_stopped_or_killed(before: str, tmp_path: Path) -> None:
    record = run(f"{before}import time; print('ready', flush=True); time.sleep(600)", tmp_path)
    assert record.running
    assert os.getsid(record.pid) == record.pid
    for _ in range(2):
        record.stop(seconds=0.2 if before else 10)
        assert not record.running
    assert not psutil.pid_exists(record.pid)
    assert not ProcessRecord(pid=2**22 + 1, started=0.0, log="").running


def test_descendants_that_a_process_leaves_behind_are_ended(tmp_path: Path) -> None:
    child_of = "import subprocess, time; child = subprocess.Popen(['sleep', '600'])"
    record = run(f"{child_of}; print(child.pid, 'ready', flush=True); time.sleep(600)", tmp_path)
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


def test_a_stop_does_not_wait_for_an_ended_process_to_be_reaped(tmp_path: Path) -> None:
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


def test_the_tail_of_a_log_is_its_last_lines_and_a_missing_or_empty_one_is_reported(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "none") == "(no log)"
    (tmp_path / "log").touch()
    assert log_tail(tmp_path / "log") == "(empty)"
    (tmp_path / "log").write_text("".join(f"line {number}\n" for number in range(1000)))
    assert log_tail(tmp_path / "log", 2) == "line 998\nline 999"


def test_every_taken_port_is_named_with_its_option() -> None:
    with socket.socket() as one, socket.socket() as other:
        for taken in (one, other):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        first, second = one.getsockname()[1], other.getsockname()[1]
        with pytest.raises(InputError) as raised:
            choose_ports(emulator=first, runtime=second)
        assert [problem.field for problem in raised.value.problems] == [f"--port {first}", f"--runtime-port {second}"]
        for problem in raised.value.problems:
            assert "TRITONSTACK_PORT=0 and TRITONSTACK_RUNTIME_PORT=0" in problem.advice
            assert "in use" in problem.found


EMULATOR = ProcessRecord(pid=10, started=1.5, log="/logs/emulator.log")
RUNTIME = ProcessRecord(pid=11, started=2.5, log="/logs/runtime.log")
WHOLE = RunningRecord(emulator_port=4566, runtime_port=4567, keys=KEYS, emulator=EMULATOR, runtime=RUNTIME)


def test_a_record_is_read_as_it_was_written_until_it_is_removed(tmp_path: Path) -> None:
    paths = LocalPaths(tmp_path)
    for record in (WHOLE, RunningRecord(emulator_port=1, runtime_port=2, keys=KEYS, emulator=EMULATOR)):
        write_record(paths, record)
        assert read_record(paths) == record
        assert [*record.parts.values()][-1] == EMULATOR  # the runtime and its Tritons are stopped first
    assert [path.name for path in tmp_path.iterdir()] == ["running.json"]
    paths.record.with_suffix(".new").write_text('{"emulator_p')  # a half-written successor
    assert read_record(paths) == record
    forget_record(paths)
    assert read_record(paths) is None


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", "\x00\xff", '{"emulator_port": 1}', '{"emulator_port": "x", "runtime_port": 2}',
        '{"emulator_port": 1, "runtime_port": 2, "emulator": {"pid": 3}}',
    ],
)  # fmt: skip
def test_a_damaged_record_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    paths = LocalPaths(tmp_path)
    paths.record.write_text(content)
    with pytest.raises(InputError) as raised:
        read_record(paths)
    assert str(paths.record) in str(raised.value)
    assert "tritonstack local up" in str(raised.value)


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o777, 0o700), (0o1777, 0o1777), (None, 0o700)])
def test_the_state_folder_is_closed_to_other_users_unless_it_was_made_for_several(
    tmp_path: Path, before: int | None, after: int
) -> None:
    root = tmp_path / "home"
    if before is not None:
        root.mkdir()
        root.chmod(before)
    with exclusive(LocalPaths(root), report=print):
        assert stat.S_IMODE(root.stat().st_mode) == after
