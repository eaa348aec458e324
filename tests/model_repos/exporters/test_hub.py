"""Pretrained files from the hub's folder, and from an object of S3: one file, or the named files of a packed folder."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from _exporters import hub
from _exporters.script import ExportError

REVISION = "0123456789abcdef0123456789abcdef01234567"
SOURCE = {"hub": "somebody/model", "revision": REVISION}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty revision in a folder laid out like the hub."""
    place = tmp_path / "somebody" / "model" / REVISION
    place.mkdir(parents=True)
    monkeypatch.setenv(hub.FOLDER_VARIABLE, str(tmp_path))
    return place


def test_files_are_found_in_the_revisions_folder_and_every_missing_one_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    assert hub.fetch(SOURCE, ["config.json"]) == folder
    assert hub.digests(folder, ["config.json"]) == {"config.json": hashlib.sha256(b"{}").hexdigest()}
    with pytest.raises(ExportError, match=f"somebody/model at {REVISION} has no a.bin, b.bin in {folder}"):
        hub.fetch(SOURCE, ["a.bin", "config.json", "b.bin"])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "need `source"),
        *(
            (SOURCE | {"revision": one}, "not a commit's 40 hexa")
            for one in ("", "main", REVISION[:12], f"../{REVISION}")
        ),
        *(
            (SOURCE | {"hub": one}, "not an organisation and a name")
            for one in ("../secret", "a/b/c", "a/..", "/etc", "")
        ),
        ({"s3": "s3://bucket/key", "sha256": "0" * 64}, "s3://bucket/key is not downloaded"),
    ],
)
def test_a_source_that_names_no_place_or_leads_elsewhere_is_refused(source: dict[str, str] | None, said: str) -> None:
    with pytest.raises(ExportError, match=said):
        hub.fetch(source, [])


# An object of S3.

S3_FILES = ("config.json", "model.safetensors")
CONTENT = {"config.json": b"{}", "model.safetensors": b"weights"}

Packer = Callable[[Path, Mapping[str, bytes]], None]


def pack_tar(path: Path, files: Mapping[str, bytes]) -> None:
    """A .tar.gz of these members, whatever they are called."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def pack_zip(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)


PACKERS = pytest.mark.parametrize(("suffix", "pack"), [(".tar.gz", pack_tar), (".tgz", pack_tar), (".zip", pack_zip)])


def s3_source(tmp_path: Path, suffix: str = ".tar.gz") -> dict[str, str]:
    """The options' ``source`` of an object that was downloaded to ``tmp_path / "object"``."""
    place = {"file": str(tmp_path / "object"), "folder": str(tmp_path / "unpacked")}
    return {"s3": f"s3://bucket/weights{suffix}", "sha256": "0" * 64, **place}


@PACKERS
@pytest.mark.parametrize("base", ["", "./", "bert/"])
def test_the_named_files_of_a_packed_folder_are_found(tmp_path: Path, suffix: str, pack: Packer, base: str) -> None:
    others = {f"{base}README.md": b"of no use", f"{base}1_Pooling/config.json": b"another"}
    pack(tmp_path / "object", {**{base + name: content for name, content in CONTENT.items()}, **others})
    place = hub.fetch(s3_source(tmp_path, suffix), S3_FILES)
    assert {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()} == CONTENT
    assert place.is_relative_to(tmp_path / "unpacked")


@PACKERS
def test_members_that_lead_elsewhere_are_not_unpacked(tmp_path: Path, suffix: str, pack: Packer) -> None:
    evil = {"../config.json": b"evil", "/config.json": b"evil", "../../escaped": b"evil"}
    pack(tmp_path / "object", {**evil, **CONTENT})
    place = hub.fetch(s3_source(tmp_path, suffix), S3_FILES)
    assert (place / "config.json").read_bytes() == b"{}"
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - {tmp_path / "object"}
    assert all(path.is_relative_to(tmp_path / "unpacked") for path in written)
    assert not (tmp_path.parent / "config.json").exists()


@PACKERS
def test_every_file_that_is_not_packed_is_named(tmp_path: Path, suffix: str, pack: Packer) -> None:
    pack(tmp_path / "object", {"bert/config.json": b"{}", "a/b/model.safetensors": b"too deep"})
    with pytest.raises(ExportError, match=r"has no model\.safetensors, tokenizer\.json, at its root"):
        hub.fetch(s3_source(tmp_path, suffix), [*S3_FILES, "tokenizer.json"])


def test_a_link_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "object", "w:gz") as tar:
        link = tarfile.TarInfo("config.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(ExportError, match=r"config\.json is packed as a link"):
        hub.fetch(s3_source(tmp_path), S3_FILES)
    info = zipfile.ZipInfo("config.json")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "object", "w") as packed:
        packed.writestr(info, "/etc/passwd")
    with pytest.raises(ExportError, match=r"config\.json is packed as a link"):
        hub.fetch(s3_source(tmp_path, ".zip"), S3_FILES)


@PACKERS
def test_a_damaged_or_too_large_object_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, pack: Packer
) -> None:
    pack(tmp_path / "object", {"config.json": bytes(range(256)) * 64})
    whole = (tmp_path / "object").read_bytes()
    for damaged in (b"", b"no archive", whole[: len(whole) // 2]):
        (tmp_path / "object").write_bytes(damaged)
        with pytest.raises(ExportError, match="is damaged or cannot be unpacked"):
            hub.fetch(s3_source(tmp_path, suffix), ["config.json"])
    (tmp_path / "object").write_bytes(whole)
    monkeypatch.setattr(hub, "MOST_BYTES", 8)
    with pytest.raises(ExportError, match="unpack to more than 8 bytes"):
        hub.fetch(s3_source(tmp_path, suffix), ["config.json"])


def test_an_object_that_is_one_file_gets_the_name_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "object").write_bytes(b"checkpoint")
    place = hub.fetch(s3_source(tmp_path, ".pt"), ["inception_v3.pt"])
    assert (place / "inception_v3.pt").read_bytes() == b"checkpoint"
    with pytest.raises(ExportError, match=r"is one file, and this export needs config\.json, model\.safetensors"):
        hub.fetch(s3_source(tmp_path, ".pt"), S3_FILES)
