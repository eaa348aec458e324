"""Copies of archives in the bucket, and sources of recorded digests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_aws import FakeAws
from tests.models.folders import places_in, source_of, write, write_double
from tests.preparation.prepare_way import A10G, T4, Way
from tests.preparation.test_needed_work import NAME, manifest_for
from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.archives.packing import pack
from tritonstack.archives.publish import stored_manifest
from tritonstack.archives.staging import Task, finish, stage_archive
from tritonstack.archives.stored_inputs import pack_inputs, source_of_digest
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import ClientFileEntry, Manifest
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.naming import ArchiveName
from tritonstack.preparation import stored_archives
from tritonstack.preparation.stored_archives import copy_archive
from tritonstack.untrusted.unpacking import unpack

EXPORT = """\
import argparse, json, pathlib
from _exporters.factor import FACTOR
parser = argparse.ArgumentParser()
for name in ("--target", "--options", "--report", "--sample"):
    parser.add_argument(name)
given = parser.parse_args()
target = pathlib.Path(given.target) / "double/1"
target.mkdir(parents=True)
(target / "factor.txt").write_text(FACTOR)
pathlib.Path(given.report).write_text(json.dumps({"figures": {}, "tools": {}}))
"""


@dataclass(frozen=True)
class Project:
    """A project whose folder ``double`` has an export with a library, and a bucket."""

    root: Path
    aws: FakeAws

    @property
    def folder(self) -> Path:
        return self.root / "model_repos/double"

    def publish(self, source: ArchiveSource | None = None) -> str:
        """Keep the inputs of the folder as it is; returns its digest."""
        source = source or source_of(self.folder)
        digest = model_digest(source)
        pack_inputs(source, self.root / "kept.tar.gz")
        self.aws.artifacts[f"inputs/{digest}.tar.gz"] = (self.root / "kept.tar.gz").read_bytes()
        return digest

    def read(self, digest: str, choice: BuildChoice | None = None) -> ArchiveSource:
        work = self.root / "work"
        work.mkdir(exist_ok=True)
        return source_of_digest(
            "double",
            digest,
            repositories=self.folder.parent,
            bucket=ArtifactBucket(environment="dev", session=self.aws),
            work=work,
            choice=choice or BuildChoice(),
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = write_double(tmp_path)
    write(folder, {"export.py": EXPORT})
    write(folder.parent, {"_exporters/factor.py": 'FACTOR = "2"\n'})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("exports: [{produces: [double/1/factor.txt]}]\n")
    return Project(tmp_path, FakeAws.with_artifacts())


def _edit_folder(project: Project) -> None:
    write(project.folder, {"double/1/more.txt": "new"})


def _edit_library(project: Project) -> None:
    write(project.folder.parent, {"_exporters/factor.py": 'FACTOR = "3"\n'})


def _remove_folder(project: Project) -> None:
    project.folder.rename(project.root / "away")


def test_a_digest_of_the_folders_needs_no_bucket(project: Project) -> None:
    digest = model_digest(source_of(project.folder))
    assert project.read(digest).folder == project.folder
    assert list((project.root / "work").iterdir()) == []


@pytest.mark.parametrize("change", [_edit_folder, _edit_library, _remove_folder])
def test_a_digest_of_other_sources_is_read_from_its_inputs(project: Project, change: Callable[[Project], None]) -> None:
    digest = project.publish()
    change(project)
    source = project.read(digest)
    assert model_digest(source) == digest
    assert source.folder.is_relative_to(project.root / "work")
    assert model_digest(project.read(digest)) == digest  # what is unpacked is used again


def test_its_export_runs_with_the_library_that_was_kept(project: Project) -> None:
    digest = project.publish()
    _edit_library(project)
    source, places = project.read(digest), places_in(project.root)
    (project.root / "build").mkdir()
    task = Task(source=source, name=ArchiveName(model="double", digest=digest), platform=None)
    staged = stage_archive(task, project.root / "build", places, lambda _text: None, {})
    finish(staged, places=places, report=lambda _text: None)
    assert (project.root / "build/repository/double/1/factor.txt").read_text() == "2"


def test_size_and_weights_are_those_of_the_digest(project: Project) -> None:
    with (project.folder / "recipe.yaml").open("a") as recipe:
        recipe.write("sizes: {full: {layers: 12}, tiny: {layers: 1}}\n")
    (tiny,) = archives_of(project.folder, BuildChoice(size="tiny"))
    digest = project.publish(tiny)
    assert project.read(digest).choice.size == "tiny"
    _edit_folder(project)
    assert project.read(digest).choice.size == "tiny"


def test_another_lock_file_is_refused_with_what_to_do(project: Project) -> None:
    digest = project.publish()
    write(project.root, {"requirements/exporters.txt": "numpy==3\n"})
    with pytest.raises(InputError, match=r"requirements/exporters\.txt is another here") as refused:
        project.read(digest)
    assert "check out the commit" in refused.value.problems[0].advice
    (project.root / "requirements/exporters.txt").unlink()
    with pytest.raises(InputError, match="not there any more"):
        project.read(digest)


def test_a_digest_without_inputs_is_refused(project: Project) -> None:
    with pytest.raises(InputError, match=r"no inputs/0123456789abcdef\.tar\.gz in artifacts"):
        project.read("0123456789abcdef")


def test_a_library_that_was_changed_in_the_archive_is_refused(project: Project) -> None:
    digest = project.publish()
    _edit_folder(project)
    changed = project.root / "changed"
    unpack(project.root / "kept.tar.gz", changed)
    (library,) = changed.rglob("factor.py")
    library.write_text('FACTOR = "666"')
    packed = pack(changed, project.root / "changed.tar.gz").archive
    project.aws.artifacts[f"inputs/{digest}.tar.gz"] = packed.read_bytes()
    with pytest.raises(InputError, match="has another digest here"):
        project.read(digest)


def test_a_damaged_archive_fails_with_its_key_and_leaves_nothing(project: Project) -> None:
    digest = project.publish()
    _edit_folder(project)
    project.aws.artifacts[f"inputs/{digest}.tar.gz"] = project.aws.artifacts[f"inputs/{digest}.tar.gz"][:200]
    with pytest.raises(WorkFailedError, match=f"inputs/{digest}.tar.gz: the archive is damaged"):
        project.read(digest)
    assert list((project.root / "work").iterdir()) == []


SOURCE, TARGET = Place(endpoint="one", platform=T4), Place(endpoint="two", platform=A10G)


def put(way: Way, content: bytes, place: Place = SOURCE) -> Manifest:
    """An archive with a client file."""
    manifest = manifest_for(content, client_files={"labels.txt": ClientFileEntry(sha256="0" * 64, bytes=4)})
    way.bucket.put(place.client_file(NAME, "labels.txt"), b"one\n")
    way.bucket.put(place.manifest(NAME), manifest.to_json().encode())
    way.bucket.put_once(place.archive(NAME), content, metadata={"sha256": manifest.archive.sha256, "tar-bytes": "1"})
    return manifest


@pytest.mark.parametrize("in_parts", [False, True])
def test_bytes_metadata_manifest_and_client_files_are_the_sources(
    way: Way, monkeypatch: pytest.MonkeyPatch, *, in_parts: bool
) -> None:
    content = bytes(range(256)) * (11 << 12)  # 11 MiB: three parts of five, the last one shorter
    if in_parts:
        monkeypatch.setattr(stored_archives, "ONE_COPY_BYTES", 1 << 20)
        monkeypatch.setattr(stored_archives, "PART_BYTES", 5 << 20)
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
        monkeypatch.setattr(stored_archives, "ONE_COPY_BYTES", 1)
    theirs = put(way, b"theirs", TARGET)
    assert not copy_archive(way.bucket, NAME, put(way, b"of ours"), source=SOURCE, target=TARGET)
    assert way.bucket.read(TARGET.archive(NAME)) == b"theirs"
    assert stored_manifest(way.bucket, NAME, TARGET) == theirs
    uploads = way.emulator.client("s3").list_multipart_uploads(Bucket=way.name)
    assert not uploads.get("Uploads")


def test_a_manifest_that_another_build_left_without_its_archive_is_fixed(way: Way) -> None:
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
