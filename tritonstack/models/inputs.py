"""Inputs of archives: from the names that people write to sources, their digests, and the archive that keeps them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.config.yaml_loader import with_lines
from tritonstack.disk import link_or_copy, partial_folder
from tritonstack.errors import InputError, Problem, collecting, field_of, listing, nearest, refuse
from tritonstack.models.packing import pack
from tritonstack.models.recipe import RECIPE, Recipe
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of, files_below
from tritonstack.naming import DIGEST_LENGTH
from tritonstack.paths import repository_path
from tritonstack.unpacking import UnpackLimits

if TYPE_CHECKING:
    from tritonstack.config import BuildSettings, Environment


def leaves_engines(builds: BuildSettings) -> bool:
    """Whether archives that need a TensorRT engine are left to the deployment, which has its GPU."""
    return builds.on_deploy is not False


def left_to_deployment(names: Sequence[str], environment: str) -> str:
    """The summary's line about archives that the deployment builds; empty without any."""
    if not names:
        return ""
    count = f"{len(names)} archives with an engine are" if len(names) > 1 else "1 archive with an engine is"
    return f"{count} built before the deployment: tritonstack prepare -e {environment}"


def choice_of(environment: Environment) -> BuildChoice:
    return BuildChoice(size=environment.builds.size, weights=environment.builds.weights)


def sources_of(
    name: str,
    repositories: Path,
    choice: BuildChoice | None = None,
    *,
    file: str | None = None,
    field: str = "",
) -> tuple[ArchiveSource, ...]:
    """The archives that ``name`` means: one archive, or all of a folder.

    ``file`` and ``field``: where the name is written, for the message about one that nothing is called.
    Raises :class:`InputError` where nothing is called so, two things are, or a recipe is wrong.
    """
    if (repositories / name).is_dir():
        return archives_of(repositories / name, choice)
    found = [source for folder in _folders(name, repositories) for source in archives_of(folder, choice)]
    matching = tuple(source for source in found if source.name == name)
    if len(matching) == 1:
        return matching
    if matching:
        folders = " and ".join(str(source.folder) for source in matching)
        problem = Problem(file=file, field=field, found=f"{name}, which is of {folders}", allowed="one archive a name")
    else:
        problem = _unknown(name, repositories, file=file, field=field)
    raise InputError([problem])


def resolved_models(
    environment: Environment, repositories: Path, *, file: Path
) -> Mapping[str, tuple[ArchiveSource, ...]]:
    """Entry of an endpoint's ``models`` → the archives that it means, for every endpoint of an environment.

    Raises :class:`InputError` with every name that means nothing and every wrong recipe, each once; also where one
    endpoint gets an archive from two entries.
    """
    choice = choice_of(environment)
    found: dict[str, tuple[ArchiveSource, ...]] = {}
    problems: list[Problem] = []
    for index, endpoint in enumerate(environment.endpoints):
        given: dict[str, str] = {}
        for place, entry in zip(endpoint.model_places, endpoint.models, strict=True):
            field = field_of(("endpoints", index, *place))
            with collecting(problems):
                found[entry] = sources_of(entry, repositories, choice, file=str(file), field=field)
            for source in found.get(entry, ()):
                if given.setdefault(source.name, entry) != entry:
                    said = f"{entry}, which brings {source.name} a second time beside {given[source.name]}"
                    problems.append(Problem(file=str(file), field=field, found=said, allowed="each archive once"))
    if problems:
        raise InputError(with_lines(problems, file))
    return found


def _folders(name: str, repositories: Path) -> Iterator[Path]:
    """The folders of which ``name`` may be an overlay or a copy."""
    parts = name.split("-")
    for length in range(len(parts) - 1, 0, -1):
        folder = repositories / "-".join(parts[:length])
        if (folder / RECIPE).is_file():
            yield folder


def archive_names(repositories: Path) -> list[str]:
    """The names of every archive below ``repositories``, and of the folders; of wrong recipes the folder's alone."""
    names: list[str] = []
    for folder in sorted(repositories.iterdir()) if repositories.is_dir() else ():
        if not (folder / RECIPE).is_file():
            continue
        try:
            names += dict.fromkeys([folder.name, *(source.name for source in archives_of(folder))])
        except InputError:
            names.append(folder.name)
    return names


def _unknown(name: str, repositories: Path, *, file: str | None, field: str) -> Problem:
    names = archive_names(repositories)
    return Problem(
        file=file,
        field=field,
        found=f"{name}, which no model folder and no archive is called",
        allowed=f"a model folder in {repositories}, or one of its archives: {listing(names, none='none there')}",
        advice=nearest(name, names, most=1),
    )


PACKER_VERSION = 1
"""Raise it when the same inputs are packed into other bytes: every archive gets a new name."""

LIBRARY = "_exporters"
"""The folder beside the model folders that export scripts may import; a project may have none."""

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
    # Without what stands at its default, so that a new field changes no digest.
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
            allowed="an environment with a lock file in requirements/, beside the folder of the models",
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


REPOSITORIES = "model_repos"
REQUIREMENTS = "requirements"

INPUT_LIMITS = UnpackLimits(max_bytes=16 << 30, max_members=100_000)
"""Sources are small; weights that lie in a folder are sources too."""


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
