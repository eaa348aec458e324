"""Inputs of an archive in the bucket, by their digest: packed when it is published, unpacked to build it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tritonstack.archives.packing import pack
from tritonstack.disk import link_or_copy, partial_folder
from tritonstack.models.source import ArchiveSource
from tritonstack.models.source_files import files_below
from tritonstack.untrusted.unpacking import UnpackLimits

if TYPE_CHECKING:
    pass


from tritonstack.models.digest import LIBRARY, REQUIREMENTS, library_files, lock_files

REPOSITORIES = "model_repos"

INPUT_LIMITS = UnpackLimits(max_bytes=16 << 30, max_members=100_000)
"""Sources are small; weights that are in a folder are sources too."""


def pack_inputs(source: ArchiveSource, target: Path) -> None:
    """Pack the sources of an archive's folder, of the folders it uses, their lock files and the exporters' library.

    Inside: ``model_repos/<folder>/…``, ``model_repos/_exporters/…`` and ``requirements/<environment>.txt``, as the
    repository has them. Files that an export makes are left out.
    """
    members: dict[str, Path] = {}
    _collect(source, members)
    with partial_folder(target.parent, name=".inputs") as folder:
        for name, path in members.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, folder / name)
        pack(folder, target)


def _collect(source: ArchiveSource, members: dict[str, Path]) -> None:
    folder = source.folder
    for name, path in files_below(folder):
        if name not in source.produced:
            members[f"{REPOSITORIES}/{folder.resolve().name}/{name}"] = path
    members |= {f"{REQUIREMENTS}/{lock.name}": lock for lock in lock_files(folder, source.recipe)}
    members |= {f"{REPOSITORIES}/{LIBRARY}/{name}": path for name, path in library_files(source).items()}
    for used in source.used:
        _collect(used, members)
