"""The digest of an archive's inputs: it names the archive before the archive exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem
from tritonstack.models.recipe import RECIPE, Recipe
from tritonstack.models.resolving import HasEndpoints, HasModels, resolved_models, sources_of
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.naming import DIGEST_LENGTH

PACKER_VERSION = 1
"""Raise it when the same inputs are packed into other bytes: every archive gets a new name."""

LIBRARY = Path(__file__).resolve().parents[1] / "exporters"
"""What export scripts import of this project."""

LIBRARY_ENVIRONMENTS = frozenset({"torch", "dali", "tensorflow"})
"""The environments whose scripts do."""

_NOT_OF_AN_ARCHIVE = {"overlays", "copies", "sizes"}


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


def release_set(endpoint: HasModels, repositories: Path, choice: BuildChoice | None = None) -> dict[str, str]:
    """Archive's name → digest for everything that an endpoint serves, in the order of the names.

    ``repositories`` is the folder that holds the model folders. Raises :class:`InputError` with the problems of every
    model at once.
    """
    sources: list[ArchiveSource] = []
    problems: dict[Problem, None] = {}
    for entry in sorted(set(endpoint.models)):
        try:
            sources += sources_of(entry, repositories, choice)
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
    try:
        digests = digests_of(sources)
    except InputError as error:
        problems |= dict.fromkeys(error.problems)
    if problems:
        raise InputError(tuple(problems))
    return digests


def check_model_folders(
    environment: HasEndpoints, repositories: Path, *, file: Path
) -> Mapping[str, tuple[ArchiveSource, ...]]:
    """Refuse an environment whose models have no sound folder below ``repositories``.

    ``file`` is the environment's: a model without a folder is a mistake in it, more likely than in the folders.
    Returns the archives that each entry of ``models`` means. Raises :class:`InputError` with the problems of every
    model of every endpoint, each once.
    """
    resolved = resolved_models(environment, repositories, file=file)
    digests_of(source for sources in resolved.values() for source in sources)
    return resolved


def digests_of(sources: Iterable[ArchiveSource]) -> dict[str, str]:
    """Archive's name → digest, in the order of the names. Raises :class:`InputError` with the problems of all."""
    digests: dict[str, str] = {}
    problems: dict[Problem, None] = {}
    for source in sources:
        try:
            digests[source.name] = model_digest(source)
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise InputError(tuple(problems))
    return dict(sorted(digests.items()))


def lock_files(folder: Path, recipe: Recipe) -> tuple[Path, ...]:
    """The lock files of the environments that a folder's exports run in, sorted, each once."""
    requirements = folder.resolve().parent.parent / "requirements"
    return tuple(requirements / f"{name}.txt" for name in sorted({export.environment for export in recipe.exports}))


def library_files(source: ArchiveSource) -> dict[str, Path]:
    """The files of the exporters' library that a source's export scripts may import: name → path."""
    if LIBRARY_ENVIRONMENTS.isdisjoint(export.environment for export in source.recipe.exports):
        return {}
    return {path.name: path for path in sorted((source.library or LIBRARY).glob("*.py"))}


def _digest(source: ArchiveSource, users: tuple[Path, ...]) -> str:
    recipe = source.recipe
    here = source.folder.resolve()
    if here in users:
        circle = " → ".join(path.name for path in (*users[users.index(here) :], here))
        raise InputError([Problem(file=str(source.folder / RECIPE), field="uses", found=circle, allowed="no circle")])
    return short_digest(
        {
            "packer": PACKER_VERSION,
            "recipe": {name: value for name, value in _plain(recipe).items() if name not in _NOT_OF_AN_ARCHIVE},
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


def _plain(recipe: Recipe) -> dict[str, Any]:
    """The recipe without what stands at its default, so that a new field changes no digest."""
    return recipe.model_dump(mode="json", exclude_defaults=True)


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
            allowed="an environment with a lock file in requirements/, beside the folder of the models",
        )
        for path in files
        if not path.is_file()
    ]
    if problems:
        raise InputError(problems)
    return {path.stem: sha256_of(path) for path in files}


def _hashes(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: sha256_of(path) for name, path in files.items()}


def sha256_of(path: Path) -> str:
    """A file's SHA-256, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
