"""A disk that is full, for real: a small tmpfs of the test's own namespace. ENOSPC, the message, and what is left."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.folders import write_double
from tritonstack.archives.programs import run_script
from tritonstack.cli import root as cli
from tritonstack.disk import disk_full, exchange, partial_folder
from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY
from tritonstack.untrusted.unpacking import UnpackLimits, UnsafeArchiveError, unpack

CAN_MOUNT = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]


@pytest.fixture(scope="module")
def small_disks() -> None:
    """Skip, with the reason, where no namespace with a mount of its own may be made."""
    try:
        result = subprocess.run(CAN_MOUNT, capture_output=True, text=True, timeout=20, check=False)
    except OSError as error:
        pytest.skip(f"no small disk can be mounted here: {error}")
    if result.returncode:
        pytest.skip(f"no small disk can be mounted here: {result.stderr.strip()}")


def on_a_disk(
    disk: Path, size: str, *arguments: str, before: str = "true", variables: dict[str, str] | None = None
) -> tuple[int, str, list[str]]:
    """Run ``tritonstack`` with ``disk`` as a tmpfs of ``size``: exit code, what it said, and the files that are left.

    ``before``: shell lines that run on the disk first.
    """
    script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && cd "$2" && eval "$3" && shift 3\n'
    script += '"$@" >&2; code=$?; find . -type f ! -name "*.lock" ! -name lock | sort; exit $code'
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", size, str(disk), before,
         sys.executable, "-m", "tritonstack", *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(variables or {})},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return result.returncode, result.stderr, result.stdout.split()


def check_message(said: str, named: Path) -> None:
    """Check that the message names the file and what to do, without a traceback."""
    assert f"{named}" in said
    assert os.strerror(errno.ENOSPC) in said
    assert "then the same command again" in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("small_disks")
@pytest.mark.parametrize("size", ["8k", "256k"])
def test_pack_names_the_archive_leaves_nothing_and_keeps_an_earlier_one(size: str, tmp_path: Path) -> None:
    folder, disk = tmp_path / "repository", tmp_path / "disk"
    (folder / "model" / "1").mkdir(parents=True)
    (folder / "model" / "1" / "weights").write_bytes(random.Random(0).randbytes(400_000))
    disk.mkdir()
    target = disk / "model.tar.gz"
    code, said, left = on_a_disk(disk, size, "pack", str(folder), str(target), before="echo earlier > model.tar.gz")
    assert (code, left) == (1, ["./model.tar.gz"])
    check_message(said, target)
    code, said, left = on_a_disk(disk, size, "pack", str(folder), str(target))
    assert (code, left) == (1, [])
    assert on_a_disk(disk, "1m", "pack", str(folder), str(target))[0] == 0


@pytest.mark.usefixtures("small_disks")
@pytest.mark.parametrize("size", [pytest.param("16k", marks=pytest.mark.long), "200k"])
def test_build_names_its_folder_leaves_nothing_and_keeps_earlier_archives(size: str, tmp_path: Path) -> None:
    model, disk = write_double(tmp_path), tmp_path / "disk"
    (tmp_path / "environments").mkdir()
    (model / "double" / "1" / "weights").write_bytes(random.Random(0).randbytes(400_000))
    disk.mkdir()
    variables = {"TRITONSTACK_HOME": str(disk), "TRITONSTACK_PROJECT": str(tmp_path)}
    earlier = "mkdir archives; echo earlier > archives/other.tar.gz"
    code, said, left = on_a_disk(disk, size, "build", "double", before=earlier, variables=variables)
    assert (code, left) == (1, ["./archives/other.tar.gz"]), said
    check_message(said, disk)
    code, said, left = on_a_disk(disk, "8m", "build", "double", before=earlier, variables=variables)
    assert code == 0, said
    assert len([name for name in left if name.endswith(".tar.gz")]) == 2


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_unpacked_archive_is_not_called_damaged_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the store of the local AWS's runtime, and `prepare`, unpack: the fault is put in where a file is written."""
    (tmp_path / "x").write_bytes(b"")
    monkeypatch.setattr("tritonstack.untrusted.unpacking.open_gzip", full)
    with pytest.raises(OSError, match="No space left") as caught:
        unpack(tmp_path / "x", tmp_path / "folder", limits=UnpackLimits())
    assert not isinstance(caught.value, UnsafeArchiveError)
    assert not (tmp_path / "folder").exists()


def test_an_export_script_that_finds_no_space_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tritonstack.archives.programs.environment_python", lambda _name: Path(sys.executable))
    code = "import errno, os; raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))"

    def export() -> None:
        run_script(environment="x", arguments=["-c", code], folder=tmp_path, what="export of x", report=lambda _: None)

    with pytest.raises(WorkFailedError) as caught:
        export()
    assert disk_full(caught.value) is not None
    monkeypatch.setattr(cli.root, "main", lambda **_: export())
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    said = capsys.readouterr().err
    assert "then the same command again" in said


@pytest.mark.timeout(20)
def test_a_partial_folder_may_be_made_in_another_of_the_same_process(tmp_path: Path) -> None:
    with partial_folder(tmp_path, name="outer") as outer:
        with partial_folder(outer, name="inner") as inner:
            assert inner.parent == outer
        assert outer.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_step", [True, False])
def test_two_folders_are_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_step: bool) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    if not has_step:
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    exchange(tmp_path / "new", tmp_path / "old")
    assert {path.name: (path / "file").read_text() for path in tmp_path.iterdir()} == {"old": "new", "new": "old"}


def test_an_exchange_with_a_folder_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(FileNotFoundError, match="new"):
        exchange(tmp_path / "new", tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
