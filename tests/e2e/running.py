"""A local AWS for the time of a block, of which nothing is left after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.e2e.guard import guarded
from tests.e2e.project import Project
from tritonstack.local.aws import LocalAws
from tritonstack.local.processes import ProcessRecord

END_SECONDS = 20.0
"""What has ended is gone once its parent has asked for it."""


@contextmanager
def running(project: Project) -> Iterator[LocalAws]:
    """A local AWS on free ports; at the end it is stopped, and none of its processes may be left."""
    with guarded(project):
        project.run("up", "--port", "0", "--runtime-port", "0")
        aws = local_aws_of(project)
        roots = [psutil.Process(record.pid) for record in (aws.emulator, aws.runtime)]
        family = list(roots)
        try:
            yield aws
            family += [child for root in roots for child in root.children(recursive=True)]
        finally:
            project.run("down")
    _, left = psutil.wait_procs(family, timeout=END_SECONDS)
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


def local_aws_of(project: Project) -> LocalAws:
    """The local AWS that the project runs."""
    record = json.loads((project.root / ".local" / "running.json").read_text())
    return LocalAws(
        emulator_port=record["emulator_port"],
        runtime_port=record["runtime_port"],
        emulator=ProcessRecord(**record["emulator"]),
        runtime=ProcessRecord(**record["runtime"]),
    )
