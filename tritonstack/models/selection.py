"""The archives that names in an environment file, or on the command line, select from the model folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tritonstack.config.yaml_loader import with_lines
from tritonstack.errors import InputError, Problem, collecting, field_of, listing, nearest
from tritonstack.models.digest import model_digest
from tritonstack.models.recipe import RECIPE, Size, Weights
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.naming import ArchiveName

if TYPE_CHECKING:
    from tritonstack.config import Environment


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
    """The archives that ``name`` means: the one that is called so, or all of a folder.

    ``file`` and ``field``: where the name is written, for the message about one that nothing is called.
    Raises :class:`InputError` where nothing is called so, two things are, or a recipe is wrong.
    """
    if (repositories / name).is_dir():
        archives = archives_of(repositories / name, choice)
        return tuple(each for each in archives if each.name == name) or archives
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


def is_made_of_folder(archive: ArchiveName, repositories: Path) -> bool | None:
    """Whether a model folder, as it is now, gives this very archive, in any size and with any weights.

    None where there is no such folder, or its recipe is wrong.
    """
    choices = [BuildChoice(size=size, weights=weights) for size in get_args(Size) for weights in get_args(Weights)]
    try:
        sources = [each for choice in choices for each in sources_of(archive.model, repositories, choice)]
        return archive.digest in {model_digest(each) for each in sources if each.name == archive.model}
    except (InputError, OSError):
        return None


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
                    said = f"{entry}, which brings {source.name} a second time next to {given[source.name]}"
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
