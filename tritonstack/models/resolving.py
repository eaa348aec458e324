"""From the names that people write, of archives or of whole folders, to the sources of archives."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tritonstack.config.yaml_loader import with_lines
from tritonstack.errors import InputError, Problem
from tritonstack.models.recipe import RECIPE, Size, Weights
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of


class Builds(Protocol):
    """An environment's ``builds``."""

    @property
    def size(self) -> Size:
        """How large models are made."""
        ...

    @property
    def weights(self) -> Weights:
        """Whose weights they get."""
        ...


class DeployedBuilds(Builds, Protocol):
    """An environment's ``builds``, as far as it says where archives are built."""

    @property
    def on_deploy(self) -> bool | None:
        """Whether a deployment builds what is missing; None: where an archive needs a TensorRT engine."""
        ...


class HasModels(Protocol):
    """What a release set is made for: an endpoint of the settings."""

    @property
    def models(self) -> Sequence[str]:
        """The names of archives, or of folders, which stand for all their archives."""
        ...


class HasEndpoints(Protocol):
    """An environment of the settings, as far as archives are concerned."""

    @property
    def environment(self) -> str:
        """Its name."""
        ...

    @property
    def builds(self) -> Builds:
        """How its models are made."""
        ...

    @property
    def endpoints(self) -> Sequence[HasModels]:
        """Its endpoints."""
        ...


def leaves_engines(builds: DeployedBuilds) -> bool:
    """Whether archives that need a TensorRT engine are left to the deployment, which has its GPU."""
    return builds.on_deploy is not False


def left_to_deployment(names: Sequence[str], environment: str) -> str:
    """How a summary says it; empty where none is."""
    if not names:
        return ""
    count = f"{len(names)} archives with an engine are" if len(names) > 1 else "1 archive with an engine is"
    return f"{count} built before the deployment: tritonstack prepare {environment}"


def choice_of(environment: HasEndpoints) -> BuildChoice:
    """How an environment's models are made."""
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
    Raises :class:`InputError`: nothing is called so, two things are, or a recipe is wrong.
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
    environment: HasEndpoints, repositories: Path, *, file: Path
) -> Mapping[str, tuple[ArchiveSource, ...]]:
    """Entry of an endpoint's ``models`` → the archives that it means, for every endpoint of an environment.

    Raises :class:`InputError` with every name that means nothing and every wrong recipe, each once; also where one
    endpoint gets an archive from two entries.
    """
    choice = choice_of(environment)
    found: dict[str, tuple[ArchiveSource, ...]] = {}
    problems: dict[Problem, None] = {}
    for index, endpoint in enumerate(environment.endpoints):
        given: dict[str, str] = {}
        for position, entry in enumerate(endpoint.models):
            field = f"endpoints[{index}].models[{position}]"
            try:
                found[entry] = sources_of(entry, repositories, choice, file=str(file), field=field)
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
                continue
            for source in found[entry]:
                if given.setdefault(source.name, entry) != entry:
                    said = f"{entry}, which brings {source.name} a second time beside {given[source.name]}"
                    problem = Problem(file=str(file), field=field, found=said, allowed="each archive once")
                    problems[problem] = None
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
    near = difflib.get_close_matches(name, names, n=1)
    listed = ", ".join([*near, *(other for other in names if other not in near)]) or "none there"
    return Problem(
        file=file,
        field=field,
        found=f"{name}, which no model folder and no archive is called",
        allowed=f"a model folder in {repositories}, or one of its archives: {listed}",
        advice=f"Did you mean {near[0]}?" if near else "",
    )
