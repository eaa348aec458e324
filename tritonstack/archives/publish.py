"""Built archives → the environment's bucket: inputs, then the manifest, then the archive, whose key commits it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tritonstack.archives.bucket import ArtifactBucket, Session, default_session
from tritonstack.archives.digest import release_set
from tritonstack.archives.inputs import zip_inputs
from tritonstack.archives.places import Places
from tritonstack.archives.programs import Report
from tritonstack.errors import InputError, Problem
from tritonstack.naming import ArchiveName, Platform, archive_key, inputs_key, manifest_key

Outcome = Literal["published", "there already", "another was first"]


class PublishedEndpoint(Protocol):
    """An endpoint of the settings, as far as publishing is concerned."""

    @property
    def name(self) -> str:
        """Its name within the environment."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models."""
        ...

    @property
    def platform(self) -> Platform:
        """What its archives are built for."""
        ...


class PublishedEnvironment(Protocol):
    """An environment of the settings, as far as publishing is concerned."""

    @property
    def environment(self) -> str:
        """Its name."""
        ...

    @property
    def endpoints(self) -> tuple[PublishedEndpoint, ...]:
        """Its endpoints."""
        ...


@dataclass(frozen=True, kw_only=True)
class Published:
    """What became of one archive under one endpoint's platform."""

    key: str
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class PublishSummary:
    """What became of every archive of an environment."""

    bucket: str
    archives: tuple[Published, ...]

    def __str__(self) -> str:
        outcomes = [item.outcome for item in self.archives]
        kinds: tuple[Outcome, ...] = ("published", "there already", "another was first")
        return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds if kind in outcomes)


@dataclass(frozen=True, kw_only=True)
class _Archive:
    """One archive on its way to one endpoint's platform."""

    name: ArchiveName
    endpoint: str
    platform: Platform

    @property
    def key(self) -> str:
        return archive_key(endpoint=self.endpoint, platform=self.platform, archive=self.name)

    @property
    def manifest_key(self) -> str:
        return manifest_key(endpoint=self.endpoint, platform=self.platform, archive=self.name)


def publish_environment(
    environment: PublishedEnvironment,
    *,
    session: Session | None = None,
    places: Places | None = None,
    report: Report = lambda _text: None,
) -> PublishSummary:
    """Put the built archive of every model of every endpoint under the endpoint's platform prefix.

    What lies there is left alone: an archive is written once, and the loser of a race uses the winner's. ``session``
    makes the clients for S3 and SSM; by default the process's own AWS settings do.

    Raises :class:`InputError` where an archive is not built or the artifacts stack is not deployed, before anything is
    written; :class:`WorkFailedError` where AWS refuses.
    """
    places = places or Places.of_project()
    archives = tuple(_archives(environment, places))
    _require_built(archives, places)
    bucket = ArtifactBucket(environment=environment.environment, session=session or default_session())
    published = tuple(_publish(archive, bucket, places, report) for archive in archives)
    return PublishSummary(bucket=bucket.name, archives=published)


def _archives(environment: PublishedEnvironment, places: Places) -> Iterator[_Archive]:
    for endpoint in environment.endpoints:
        for model, digest in release_set(endpoint, places.repositories).items():
            name = ArchiveName(model=model, digest=digest)
            yield _Archive(name=name, endpoint=endpoint.name, platform=endpoint.platform)


def _require_built(archives: tuple[_Archive, ...], places: Places) -> None:
    missing = sorted(
        {a.name for a in archives if not (places.archive(a.name).is_file() and places.manifest(a.name).is_file())}
    )
    if missing:
        models = " ".join(sorted({name.model for name in missing}))
        raise InputError(
            [
                Problem(
                    file=str(places.archive(name)),
                    found="not built from the model folder as it is now",
                    allowed="a built archive",
                    advice=f"tritonstack build {models}",
                )
                for name in missing
            ]
        )


def _publish(archive: _Archive, bucket: ArtifactBucket, places: Places, report: Report) -> Published:
    report(f"{archive.name.model}: looking for it")
    if bucket.exists(archive.key):
        return Published(key=archive.key, outcome="there already")
    _publish_inputs(archive.name, bucket, places)
    manifest = places.manifest(archive.name).read_bytes()
    manifest_is_ours = bucket.put_once(archive.manifest_key, manifest)
    file = places.archive(archive.name)
    total, done = file.stat().st_size, 0

    def sent(count: int) -> None:
        nonlocal done
        done += count
        report(f"{archive.name.model}: {100 * done // total} % of {total / 1e6:,.1f} MB")

    if not bucket.put_once(archive.key, file, sent=sent):
        return Published(key=archive.key, outcome="another was first")
    if not manifest_is_ours and bucket.read(archive.manifest_key) != manifest:
        # Left by a publisher that was interrupted or lost the race: the archive that counts is ours.
        bucket.put(archive.manifest_key, manifest)
    return Published(key=archive.key, outcome="published")


def _publish_inputs(name: ArchiveName, bucket: ArtifactBucket, places: Places) -> None:
    key = inputs_key(digest=name.digest)
    if bucket.exists(key):
        return
    with tempfile.TemporaryDirectory(prefix="inputs-") as folder:
        file = Path(folder) / "inputs.zip"
        zip_inputs(places.folder(name.model), file)
        bucket.put_once(key, file)
