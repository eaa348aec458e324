"""What killed processes left is removed, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.tritonstack_local.fake_parts import wait_for
from tritonstack_local import leftovers
from tritonstack_local.leftovers import FOLDER, REGION, owner_mark, sweep_emulator, sweep_shared_memory


@pytest.fixture
def dead() -> str:
    """The mark of a process that has ended."""
    with subprocess.Popen(["sleep", "600"]) as process:
        mark = owner_mark(process.pid)
        process.kill()
    return mark


def of_another_start() -> str:
    """The mark of an earlier process with this one's id."""
    namespace, pid, start = owner_mark(os.getpid()).rstrip("-").split(".")
    return f"{namespace}.{pid}.{int(start) - 1}-"


def elsewhere(mark: str) -> str:
    """The same in another PID namespace."""
    namespace, _, rest = mark.partition(".")
    return f"{int(namespace) + 1}.{rest}"


def test_shared_memory_of_dead_owners_goes_and_no_other(
    tmp_path: Path, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "SHARED_MEMORY", tmp_path)
    left = {f"{REGION}{dead}region", f"{REGION}{of_another_start()}region"}
    stays = {
        f"{REGION}{owner_mark(os.getpid())}region",
        f"{REGION}{elsewhere(dead)}region",
        f"{REGION}12345-of-an-earlier-version",
        f"other-{dead}region",
        f"{REGION}notes",
    }
    for name in left | stays:
        (tmp_path / name).touch()
    sweep_shared_memory()
    assert {path.name for path in tmp_path.iterdir()} == stays


def test_the_folder_of_a_killed_emulator_goes_with_the_processes_that_it_started(tmp_path: Path, dead: str) -> None:
    left, stays = tmp_path / f"{FOLDER}{dead}x", tmp_path / f"{FOLDER}{owner_mark(os.getpid())}x"
    for folder in (left, stays, tmp_path / f"{FOLDER}old"):
        (folder / "codebuild").mkdir(parents=True)
    started = []
    for variables, folder in (
        ({"TMPDIR": str(left)}, tmp_path),  # a function
        ({"HOME": str(left / "codebuild")}, tmp_path),  # a build's command
        ({"TMPDIR": str(stays)}, tmp_path),  # of another emulator
        ({"TMPDIR": f"{left}-else", "PWD": str(left)}, left),  # a person's shell
    ):
        code = "import time; print(flush=True); time.sleep(600)"
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", code], env=variables, cwd=folder, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)
    try:
        sweep_emulator(tmp_path)
        wait_for(lambda: all(process.poll() is not None for process in started[:2]))
        assert [process.poll() for process in started[2:]] == [None, None]
        assert {path.name for path in tmp_path.iterdir()} == {stays.name, f"{FOLDER}old"}
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_a_mark_is_of_one_start_of_a_process() -> None:
    assert owner_mark(os.getpid()) == owner_mark(os.getpid())
    assert owner_mark(os.getpid()) != owner_mark(psutil.Process().ppid())
