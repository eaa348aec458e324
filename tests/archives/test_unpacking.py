"""Unpacking what somebody else may have made: nothing leaves the target, and nothing half-made stays."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.archives.unpacking import Limits, UnpackError, unpack

Member = tuple[tarfile.TarInfo, bytes]


def _file(name: str, content: bytes = b"x") -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info, content


def _special(name: str, kind: bytes, linkname: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, linkname
    return info, b""


def _archive(*members: Member) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        [_file("/etc/passwd")],
        [_file("../outside")],
        [_file("a/../../outside")],
        [_file("a/../b")],
        [_special("link", tarfile.SYMTYPE, "/etc/passwd")],
        [_special("a/link", tarfile.SYMTYPE, "../../outside")],
        [_special("link", tarfile.SYMTYPE, "a"), _file("link/b")],
        [_special("link", tarfile.SYMTYPE, "b"), _file("link")],
        [_special("link", tarfile.SYMTYPE, "b"), _special("link", tarfile.DIRTYPE)],
        [_special("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [_special("hard", tarfile.LNKTYPE, "../outside")],
        [_special("hard", tarfile.LNKTYPE, "not-before-it")],
        [_special("link", tarfile.SYMTYPE, "b"), _special("hard", tarfile.LNKTYPE, "link")],
        [_special("device", tarfile.CHRTYPE)],
        [_special("pipe", tarfile.FIFOTYPE)],
        [_file("a"), _file("a")],
        [_file("a"), _file("./a")],
        [_file("a"), _file("a/b")],
        [_file(".")],
    ],
    ids=lambda members: "-".join(f"{info.name}{info.type.decode()}" for info, _ in members),
)
def test_a_member_that_leads_astray_is_refused_and_nothing_stays(tmp_path: Path, members: list[Member]) -> None:
    with pytest.raises(UnpackError):
        unpack(io.BytesIO(_archive(_file("first"), *members)), tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_links_inside_work_and_modes_keep_only_the_right_to_execute(tmp_path: Path) -> None:
    program, content = _file("bin/run", b"#!")
    program.mode = 0o4777
    link, hard = _special("bin/alias", tarfile.SYMTYPE, "../bin/run"), _special("again", tarfile.LNKTYPE, "bin/run")
    unpack(io.BytesIO(_archive((program, content), link, hard)), tmp_path / "target")
    assert (tmp_path / "target/bin/alias").read_bytes() == b"#!"
    assert (tmp_path / "target/again").read_bytes() == b"#!"
    assert (tmp_path / "target/bin/run").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("limits", [Limits(total_bytes=99), Limits(members=1)])
def test_limits_hold(tmp_path: Path, limits: Limits) -> None:
    archive = _archive(_file("a", b"x" * 50), _file("b", b"x" * 50))
    with pytest.raises(UnpackError, match="more than"):
        unpack(io.BytesIO(archive), tmp_path / "target", limits=limits)
    unpack(io.BytesIO(archive), tmp_path / "target", limits=Limits(total_bytes=100, members=2))


@settings(max_examples=50, deadline=None)
@given(cut=st.floats(0, 0.999))
def test_a_truncated_archive_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: float) -> None:
    archive = _archive(_file("a", bytes(range(256)) * 40), _file("b", b"x" * 5000))
    target = tmp_path_factory.mktemp("cut") / "target"
    with pytest.raises(UnpackError):
        unpack(io.BytesIO(archive[: int(len(archive) * cut)]), target)
    assert not target.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"no archive: " + data,
        lambda data: data[:0],
        lambda data: data[:-8] + bytes(4) + data[-4:],
        lambda data: data[:40] + bytes([data[40] ^ 255]) + data[41:],
    ],
    ids=["text", "empty", "checksum", "content"],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    archive = _archive(_file("a", bytes(range(256)) * 40))
    with pytest.raises(UnpackError):
        unpack(io.BytesIO(damage(archive)), tmp_path / "target")


def test_a_failure_of_the_source_passes_through(tmp_path: Path) -> None:
    class Broken(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise ConnectionResetError(104, "reset")

    with pytest.raises(ConnectionResetError):
        unpack(Broken(), tmp_path / "target")  # type: ignore[arg-type]  # a stream with read alone, as S3's bodies are
    assert not (tmp_path / "target.partial").exists()
