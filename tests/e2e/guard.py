"""A process that takes a local AWS down when the tests that started it are gone, however they ended.

A test run that is interrupted may have no time for it: pytest-xdist kills its processes after ten seconds, and a local
AWS with several Tritons takes longer to stop.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.project import PROGRAM, REPOSITORY, Project


@contextmanager
def guarded(project: Project) -> Iterator[None]:
    """Whatever ends this process within the block, ``tritonstack local down`` follows in the project's folder.

    The guard, in a session of its own that no Ctrl-C reaches, waits for the end of a pipe that only this process holds.
    """
    command = [sys.executable, "-m", "tests.e2e.guard", str(project.root)]
    guard = subprocess.Popen(
        command, cwd=REPOSITORY, env=project.variables, stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    except BaseException:
        guard.communicate()
        raise
    guard.communicate(b"done")


def main(root: str) -> None:
    """Wait for the end of the input. Where it says nothing, its other end was lost."""
    if not sys.stdin.buffer.read():
        subprocess.run([str(PROGRAM), "local", "down"], cwd=root, check=False, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1])
