"""Unpacking untrusted archives."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tritonstack.untrusted.unpacking import UnpackLimits, UnsafeArchiveError, member_path, unpack

LIMITS = UnpackLimits(max_bytes=10_000_000, max_members=1000)
Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, data: bytes = b"x", *, mode: int = 0o644) -> Member:
    """A regular file."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    return member, data


def link(name: str, target: str, *, kind: bytes = tarfile.SYMTYPE) -> Member:
    """A symbolic or hard link."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def special(name: str, kind: bytes) -> Member:
    """A folder, device or pipe."""
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, 0o755
    return member, b""


def packed(folder: Path, *members: Member) -> Path:
    """An archive with these members, whatever they are."""
    path = folder / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return path


def outside(folder: Path) -> set[str]:
    """Files outside the archive and the unpacked folder."""
    return {path.name for path in folder.iterdir()} - {"archive.tar.gz", "unpacked"}


def test_files_folders_and_links_inside_are_unpacked(tmp_path: Path) -> None:
    archive = packed(
        tmp_path,
        special("./model", tarfile.DIRTYPE),
        file("./model/1/weights.bin", b"w" * 3_000_000),
        file("model/run.sh", b"#!", mode=0o4755),
        link("model/latest", "1/weights.bin"),
        link("model/2", "1"),
        link("model/hard", "model/run.sh", kind=tarfile.LNKTYPE),
    )
    size = unpack(archive, tmp_path / "unpacked", limits=LIMITS)
    model = tmp_path / "unpacked" / "model"
    assert size == 3_000_002
    assert (model / "latest").read_bytes() == b"w" * 3_000_000
    assert (model / "2" / "weights.bin").is_file()
    assert (model / "hard").read_bytes() == b"#!"
    assert (model / "run.sh").stat().st_mode & 0o7777 == 0o755


def test_a_later_member_of_the_same_name_replaces_the_earlier_one(tmp_path: Path) -> None:
    archive = packed(tmp_path, file("a", b"first"), file("a", b"second"))
    unpack(archive, tmp_path / "unpacked", limits=LIMITS)
    assert (tmp_path / "unpacked" / "a").read_bytes() == b"second"


def beyond_the_path_limit() -> list[Member]:
    """CVE-2025-4517: links so long that ``realpath`` stops resolving, and a file through them."""
    members, folder, steps = [], "", "abcdefghijklmnop"
    for step in steps:
        name = "d" * 247
        members += [special(f"{folder}{name}", tarfile.DIRTYPE), link(f"{folder}{step}", name)]
        folder += f"{name}/"
    long = f"{'/'.join(steps)}/{'l' * 254}"
    return [*members, link(long, "../" * len(steps)), link("escape", f"{long}/.."), file("escape/evil")]


@pytest.mark.parametrize(
    "members",
    [
        [file("../evil")],
        [file("/tmp/evil")],
        [file("a/../../evil")],
        [file("a\\..\\evil")],
        [file("a\nb")],
        [special("pipe", tarfile.FIFOTYPE)],
        [special("device", tarfile.CHRTYPE)],
        [special("block", tarfile.BLKTYPE)],
        [link("out", "/etc")],
        [link("out", "..")],
        [link("out", "../../etc/passwd")],
        [link("a", "."), link("b", "a/../..")],
        [link("d/e/l", "../.."), link("out", "d/e/l/..")],
        [link("out", ".."), file("out/evil")],
        [link("out", "/etc"), link("out/evil", "x")],
        [link("hard", "/etc/passwd", kind=tarfile.LNKTYPE)],
        [link("hard", "../archive.tar.gz", kind=tarfile.LNKTYPE)],
        [link("hard", "nothing", kind=tarfile.LNKTYPE)],
        [file("a"), file("a/b")],
        beyond_the_path_limit(),
        beyond_the_path_limit()[:-1],
        [*beyond_the_path_limit()[:-1], link("escape/evil", "x")],
    ],
    ids=lambda members: ",".join(member.name.replace("\n", "?") for member, _ in members)[-40:],
)
def test_whatever_would_leave_the_folder_is_refused_and_nothing_stays(tmp_path: Path, members: list[Member]) -> None:
    archive = packed(tmp_path, *members)
    with pytest.raises(UnsafeArchiveError):
        unpack(archive, tmp_path / "unpacked", limits=LIMITS)
    assert not (tmp_path / "unpacked").exists()
    assert outside(tmp_path) == set()


def test_more_bytes_than_allowed_are_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path, file("bomb", b"\0" * 5_000_000))
    with pytest.raises(UnsafeArchiveError, match="more than 1000000 bytes"):
        unpack(archive, tmp_path / "unpacked", limits=UnpackLimits(max_bytes=1_000_000, max_members=10))
    assert not (tmp_path / "unpacked").exists()


def test_more_members_than_allowed_are_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path, *(file(f"f{number}") for number in range(11)))
    with pytest.raises(UnsafeArchiveError, match="more than 10 members"):
        unpack(archive, tmp_path / "unpacked", limits=UnpackLimits(max_bytes=1000, max_members=10))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[: len(data) // 2],
        lambda _data: b"no archive at all",
        lambda _data: b"",
        lambda data: data[:40] + b"\xff" * 40 + data[80:],
    ],
    ids=["cut", "text", "empty", "overwritten"],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    archive = packed(tmp_path, file("weights", os.urandom(200_000)))
    archive.write_bytes(spoil(archive.read_bytes()))
    with pytest.raises(UnsafeArchiveError):
        unpack(archive, tmp_path / "unpacked", limits=LIMITS)
    assert not (tmp_path / "unpacked").exists()


def test_unpacking_can_be_given_up(tmp_path: Path) -> None:
    archive = packed(tmp_path, file("a"), file("b"))
    with pytest.raises(UnsafeArchiveError, match="given up"):
        unpack(archive, tmp_path / "unpacked", limits=LIMITS, cancelled=lambda: True)


@given(st.text(min_size=1, max_size=30))
def test_a_members_path_stays_inside_or_is_refused(name: str) -> None:
    try:
        path = member_path(name)
    except UnsafeArchiveError:
        return
    assert Path(os.path.normpath(Path("/a/folder") / path)).is_relative_to("/a/folder")


PARTS = st.lists(st.sampled_from(["a", "b", "..", ".", "c"]), min_size=1, max_size=4).map("/".join)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.builds(file, PARTS),
            st.builds(link, PARTS, st.one_of(PARTS, PARTS.map("/".__add__))),
            st.builds(lambda name, target: link(name, target, kind=tarfile.LNKTYPE), PARTS, PARTS),
            st.builds(lambda name: special(name, tarfile.DIRTYPE), PARTS),
        ),
        max_size=6,
    )
)
def test_no_archive_writes_or_leads_outside(tmp_path_factory: pytest.TempPathFactory, members: list[Member]) -> None:
    folder = tmp_path_factory.mktemp("any")
    archive = packed(folder, *members)
    try:
        unpack(archive, folder / "unpacked", limits=LIMITS)
    except UnsafeArchiveError:
        assert not (folder / "unpacked").exists()
    else:
        inside = (folder / "unpacked").resolve()
        for place in inside.rglob("*"):
            assert Path(os.path.realpath(place)).is_relative_to(inside)
    assert outside(folder) == set()
