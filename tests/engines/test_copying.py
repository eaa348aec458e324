"""Copies within the bucket: of any size, once, the archive last, and with the manifest that is its own."""

from __future__ import annotations

import hashlib

import pytest

from tests.engines.prepare_way import A10G, T4, Way
from tests.engines.test_preparation_plan import NAME
from tritonstack.adapters import Adapters
from tritonstack.engines import stored_archives as orders
from tritonstack.engines.stored_archives import Place, copy_archive, stored_manifest
from tritonstack.errors import WorkFailedError
from tritonstack.models.manifest import ArchiveEntry, ClientFileEntry, Manifest, ModelEntry, SampleEntry

SOURCE, TARGET = Place(endpoint="one", platform=T4), Place(endpoint="two", platform=A10G)


def put(way: Way, content: bytes, place: Place = SOURCE) -> Manifest:
    """An archive with a client file."""
    sha256 = hashlib.sha256(content).hexdigest()
    manifest = Manifest(
        name=NAME.model,
        digest=NAME.digest,
        description="A model.",
        dependency="none",
        archive=ArchiveEntry(file=str(NAME), bytes=len(content), sha256=sha256, tar_bytes=1, tar_sha256=sha256),
        model=ModelEntry(name="bert", max_batch_size=8, inputs=(), outputs=()),
        backends=("python",),
        configs={},
        adapters=Adapters(),
        sample=SampleEntry(file="s.json", answer={}, tolerance=0),
        figures={},
        tools={},
        client_files={"labels.txt": ClientFileEntry(sha256="0" * 64, bytes=4)},
    )
    way.bucket.put(place.client_file(NAME, "labels.txt"), b"one\n")
    way.bucket.put(place.manifest(NAME), manifest.to_json().encode())
    way.bucket.put_once(place.archive(NAME), content, metadata={"sha256": sha256, "tar-bytes": "1"})
    return manifest


@pytest.mark.parametrize("in_parts", [False, True])
def test_bytes_metadata_manifest_and_client_files_are_the_sources(
    way: Way, monkeypatch: pytest.MonkeyPatch, *, in_parts: bool
) -> None:
    content = bytes(range(256)) * (11 << 12)  # 11 MiB: three parts of five, the last one shorter
    if in_parts:
        monkeypatch.setattr(orders, "ONE_COPY_BYTES", 1 << 20)
        monkeypatch.setattr(orders, "PART_BYTES", 5 << 20)
    manifest = put(way, content)
    assert copy_archive(way.bucket, NAME, manifest, source=SOURCE, target=TARGET)
    assert way.bucket.read(TARGET.archive(NAME)) == content
    assert way.bucket.look(TARGET.archive(NAME)) == way.bucket.look(SOURCE.archive(NAME))
    assert way.bucket.read(TARGET.client_file(NAME, "labels.txt")) == b"one\n"
    assert stored_manifest(way.bucket, NAME, TARGET) == manifest


@pytest.mark.parametrize("in_parts", [False, True])
def test_what_lies_there_is_left_and_its_manifest_stays(
    way: Way, monkeypatch: pytest.MonkeyPatch, *, in_parts: bool
) -> None:
    if in_parts:
        monkeypatch.setattr(orders, "ONE_COPY_BYTES", 1)
    theirs = put(way, b"theirs", TARGET)
    assert not copy_archive(way.bucket, NAME, put(way, b"of ours"), source=SOURCE, target=TARGET)
    assert way.bucket.read(TARGET.archive(NAME)) == b"theirs"
    assert stored_manifest(way.bucket, NAME, TARGET) == theirs
    uploads = way.emulator.client("s3").list_multipart_uploads(Bucket=way.name)
    assert not uploads.get("Uploads")


def test_a_manifest_that_another_build_left_without_its_archive_is_mended(way: Way) -> None:
    put(way, b"theirs", TARGET)
    way.bucket.delete([TARGET.archive(NAME)])
    ours = put(way, b"of ours")
    assert copy_archive(way.bucket, NAME, ours, source=SOURCE, target=TARGET)
    assert stored_manifest(way.bucket, NAME, TARGET) == ours


def test_a_source_that_is_gone_is_an_error_and_nothing_is_committed(way: Way) -> None:
    manifest = put(way, b"of ours")
    way.bucket.delete([SOURCE.archive(NAME)])
    with pytest.raises(WorkFailedError, match="was removed before it was copied"):
        copy_archive(way.bucket, NAME, manifest, source=SOURCE, target=TARGET)
    assert way.keys("endpoints/") == []
