"""The digest of a model folder's inputs: it names the archive before the archive exists."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tritonstack.archives.folder import files_below
from tritonstack.archives.recipe import RECIPE, Recipe, read_recipe
from tritonstack.errors import InputError, Problem
from tritonstack.naming import DIGEST_LENGTH

PACKER_VERSION = 1
"""Raise it when the same inputs are packed into other bytes: every archive gets a new name."""


class HasModels(Protocol):
    """What a release set is made for: an endpoint of the settings."""

    @property
    def models(self) -> Sequence[str]:
        """The names of model folders."""
        ...


class HasEndpoints(Protocol):
    """An environment of the settings, as far as archives are concerned."""

    @property
    def environment(self) -> str:
        """Its name."""
        ...

    @property
    def endpoints(self) -> Sequence[HasModels]:
        """Its endpoints."""
        ...


def model_digest(folder: Path) -> str:
    """The digest of what an archive is built from: 16 hexadecimal digits.

    It covers the recipe with its options, every other file of the folder but those that the export makes, the folders
    that the recipe uses, the lock file of the export's environment, and the packer's version. It covers neither file
    modes nor times nor where the folder lies, so it is the same on every machine, and it reads no built file.

    Raises :class:`InputError` where a recipe is wrong, a used folder or a lock file is missing, or folders use each
    other in a circle.
    """
    return _digest(folder, ())


def release_set(endpoint: HasModels, repositories: Path) -> dict[str, str]:
    """Model name → digest for every model of an endpoint, in the order of the names.

    ``repositories`` is the folder that holds the model folders. Raises :class:`InputError` with the problems of every
    model at once.
    """
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for name in sorted(set(endpoint.models)):
        try:
            digests[name] = model_digest(repositories / name)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return digests


def check_model_folders(environment: HasEndpoints, repositories: Path, *, file: Path) -> None:
    """Refuse an environment whose models have no sound folder below ``repositories``.

    ``file`` is the environment's: a model without a folder is a mistake in it, more likely than in the folders.
    Raises :class:`InputError` with the problems of every model of every endpoint, each once.
    """
    problems: dict[Problem, None] = {}
    for index, endpoint in enumerate(environment.endpoints):
        for position, model in enumerate(endpoint.models):
            if not (repositories / model).is_dir():
                field = f"endpoints[{index}].models[{position}]"
                problems[_no_folder(model, repositories, file=file, field=field)] = None
                continue
            try:
                model_digest(repositories / model)
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
    if problems:
        raise InputError(tuple(problems))


def _no_folder(model: str, repositories: Path, *, file: Path, field: str) -> Problem:
    beside = repositories.iterdir() if repositories.is_dir() else ()
    names = sorted(path.name for path in beside if (path / RECIPE).is_file())
    near = difflib.get_close_matches(model, names, n=1)
    listed = ", ".join([*near, *(name for name in names if name not in near)]) or "none there"
    return Problem(
        file=str(file),
        field=field,
        found=f"{model}, of which there is no folder",
        allowed=f"a model folder in {repositories}: {listed}",
        advice=f"Did you mean {near[0]}?" if near else "",
    )


def lock_files(folder: Path, recipe: Recipe) -> tuple[Path, ...]:
    """The lock files of the environments that a folder's exports run in, sorted, each once."""
    requirements = folder.resolve().parent.parent / "requirements"
    return tuple(requirements / f"{name}.txt" for name in sorted({export.environment for export in recipe.exports}))


def _digest(folder: Path, users: tuple[Path, ...]) -> str:
    recipe = read_recipe(folder)
    here = folder.resolve()
    if here in users:
        circle = " → ".join(path.name for path in (*users[users.index(here) :], here))
        raise InputError([Problem(file=str(folder / RECIPE), field="uses", found=circle, allowed="no circle")])
    inputs = {
        "packer": PACKER_VERSION,
        "files": {name: _sha256(path) for name, path in files_below(folder) if name not in recipe.produced},
        "uses": {used.folder: _digest(folder.parent / used.folder, (*users, here)) for used in recipe.uses},
        "locks": _locks(folder, recipe),
    }
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGEST_LENGTH]


def _locks(folder: Path, recipe: Recipe) -> dict[str, str]:
    files = lock_files(folder, recipe)
    problems = [
        Problem(
            file=str(folder / RECIPE),
            field="exports",
            found=f"environment: {path.stem}, and there is no lock file {path}",
            allowed="an environment with a lock file in requirements/, beside the folder of the models",
        )
        for path in files
        if not path.is_file()
    ]
    if problems:
        raise InputError(problems)
    return {path.stem: _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
