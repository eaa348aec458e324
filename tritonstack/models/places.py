"""Where model folders lie, and where their exports and archives are put."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.models.manifest import Manifest, read_manifest
from tritonstack.naming import ArchiveName
from tritonstack.paths import LocalPaths, project_folder


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders that a build works with.

    ``target``: what an archive was built for where its bytes depend on it (see ``targets``); such archives lie in a
    folder of their own, since their names are the same for every target. None for all others.
    """

    repositories: Path
    archives: Path
    exports: Path

    @classmethod
    def of_project(cls) -> Places:
        """``model_repos/`` of the project; archives and exports below ``.local/``."""
        local = LocalPaths.from_environment()
        return cls(
            repositories=project_folder() / "model_repos", archives=local.archives, exports=local.root / "exports"
        )

    @property
    def sources(self) -> Path:
        """The folder of downloaded weights, each by its SHA-256: beside the exports, which read them."""
        return self.exports.with_name("sources")

    def folder(self, model: str) -> Path:
        """A model's folder."""
        return self.repositories / model

    def archive(self, name: ArchiveName, target: str | None = None) -> Path:
        """The file of a built archive."""
        return self.archives_for(target) / str(name)

    def manifest(self, name: ArchiveName, target: str | None = None) -> Path:
        """The file of a built archive's manifest."""
        return self.archives_for(target) / f"{name.model}.{name.digest}.json"

    def client_files(self, name: ArchiveName, target: str | None = None) -> Path:
        """The folder of a built archive's client files; there is none where it has none."""
        return self.archives_for(target) / f"{name.model}.{name.digest}.files"

    def archives_for(self, target: str | None) -> Path:
        """The folder of the archives for a target."""
        return self.archives / target if target else self.archives

    def built(self, name: ArchiveName, target: str | None = None) -> Manifest | None:
        """The manifest of an archive that is built whole, with its client files, or None."""
        try:
            manifest = read_manifest(self.manifest(name, target))
            sizes = {self.archive(name, target): manifest.archive.bytes}
            for file, entry in manifest.client_files.items():
                sizes[self.client_files(name, target) / file] = entry.bytes
            return manifest if all(path.stat().st_size == size for path, size in sizes.items()) else None
        except (OSError, ValueError):
            return None
