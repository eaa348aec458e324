"""What a killed build leaves: neither folders nor a running export."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tritonstack.disk import partial_folder
from tritonstack.models.programs import REPOSITORY

HOLDER = """\
import pathlib, sys
from tritonstack.disk import partial_folder
with partial_folder(pathlib.Path(sys.argv[1]), name=".model") as made:
    print(made, flush=True)
    sys.stdin.read()
"""
EXPORT = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
RUNNER = """\
import pathlib, sys
from tritonstack.models.programs import run_script
folder = pathlib.Path(sys.argv[1])
say = lambda line: print(line.split(": ")[1], flush=True)
run_script(environment="exporters", arguments=["export.py"], folder=folder, what="export", report=say)
"""


def _start(code: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_folder_of_a_killed_build_is_removed_by_the_next_and_one_in_use_is_not(tmp_path: Path) -> None:
    with _start(HOLDER, tmp_path) as holder:
        left = Path(_first_line(holder))
        (left / "file").touch()
        with partial_folder(tmp_path, name="other"):
            assert left.is_dir()
        holder.kill()
    assert left.is_dir()
    with partial_folder(tmp_path, name="other") as made:
        assert [path.name for path in tmp_path.iterdir()] == [made.name]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death is Linux's")
def test_an_export_dies_with_the_build_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "export.py").write_text(EXPORT)
    with _start(RUNNER, tmp_path) as runner:
        export = psutil.Process(int(_first_line(runner)))
        os.kill(runner.pid, signal.SIGKILL)
    try:
        export.wait(timeout=20)
    finally:
        if export.is_running():
            export.kill()
