"""The digest of an archive: a hash of its recipe, sources, lock files, exporters' library and the packer's version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.models.recipe import RECIPE, Recipe
from tritonstack.models.source import ArchiveSource
from tritonstack.models.source_files import files_below
from tritonstack.naming import DIGEST_LENGTH
from tritonstack.paths import repository_path

if TYPE_CHECKING:
    pass


PACKER_VERSION = 1
"""Raise it when the same inputs are packed into other bytes: every archive gets a new name."""

LIBRARY = "_exporters"
"""The folder beside the model folders that export scripts may import; a project may have none."""

REQUIREMENTS = "requirements"
"""The folder of the lock files, beside that of the model folders."""

_NOT_OF_AN_ARCHIVE = {"overlays", "base_archive", "copies", "sizes"}


def model_digest(source: ArchiveSource) -> str:
    """The digest of what an archive is built from: 16 hexadecimal digits.

    It covers the effective recipe, every other file of the folder but those that exports make and those that only other
    overlays name, the folders that the recipe uses, the lock files of the exports' environments, the library that
    their scripts import, the chosen size and weights where the recipe makes a difference between them, and the packer's
    version. It covers neither file modes nor times nor where the folder lies, so it is the same on every machine, and
    it reads no built file.

    Raises :class:`InputError` where a recipe is wrong, a used folder or a lock file is missing, or folders use each
    other in a circle.
    """
    return _digest(source, ())


def digests_of(sources: Iterable[ArchiveSource]) -> dict[str, str]:
    """Archive's name → digest, in the order of the names. Raises :class:`InputError` with the problems of all."""
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for source in sources:
        with collecting(problems):
            digests[source.name] = model_digest(source)
    refuse(problems)
    return dict(sorted(digests.items()))


def lock_files(folder: Path, recipe: Recipe) -> tuple[Path, ...]:
    """The lock files of the environments that a folder's exports run in, sorted, each once.

    A project's own; where it has none, those that this package makes the environments from.
    """
    own, carried = folder.resolve().parent.parent / REQUIREMENTS, repository_path(REQUIREMENTS)
    names = sorted({f"{export.environment}.txt" for export in recipe.exports})
    return tuple(own / name if own.is_dir() else carried / name for name in names)


def library_files(source: ArchiveSource) -> dict[str, Path]:
    """The files that a source's export scripts may import from :data:`LIBRARY`: name → path; none without exports."""
    return dict(files_below(source.folder.parent / LIBRARY)) if source.recipe.exports else {}


def _digest(source: ArchiveSource, users: tuple[Path, ...]) -> str:
    here = source.folder.resolve()
    if here in users:
        circle = " → ".join(path.name for path in (*users[users.index(here) :], here))
        raise InputError([Problem(file=str(source.folder / RECIPE), field="uses", found=circle, allowed="no circle")])
    # Without what is at its default, so that a new field changes no digest.
    recipe = source.recipe.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_OF_AN_ARCHIVE)
    return short_digest(
        {
            "packer": PACKER_VERSION,
            "recipe": recipe,
            "overlay": [source.overlay, *source.fragments],
            "copy": source.copy,
            "size": source.size,
            "weights": source.weights,
            "files": _hashes(source.files()),
            "uses": {used.name: _digest(used, (*users, here)) for used in source.used},
            "locks": lock_digests(source),
            "library": _hashes(library_files(source)),
        }
    )


def short_digest(inputs: Mapping[str, Any]) -> str:
    """The first hexadecimal digits of the SHA-256 of JSON values, whatever the order of their keys."""
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGEST_LENGTH]


def lock_digests(source: ArchiveSource) -> dict[str, str]:
    """Environment of an export → the digest of its lock file. Raises :class:`InputError` where there is none."""
    files = lock_files(source.folder, source.recipe)
    problems = [
        Problem(
            file=str(source.folder / RECIPE),
            field="exports",
            found=f"environment: {path.stem}, and there is no lock file {path}",
            allowed="an environment with a lock file in requirements/, next to the folder of the models",
        )
        for path in files
        if not path.is_file()
    ]
    refuse(problems)
    return {path.stem: sha256_of(path) for path in files}


def _hashes(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: sha256_of(path) for name, path in files.items()}


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
