"""Which archives lie in the bucket, under which endpoint and platform, and what their manifests tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonstack.archives.bucket import ArtifactBucket, StoredObject
from tritonstack.archives.manifest import Manifest
from tritonstack.naming import ArchiveName, Platform, archive_key, manifest_key

ARCHIVES = "endpoints/"


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """Where an archive lies, or shall lie: below an endpoint's platform."""

    endpoint: str
    platform: Platform

    def archive(self, name: ArchiveName) -> str:
        """The key of an archive here."""
        return archive_key(endpoint=self.endpoint, platform=self.platform, archive=name)

    def manifest(self, name: ArchiveName) -> str:
        """The key of its manifest."""
        return manifest_key(endpoint=self.endpoint, platform=self.platform, archive=name)

    def client_file(self, name: ArchiveName, file: str) -> str:
        """The key of one of its client files: below the manifest's own key without its suffix."""
        return f"{self.manifest(name).removesuffix('.json')}/{file}"


def stored_archives(bucket: ArtifactBucket) -> Mapping[ArchiveName, tuple[Place, ...]]:
    """Every archive in the bucket → the places where it lies, sorted: one listing.

    A platform's GPU is in small letters there, as keys spell it.
    """
    found: dict[ArchiveName, set[Place]] = {}
    for row in bucket.keys(ARCHIVES):
        parts = str(row["Key"]).removeprefix(ARCHIVES).split("/")
        name = ArchiveName.parse(parts[-1])
        if name is not None and len(parts) == 3:
            release, _, gpu = parts[1].partition("-")
            found.setdefault(name, set()).add(Place(endpoint=parts[0], platform=Platform(release=release, gpu=gpu)))
    return {name: tuple(sorted(places)) for name, places in found.items()}


def stored_manifest(bucket: ArtifactBucket, name: ArchiveName, place: Place) -> Manifest | None:
    """The manifest of an archive that lies at a place.

    None where there is none, or it tells of another build's archive: its writer ended, or lost a race, in between.
    """
    content = bucket.read(place.manifest(name))
    stored = bucket.look(place.archive(name))
    try:
        manifest = Manifest.model_validate_json(content) if content is not None else None
    except ValueError:
        return None
    return manifest if manifest is not None and stored is not None and belongs(manifest, stored) else None


def belongs(manifest: Manifest, stored: StoredObject) -> bool:
    """Whether a manifest tells of the archive that is stored; by its size alone where the object tells no more."""
    told = stored.metadata.get("sha256")
    return manifest.archive.bytes == stored.bytes and told in (None, manifest.archive.sha256)
