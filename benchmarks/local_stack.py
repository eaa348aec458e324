"""A local AWS of the benchmarks' own, with environment ``local`` deployed to it; the person's own is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from tritonstack.errors import WorkFailedError
from tritonstack.paths import HOME_VARIABLE, REPOSITORY
from tritonstack_local.aws import LocalAws, plain_environment, require_local_aws
from tritonstack_local.container.container import free_port
from tritonstack_local.library import child_variables, library_path
from tritonstack_local.processes import log_tail, start_process

SERVICE_SECONDS = 120.0
LOOK_SECONDS = 0.2


@contextmanager
def local_stack() -> Iterator[LocalAws]:
    """Start it on free ports, deploy, and stop it afterwards. Its state is kept until the next start.

    Raises:
        subprocess.CalledProcessError: a step failed; its output has the reason.
    """
    folder = REPOSITORY / ".local" / "bench-stack"
    shutil.rmtree(folder, ignore_errors=True)
    with patch.dict(os.environ, {HOME_VARIABLE: str(folder)}):
        try:
            tritonstack("local", "up", "--port", "0", "--runtime-port", "0")
            tritonstack("local", "deploy")
            yield require_local_aws()
        finally:
            tritonstack("local", "down")


@contextmanager
def runtime_without_iam(aws: LocalAws, endpoint: str) -> Iterator[LocalAws]:
    """A second runtime over the same emulator that checks no caller; ``endpoint`` is in service there as well.

    Raises WorkFailedError: it ended, or the endpoint is not in service in time; with the last lines of its log.
    """
    folder, port = REPOSITORY / ".local" / "bench-stack" / "runtime-without-iam", free_port()
    folder.mkdir(parents=True)
    process = start_process(
        [
            sys.executable, "-m", "tritonstack_local.runtime",
            "--port", str(port), "--emulator", aws.emulator_url, "--state", str(folder),
        ],
        environment={
            **plain_environment(), **child_variables(), "PYTHONPATH": str(library_path()), "TRITONSTACK_IAM": "off",
        },
        folder=folder,
        log=folder / "runtime.log",
    )  # fmt: skip
    other = replace(aws, runtime_port=port, runtime=process)
    try:
        deadline = time.monotonic() + SERVICE_SECONDS
        while not _serves(other, endpoint):
            if not process.running or time.monotonic() > deadline:
                raise WorkFailedError(f"{endpoint} is not in service there:\n{log_tail(folder / 'runtime.log', 20)}")
            time.sleep(LOOK_SECONDS)
        yield other
    finally:
        process.stop()


def _serves(aws: LocalAws, endpoint: str) -> bool:
    try:
        found = aws.runtime_status()["endpoints"]
    except WorkFailedError:
        return False
    return any(one["name"] == endpoint and any(fleet["serving"] for fleet in one["fleets"]) for one in found)


def tritonstack(*arguments: str) -> None:
    """Run the command line as a person does."""
    subprocess.run([sys.executable, "-m", "tritonstack", *arguments], cwd=REPOSITORY, check=True)
