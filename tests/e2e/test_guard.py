"""What tests started ends with them, also where they have no time to end it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.e2e.project import REPOSITORY, Project
from tests.e2e.running import local_aws_of

pytestmark = [pytest.mark.e2e, pytest.mark.long]
STARTER = """
import pathlib, sys, time
from tests.e2e.project import Project
from tests.e2e.running import running
with running(Project(pathlib.Path(sys.argv[1]))):
    print("up", flush=True)
    time.sleep(600)
"""


def test_a_local_aws_is_taken_down_when_the_tests_that_started_it_are_killed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n"
        aws = local_aws_of(project)
        processes = [psutil.Process(record.pid) for record in (aws.emulator, aws.runtime)]
        starter.kill()
    _, left = psutil.wait_procs(processes, timeout=60)
    assert not left
