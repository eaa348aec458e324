"""Members of tar streams: the same as ``tarfile`` reads, and no header that takes memory."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.untrusted.tar_reading import HeaderLimits, TarFormatError, tar_members

LIMITS = HeaderLimits(of_a_member=64 << 10, of_all=1 << 20)


def header(name: str, kind: bytes, size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % tarfile.BLOCKSIZE)


def record(key: str, value: str) -> bytes:
    rest = f" {key}={value}\n".encode()
    length = len(rest) + len(str(len(rest) + 2))
    return f"{len(str(length)) + len(rest)}".encode() + rest


END = header("x", tarfile.REGTYPE) + bytes(1024)


class Zeros:
    """A stream that begins with some bytes and goes on with zeros for ever; counts what is read of it."""

    def __init__(self, start: bytes) -> None:
        self._start = io.BytesIO(start)
        self.read_bytes = 0

    def read(self, size: int) -> bytes:
        self.read_bytes += size
        return self._start.read(size).ljust(size, b"\0")


STATED = 1 << 33


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_an_extended_header_of_eight_gigabytes_is_refused_before_it_is_read(kind: bytes) -> None:
    stream = Zeros(header("h", kind, STATED))
    with pytest.raises(TarFormatError, match="extended headers of one member"):
        list(tar_members(stream))
    assert stream.read_bytes <= 1024


CHAIN = {
    "L": header("l", tarfile.GNUTYPE_LONGNAME, 512) + padded(b"n" * 500),
    "x": header("x", tarfile.XHDTYPE, 512) + padded(record("comment", "c" * 480)),
    "g": header("g", tarfile.XGLTYPE, 512) + padded(record("comment", "c" * 480)),
}


@pytest.mark.parametrize("kinds", ["L", "x", "g", "Lxg"])
def test_a_chain_of_extended_headers_is_bounded_and_not_followed_by_recursion(kinds: str) -> None:
    few = "".join(CHAIN[each].decode("latin-1") for each in (kinds * 60)[:60]).encode("latin-1")
    assert len(list(tar_members(io.BytesIO(few + END), limits=LIMITS))) == 1
    many = few * 20
    with pytest.raises(TarFormatError, match="extended headers of one member"):
        list(tar_members(io.BytesIO(many + END), limits=LIMITS))


def test_the_extended_headers_of_all_members_are_bounded() -> None:
    one = CHAIN["x"] * 60 + header("x", tarfile.REGTYPE)
    with pytest.raises(TarFormatError, match="more than 1,048,576 bytes"):
        list(tar_members(io.BytesIO(one * 20), limits=LIMITS))


def test_records_of_a_pax_header_take_no_memory_each() -> None:
    body = b"".join(record(f"k{number}", "v") for number in range(70_000))
    stream = io.BytesIO(header("p", tarfile.XHDTYPE, len(body)) + padded(body) + END)
    tracemalloc.start()
    try:
        assert [member.name for member in tar_members(stream)] == ["x"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(body)  # tarfile's dictionaries of them take 25 times as much


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (header("s", tarfile.GNUTYPE_SPARSE), "sparse"),
        (header("p", tarfile.XHDTYPE, 512) + padded(record("GNU.sparse.major", "1")), "sparse"),
        (header("p", tarfile.XGLTYPE, 512) + padded(record("path", "all")), "global pax header"),
        (header("p", tarfile.XHDTYPE, 512) + padded(record("size", "9" * 100)), "states the size"),
        (header("p", tarfile.XHDTYPE, 512) + padded(record("size", "-1")), "states the size"),
        (header("p", tarfile.XHDTYPE, 512) + padded(b"99 path=x\n"), "damaged"),
        (header("p", tarfile.XHDTYPE, 512) + padded(b"5 path=x\n"), "damaged"),
        (header("l", tarfile.GNUTYPE_LONGNAME, 512), "cut off"),
        (CHAIN["L"], "ends after an extended header"),
        (header("f", tarfile.REGTYPE, 512) + b"half", "cut off"),
        (header("f", tarfile.REGTYPE)[:100], "cut off within a header"),
        (b"\1" * 512, "no tar archive"),
        (header("f", tarfile.REGTYPE) + b"\1" * 512, "no tar archive"),
        (b"", "an empty file"),
    ],
)  # fmt: skip
def test_what_is_damaged_or_sparse_is_refused_with_its_reason(start: bytes, message: str) -> None:
    tail = END if message in ("sparse", "damaged", "states the size", "global pax header") else b""
    with pytest.raises(TarFormatError, match=message):
        list(tar_members(io.BytesIO(start + tail)))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=180)
MEMBERS = st.lists(
    st.tuples(
        st.lists(NAMES, min_size=1, max_size=3).map("/".join),
        st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]),
        st.binary(max_size=1500),
        NAMES,
    ),
    max_size=6,
)


@given(MEMBERS, st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]), st.integers(0, 600))
@settings(max_examples=150, deadline=None)
def test_members_are_those_that_tarfile_reads(
    members: list[tuple[str, bytes, bytes, str]], format_: int, read: int
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=format_) as tar:
        for name, kind, content, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(content))

    def by_tarfile() -> Iterator[tuple[str, bytes, str, bytes]]:
        with tarfile.open(fileobj=io.BytesIO(packed.getvalue()), mode="r|", errors="surrogateescape") as tar:
            for each in tar:
                content = tar.extractfile(each) if each.isreg() else None
                yield each.name, each.type, each.linkname, content.read(read) if content else b""

    ours = [(each.name, each.type, each.link, each.read(read)) for each in tar_members(io.BytesIO(packed.getvalue()))]
    assert ours == list(by_tarfile())


@given(st.binary(max_size=3000), st.integers(0, 3000))
@settings(max_examples=200, deadline=None)
def test_whatever_is_overwritten_is_read_or_refused(noise: bytes, place: int) -> None:
    whole = CHAIN["x"] + header("a", tarfile.REGTYPE, 600) + padded(b"c" * 600) + CHAIN["L"] + END
    spoilt = whole[:place] + noise + whole[place + len(noise) :]
    try:
        for member in tar_members(io.BytesIO(spoilt), limits=LIMITS):
            member.read(10)
    except TarFormatError:
        pass
