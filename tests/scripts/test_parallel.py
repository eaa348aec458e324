"""How `make test` spreads tests over processes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.e2e.project import REPOSITORY

FILE = """
import os
import pytest

@pytest.mark.parametrize("number", range(8))
def test_one(number, record_property):
    with open("workers.txt", "a") as seen:
        print(__name__, number, os.environ["PYTEST_XDIST_WORKER"], file=seen)
"""


def test_the_tests_of_a_file_run_in_one_process_and_in_their_order(tmp_path: Path) -> None:
    """pytest-xdist's own groups (``--dist loadgroup``) come to nothing, silently, with this pytest: its issue 1386."""
    [options] = re.findall(r"^PARALLEL := (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    names = [f"test_{letter}" for letter in "abcd"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(FILE)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *shlex.split(options)]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split() for line in (tmp_path / "workers.txt").read_text().splitlines()]
    for name in names:
        assert [int(number) for module, number, _ in rows if module == name] == list(range(8))
        assert len({worker for module, _, worker in rows if module == name}) == 1, f"{name} is in several processes"
    assert len({worker for _, _, worker in rows}) == 2
