"""Packing: the same bytes twice, everything comes back with every reader, compressed or stored."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tritonstack.archives.packing import PIECE, STORED_BLOCK, pack
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.untrusted.unpacking import unpack

Tree = dict[str, bytes | None]
"""Relative name → content, or None for a folder."""


def _noise(size: int, seed: int) -> bytes:
    return hashlib.shake_256(bytes([seed])).digest(size)


def _clashes(tree: Tree) -> bool:
    """Whether a name is both a file and a folder above another."""
    return any(tree[name] is not None and other.startswith(f"{name}/") for name in tree for other in tree)


_names = st.text(alphabet="abcXYZ019._-é ", min_size=1, max_size=9).filter(
    lambda name: name.strip(".") != "" and not name.endswith(("~", ".pyc", ".swp"))
)
_paths = st.lists(_names, min_size=1, max_size=4).map("/".join)
_random = st.builds(_noise, st.integers(0, 3 * STORED_BLOCK), st.integers(0, 9))
_contents = st.one_of(
    st.none(), st.binary(max_size=2000), _random, st.integers(0, 90_000).map(lambda n: b"config " * n)
)
_trees = st.dictionaries(_paths, _contents, min_size=1, max_size=7).filter(lambda tree: not _clashes(tree))


def _write(tree: Tree, folder: Path) -> None:
    folder.mkdir()
    for name, content in tree.items():
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _read(folder: Path) -> Tree:
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")
    }


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(tree=_trees, threads=st.integers(1, 4))
def test_any_tree_comes_back_and_packs_to_the_same_bytes_with_any_number_of_threads(
    tmp_path_factory: pytest.TempPathFactory, tree: Tree, threads: int
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    _write(tree, folder / "one")
    _write(dict(reversed(tree.items())), folder / "two")
    for path in (folder / "two").rglob("*"):
        os.utime(path, (1, 1))

    first = pack(folder / "one", folder / "one.tar.gz", threads=threads)
    second = pack(folder / "two", folder / "two.tar.gz", threads=1)

    content, other = first.archive.read_bytes(), second.archive.read_bytes()
    tar = gzip.decompress(content)
    assert tar == gzip.decompress(other)
    assert content == other
    assert first.sha256 == hashlib.sha256(content).hexdigest()
    assert first.bytes == len(content)
    assert first.tar_sha256 == hashlib.sha256(tar).hexdigest()
    assert first.tar_bytes == len(tar)
    unpack(first.archive, folder / "back")
    assert _read(folder / "back") == _read(folder / "one")


def _weights(folder: Path) -> None:
    _write(
        {"m/config.pbtxt": b'name: "m"\n', "m/1/weights": _noise(5 * PIECE // 2, 1), "m/1/text": b"ab" * PIECE}, folder
    )


def test_gnu_tar_python_and_gunzip_read_what_was_packed_without_a_word(tmp_path: Path) -> None:
    _weights(tmp_path / "tree")
    archive = pack(tmp_path / "tree", tmp_path / "a.tar.gz").archive
    (tmp_path / "back").mkdir()
    command = ["tar", "--warning=all", "-xzf", str(archive), "-C", str(tmp_path / "back")]
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""
    assert _read(tmp_path / "back") == _read(tmp_path / "tree")
    subprocess.run(["gzip", "--test", str(archive)], check=True)
    with tarfile.open(archive, "r:gz") as opened:
        names = opened.getnames()
    assert names == ["m", "m/1", "m/1/text", "m/1/weights", "m/config.pbtxt"]
    one_member = zlib.decompressobj(wbits=31)
    one_member.decompress(archive.read_bytes())
    assert one_member.eof
    assert one_member.unused_data == b""


def test_headers_carry_no_time_owner_or_umask(tmp_path: Path) -> None:
    _weights(tmp_path / "tree")
    (tmp_path / "tree/m/1/text").chmod(0o700)
    (tmp_path / "tree/m/1/weights").chmod(0o600)
    with tarfile.open(pack(tmp_path / "tree", tmp_path / "a.tar.gz").archive) as opened:
        found = {item.name: (item.mode, item.mtime, item.uid, item.gid, item.uname, item.gname) for item in opened}
    assert found["m"] == (0o755, 0, 0, 0, "", "")
    assert found["m/1/text"] == (0o755, 0, 0, 0, "", "")
    assert found["m/1/weights"] == (0o644, 0, 0, 0, "", "")


def test_what_does_not_compress_is_stored_and_what_does_is_not(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    _write({"noise": _noise(3 * PIECE, 0), "text": b"weights, " * PIECE}, tree)
    result = pack(tree, tmp_path / "a.tar.gz")
    assert result.bytes < 3 * PIECE * 1.05
    assert _noise(3 * PIECE, 0)[:STORED_BLOCK] in result.archive.read_bytes()


def test_links_inside_become_files_and_links_outside_are_refused(tmp_path: Path) -> None:
    _write({"m/a": b"a"}, tmp_path / "tree")
    (tmp_path / "tree/m/b").symlink_to("a")
    unpack(pack(tmp_path / "tree", tmp_path / "a.tar.gz").archive, tmp_path / "back")
    assert not (tmp_path / "back/m/b").is_symlink()
    assert (tmp_path / "back/m/b").read_bytes() == b"a"

    (tmp_path / "secret").write_text("s")
    (tmp_path / "tree/m/c").symlink_to(tmp_path / "secret")
    (tmp_path / "tree/m/d").symlink_to("nowhere")
    (tmp_path / "tree/m/e").symlink_to(".")
    os.mkfifo(tmp_path / "tree/m/f")
    with pytest.raises(InputError) as caught:
        pack(tmp_path / "tree", tmp_path / "b.tar.gz")
    found = sorted(problem.found.split(",")[0] for problem in caught.value.problems)
    assert found == [
        "a link that leads nowhere",
        "a link that leads outside",
        "a link to a folder that contains it",
        "neither a file nor a folder",
    ]
    assert not (tmp_path / "b.tar.gz").exists()


def test_a_file_that_shrinks_meanwhile_fails_and_leaves_nothing(tmp_path: Path) -> None:
    _write({"big": _noise(4 * PIECE, 0)}, tmp_path / "tree")
    with pytest.raises(WorkFailedError, match="became shorter"):
        pack(tmp_path / "tree", tmp_path / "a.tar.gz", progress=lambda _: os.truncate(tmp_path / "tree/big", PIECE))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]
