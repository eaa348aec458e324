"""How `make test` spreads tests over processes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.project import REPOSITORY

FILE = """
import os
import pytest

@pytest.mark.parametrize("number", range(8))
def test_one(number, record_property):
    with open("workers.txt", "a") as seen:
        print(__name__, number, os.environ["PYTEST_XDIST_WORKER"], file=seen)
"""


@pytest.mark.long
def test_files_and_folders_that_share_a_deployment_run_in_one_process_and_in_their_order(tmp_path: Path) -> None:
    """pytest-xdist's own groups (``--dist loadgroup``) come to nothing, silently, with this pytest: its issue 1386."""
    [options] = re.findall(r"^PARALLEL := (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    files = ["e2e/local/test_a", "e2e/local/test_b", "other/test_c", "other/test_d", "other/test_e"]
    for name in files:
        file = tmp_path / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FILE)
    shutil.copy(REPOSITORY / "tests/conftest.py", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *shlex.split(options)]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split() for line in (tmp_path / "workers.txt").read_text().splitlines()]
    worker_of = {}
    for name in files:
        mine = [(int(number), worker) for module, number, worker in rows if module == Path(name).name]
        assert [number for number, _ in mine] == list(range(8))
        [worker_of[name]] = {worker for _, worker in mine}
    assert worker_of["e2e/local/test_a"] == worker_of["e2e/local/test_b"]
    assert len(set(worker_of.values())) == 2
