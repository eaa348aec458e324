"""A local AWS of the benchmarks' own, with environment ``local`` deployed to it; the person's own is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from tritonstack.paths import HOME_VARIABLE, REPOSITORY
from tritonstack_local.aws import LocalAws, require_local_aws


@contextmanager
def local_stack() -> Iterator[LocalAws]:
    """Start it on free ports, deploy, and stop it afterwards. Its state is removed before, not after, to be looked at.

    Raises:
        subprocess.CalledProcessError: a step failed; it has said why.
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


def tritonstack(*arguments: str) -> None:
    """Run the command line as a person does."""
    subprocess.run([sys.executable, "-m", "tritonstack", *arguments], cwd=REPOSITORY, check=True)
