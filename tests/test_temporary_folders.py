"""Temporary folders of processes that were killed: the next process removes them, and nothing else."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tritonstack.disk import temporary_folder
from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY

HOLDER = """
import sys
from tritonstack.disk import temporary_folder
with temporary_folder("held") as folder:
    (folder / "model.onnx").write_bytes(b"weights")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(below: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a temporary folder, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(below)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.fixture(autouse=True)
def of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's folder for temporary files is the test's."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_folder_of_a_killed_process_goes_with_the_next_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    (tmp_path / "another.partial-program").mkdir()
    killed, abandoned = holder(tmp_path)
    living, used = holder(tmp_path)
    try:
        killed.kill()
        killed.wait()
        assert (abandoned / "model.onnx").exists()
        with temporary_folder("another") as folder:
            assert folder.is_dir()
            assert not abandoned.exists()
            assert (used / "model.onnx").exists()
        assert not folder.exists()
        assert (tmp_path / "another.partial-program").exists()
    finally:
        living.communicate("")
        killed.communicate()
    assert not used.exists()


@pytest.mark.parametrize("what", ["others may write", "a link"])
def test_a_folder_that_another_user_could_have_prepared_is_not_used(tmp_path: Path, what: str) -> None:
    with temporary_folder("a") as folder:
        own = folder.parent
    assert not own.exists(), "the last one leaves nothing"
    if what == "a link":
        (tmp_path / "elsewhere").mkdir()
        own.symlink_to("elsewhere")
    else:
        own.mkdir()
        own.chmod(0o777)
    with pytest.raises(WorkFailedError, match="set TMPDIR"), temporary_folder("a"):
        pass


KEPT_SHORT = {"constructs_lib/handler_function.py", "scripts/documentation/terminal_picture.py"}
"""Hold a few kilobytes for milliseconds."""


def test_nothing_of_ours_makes_temporary_folders_that_a_kill_leaves_behind() -> None:
    made = set()
    for package in ("tritonstack", "tritonstack_local", "tritonstack_capacity", "constructs_lib", "stacks", "scripts"):
        for file in (REPOSITORY / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Attribute) and node.attr in ("TemporaryDirectory", "mkdtemp"):
                    made.add(file.relative_to(REPOSITORY).as_posix())
    # The emulator's, which its next start removes (leftovers.py), and what lies in it.
    inside = {"tritonstack_local/emulator/__main__.py", "tritonstack_local/emulator/processing/jobs.py"}
    assert made - KEPT_SHORT - inside == {"tritonstack/disk.py"}
