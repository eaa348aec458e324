"""Publishes built archives: inputs, then the manifest, then the archive; plans of trtexec's stand-in are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tritonstack.archives.bucket import ArtifactBucket, Place, StoredObject, belongs
from tritonstack.archives.outcome import ArchiveOutcome, counted
from tritonstack.archives.programs import Report
from tritonstack.archives.stored_inputs import pack_inputs
from tritonstack.archives.wanted import left_to_deployment, wanted_archives
from tritonstack.aws.session import Session
from tritonstack.disk import temporary_folder
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.model_files.marked_plan import MARK
from tritonstack.models.build_target import refuse_unservable
from tritonstack.models.digest import sha256_of
from tritonstack.models.manifest import ArchiveEntry, Manifest, Places, is_engine_figure
from tritonstack.models.source import ArchiveSource
from tritonstack.models.tensorrt_models import TENSORRT
from tritonstack.naming import ArchiveName, inputs_key
from tritonstack.untrusted.tar_reading import DAMAGED, open_gzip, tar_members

if TYPE_CHECKING:
    from tritonstack.config import Environment


def refuse_stand_in(manifest: Manifest, archive: Path | None) -> None:
    """Raise :class:`WorkFailedError` where an archive holds a stand-in's plan, by its manifest or by its own content.

    Only archives with a TensorRT model are looked into: nothing else loads a plan. ``archive`` is streamed; None where
    it is not what will be published, and its manifest may be.
    """
    named = [entry.plan for entry in manifest.engines.values() if entry.stand_in]
    if not named and archive is not None and TENSORRT in manifest.backends:
        named = list(marked_plans(archive))
    if named or manifest.plan is False:
        held = ", ".join(named) or "the ONNX graph of an engine that is not built"
        raise WorkFailedError(
            f"{manifest.archive.file} holds no TensorRT engine, but {held}"
            + (", which trtexec-stand-in wrote" if named else "")
            + "\n  allowed: the local AWS, whose stand-in for TensorRT runs the graph\n"
            "  do:      build the engine on its GPU: tritonstack prepare"
        )


def marked_plans(archive: Path) -> Iterator[str]:
    """The names of the files in an archive that trtexec's stand-in wrote; it is streamed, and nothing is unpacked.

    Raises :class:`WorkFailedError` where the archive cannot be read.
    """
    try:
        with open_gzip(archive, "rb") as plain:
            for member in tar_members(plain):
                if member.is_file and member.read(len(MARK)) == MARK:
                    yield member.name
    except DAMAGED as error:
        raise WorkFailedError(f"{archive} cannot be read: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Published:
    """Outcome of publishing one archive under one endpoint's platform, and whether its manifest had to be fixed."""

    key: str
    outcome: ArchiveOutcome
    fixed: bool


@dataclass(frozen=True, kw_only=True)
class PublishSummary:
    bucket: str  # the bucket's name
    archives: tuple[Published, ...]  # what became of each
    # the names of those that the deployment builds and publishes, since they need a TensorRT engine
    left: tuple[str, ...] = ()
    environment: str = ""  # the environment's name

    def __str__(self) -> str:
        fixed = sum(item.fixed for item in self.archives)
        outcomes = [counted(item.outcome for item in self.archives), f"manifests fixed: {fixed}" if fixed else ""]
        said = ", ".join(part for part in outcomes if part)
        return "; ".join(part for part in (said, left_to_deployment(self.left, self.environment)) if part)


@dataclass(frozen=True, kw_only=True)
class BuiltArchive:
    """One built archive, to be published under one endpoint's platform."""

    source: ArchiveSource  # what it was built from
    name: ArchiveName  # its model and digest
    place: Place  # under whose prefix it goes
    target: str | None  # what it was built for, where its bytes depend on it
    manifest: Manifest  # as it was built

    @property
    def key(self) -> str:
        return self.place.archive(self.name)


def publish_environment(
    environment: Environment,
    *,
    session: Session,
    local: bool = False,
    places: Places | None = None,
    report: Report = lambda _text: None,
) -> PublishSummary:
    """Put the built archive of every model of every endpoint under the endpoint's platform prefix.

    What is there is left alone: an archive is written once, and the loser of a race uses the winner's. A manifest
    that does not belong to the archive (a publisher ended in between) is fixed. Archives that need a TensorRT engine
    are left to the deployment where the environment's deployment builds them. ``session`` makes the clients for S3
    and SSM; ``local``: they are the local AWS's, which takes archives that only it can serve.

    Raises :class:`InputError` where an archive is not built, would not serve there, or the artifacts stack is not
    deployed, before anything is written; :class:`WorkFailedError` where a file is not what was built (before anything
    is written, too), where AWS refuses, or where a manifest matches neither the stored archive nor the one built here.
    """
    places, name = places or Places.of_project(), environment.environment
    left, archives = _archives(environment, places, local=local)
    bucket = ArtifactBucket(environment=name, session=session)
    advice = f"delete it, then: tritonstack build -e {name}"
    published = publish_archives(archives, bucket=bucket, local=local, places=places, advice=advice, report=report)
    return PublishSummary(bucket=bucket.name, archives=published, left=left, environment=name)


def publish_archives(
    archives: Sequence[BuiltArchive],
    *,
    bucket: ArtifactBucket,
    local: bool,
    places: Places,
    advice: str = "delete it, then build it again:",
    report: Report = lambda _text: None,
) -> tuple[Published, ...]:
    """Put built archives under their platform prefixes, each with inputs, client files and manifest before itself.

    ``local``: whether the bucket is the local AWS's, which takes plans of trtexec's stand-in. ``places``: where they
    were built. ``advice``: what to do about a file that is not what was built, before the model's name.

    Raises :class:`WorkFailedError` where an archive holds a stand-in's plan and the bucket is no local one, a file is
    not what was built, or AWS refuses; nothing is written in the first two cases.
    """
    absent = [archive for archive in archives if bucket.look(archive.key) is None]
    for archive in archives if not local else ():
        refuse_stand_in(archive.manifest, places.archive(archive.name, archive.target) if archive in absent else None)
    _require_intact(absent, places, advice=advice, report=report)
    return tuple(_publish(archive, bucket=bucket, places=places, report=report) for archive in archives)


def stored_manifest(
    bucket: ArtifactBucket, name: ArchiveName, place: Place, stored: StoredObject | None = None
) -> Manifest | None:
    """The manifest of an archive stored at a place, which is looked for unless it is given (``stored``).

    None where there is none, or it belongs to another build's archive: its writer ended, or lost a race, in between.
    """
    content = bucket.read(place.manifest(name))
    stored = stored or bucket.look(place.archive(name))
    try:
        manifest = Manifest.model_validate_json(content) if content is not None else None
    except ValueError:
        return None
    return manifest if manifest is not None and stored is not None and belongs(manifest, stored) else None


def _archives(
    environment: Environment, places: Places, *, local: bool
) -> tuple[tuple[str, ...], tuple[BuiltArchive, ...]]:
    """The names of archives that are left to the deployment, sorted, and the archives to publish.

    Raises :class:`InputError` with what is not built, by target, and one command that builds it.
    """
    archives: list[BuiltArchive] = []
    missing: dict[str | None, set[str]] = {}
    wanted = wanted_archives(environment, places.repositories, local=local)
    left = {each.source.name for each in wanted if each.leaves_engine}
    for endpoint in (of_one for each in environment.endpoints for of_one in each.platform_settings):
        place = Place(endpoint=endpoint.name, platform=endpoint.platform)
        found = [each for each in wanted if each.endpoint == endpoint and not each.leaves_engine]
        refuse_unservable([each.source for each in found], platform=None if local else endpoint.platform)
        for each in sorted(found, key=lambda each: each.source.name):
            name, target = each.name, each.target
            manifest = places.built(name, target)
            if manifest is None:
                missing.setdefault(target, set()).add(name.model)
                continue
            archives.append(BuiltArchive(source=each.source, name=name, place=place, target=target, manifest=manifest))
    if missing:
        problems = [
            Problem(
                file=str(places.archives_for(target)),
                found=f"not built from the model folders as they are now: {', '.join(sorted(names))}",
                allowed="built archives",
            )
            for target, names in sorted(missing.items(), key=lambda item: item[0] or "")
        ]
        problems[-1] = replace(problems[-1], advice=f"tritonstack build -e {environment.environment}")
        raise InputError(problems)
    return tuple(sorted(left)), tuple(archives)


def _require_intact(archives: Sequence[BuiltArchive], places: Places, *, advice: str, report: Report) -> None:
    """Raise :class:`WorkFailedError`, before anything is written, for every archive that is not what was built."""
    said: dict[str, None] = {}
    for key, archive in {(archive.name, archive.target): archive for archive in archives}.items():
        report(f"{archive.name.model}: checking it")
        files = {places.archive(*key): archive.manifest.archive.sha256}
        for name, entry in archive.manifest.client_files.items():
            files[places.client_files(*key) / name] = entry.sha256
        for file, sha256 in files.items():
            if sha256_of(file) != sha256:
                do = f"{advice} {archive.name.model}"
                said[f"{file} is corrupt: its content is not what was built\n  do:      {do}"] = None
    if said:
        raise WorkFailedError("\n".join(said))


def _publish(archive: BuiltArchive, *, bucket: ArtifactBucket, places: Places, report: Report) -> Published:
    report(f"{archive.name.model}: looking for it")
    outcome: ArchiveOutcome
    stored = bucket.look(archive.key)
    if stored is not None:
        outcome = "there already" if belongs(archive.manifest, stored) else "there already from another build"
    else:
        outcome = "published" if _put(archive, bucket=bucket, places=places, report=report) else "another was first"
        stored = bucket.look(archive.key)
        if stored is None:
            raise WorkFailedError(f"s3://{bucket.name}/{archive.key} was removed while it was published; publish again")
    return Published(key=archive.key, outcome=outcome, fixed=_fix_manifest(archive, stored=stored, bucket=bucket))


def _publish_inputs(archive: BuiltArchive, bucket: ArtifactBucket) -> None:
    key = inputs_key(digest=archive.name.digest)
    if bucket.look(key) is not None:
        return
    with temporary_folder("inputs") as folder:
        file = folder / "inputs.tar.gz"
        pack_inputs(archive.source, file)
        bucket.put_once(key, file)


def _put(archive: BuiltArchive, *, bucket: ArtifactBucket, places: Places, report: Report) -> bool:
    """Write inputs, client files, manifest and archive, each unless it is there; False where another was first."""
    _publish_inputs(archive, bucket)
    key, manifest = (archive.name, archive.target), archive.manifest
    for name in manifest.client_files:
        bucket.put_once(archive.place.client_file(archive.name, name), places.client_files(*key) / name)
    bucket.put_once(archive.place.manifest(archive.name), manifest.to_json().encode())
    entry, done = manifest.archive, 0

    def sent(count: int) -> None:
        nonlocal done
        done += count
        report(f"{archive.name.model}: {100 * done // entry.bytes} % of {entry.bytes / 1e6:,.1f} MB")

    # By it the manifest can be checked without reading the archive.
    metadata = {"sha256": entry.sha256, "tar-bytes": str(entry.tar_bytes), "tar-sha256": entry.tar_sha256}
    return bucket.put_once(archive.key, places.archive(*key), metadata=metadata, sent=sent)


def _entry(file: str, stored: StoredObject) -> ArchiveEntry | None:
    """The manifest's entry of an archive from its object's metadata; None without any."""
    metadata = stored.metadata
    try:
        return ArchiveEntry(
            file=file,
            bytes=stored.bytes,
            sha256=metadata["sha256"],
            tar_bytes=int(metadata["tar-bytes"]),
            tar_sha256=metadata["tar-sha256"],
        )
    except (KeyError, ValueError):
        return None


def _fix_manifest(archive: BuiltArchive, *, stored: StoredObject, bucket: ArtifactBucket) -> bool:
    """Make the bucket's manifest describe the bucket's archive; True where it did not.

    It does not where a publisher ended, or lost a race, after its manifest and before its archive. Equal digests have
    equal inputs, so that ours is right but for the archive's own bytes, which its object's metadata has. Nor does one
    whose proof was skipped describe what was proven since.
    """
    key, ours = archive.place.manifest(archive.name), archive.manifest
    kept = stored_manifest(bucket, archive.name, archive.place, stored)
    if kept is not None and (ours.proof_skipped or not kept.proof_skipped):
        return False
    entry = _entry(str(archive.name), stored)
    if entry is None and not belongs(ours, stored):
        raise WorkFailedError(
            f"s3://{bucket.name}/{key} does not belong to the archive {archive.key},\n"
            "  and neither does the manifest that was built here\n"
            "  do:      delete both objects, then publish again"
        )
    if entry and entry != ours.archive:  # another build's, and two builds give two plans: nothing is known of theirs
        figures = {name: value for name, value in ours.figures.items() if not is_engine_figure(name)}
        ours = ours.model_copy(update={"archive": entry, "engines": {}, "figures": figures})
    bucket.put(key, ours.to_json().encode())
    return True
