"""Where model folders lie, and where their exports and archives are put."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.manifest import Manifest, read_manifest
from tritonstack.local.paths import LocalPaths, project_folder
from tritonstack.naming import ArchiveName


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders that a build works with."""

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

    def folder(self, model: str) -> Path:
        """A model's folder."""
        return self.repositories / model

    def archive(self, name: ArchiveName) -> Path:
        """The file of a built archive."""
        return self.archives / str(name)

    def manifest(self, name: ArchiveName) -> Path:
        """The file of a built archive's manifest."""
        return self.archives / f"{name.model}.{name.digest}.json"

    def built(self, name: ArchiveName) -> Manifest | None:
        """The manifest of an archive that is built whole, or None."""
        try:
            manifest = read_manifest(self.manifest(name))
            return manifest if self.archive(name).stat().st_size == manifest.archive.bytes else None
        except (OSError, ValueError):
            return None
