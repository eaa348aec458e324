"""Which archives, exports and downloads on this machine no recipe names as it is now."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from tritonstack.archives.digest import model_digest
from tritonstack.archives.export_options import export_digest
from tritonstack.archives.kept_environment import environment_stem
from tritonstack.archives.partial import partial_folder
from tritonstack.archives.places import Places
from tritonstack.archives.recipe import RECIPE
from tritonstack.archives.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.archives.source_recipe import Size, Weights
from tritonstack.catalogue import load_catalogue

_BUILT = re.compile(r"(?P<stem>[a-z0-9-]+\.[0-9a-f]{16})(\.tar\.gz|\.json|\.files)")
_EXPORT = re.compile(r"(?P<stem>[a-z0-9-]+\.[0-9a-f]{16})")
_ENVIRONMENT = re.compile(r"(?P<stem>[a-z0-9-]+\.python-\d+\.\d+\.[0-9a-f]{16})(\.tar\.gz|\.tar\.json)")
_SOURCE = re.compile(r"(?P<stem>[0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True)
class UnneededFiles:
    """What belongs together and may go: an archive with its manifest and client files, an export, or a download.

    Attributes:
        paths: files and folders, the one first whose presence says that all is there.
        bytes: of all of them.
    """

    paths: tuple[Path, ...]
    bytes: int


@dataclass(frozen=True, kw_only=True)
class LocalPlan:
    """What would be removed, and how many archives, exports and downloads stay."""

    unneeded: tuple[UnneededFiles, ...]
    kept: int


@dataclass(kw_only=True)
class _Needed:
    """The names, without suffixes, of what a build of some recipe would make or read."""

    archives: set[str] = field(default_factory=set)
    exports: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)


def plan_local(places: Places) -> LocalPlan:
    """What may go. What a build of any archive needs stays, in every size, with all weights and for every target.

    Files of other names, such as those of a running build, are neither counted nor touched. Raises
    :class:`InputError` where a recipe is wrong: then nothing tells what it needs.
    """
    needed = _needed(places)
    archives = [places.archives, *(path for path in _entries(places.archives) if path.is_dir())]
    kept, unneeded = 0, []
    for folder, pattern, names in (
        *((folder, _BUILT, needed.archives) for folder in archives if not _BUILT.fullmatch(folder.name)),
        (places.exports, _EXPORT, needed.exports),
        (places.exports, _ENVIRONMENT, needed.exports),
        (places.sources, _SOURCE, needed.sources),
    ):
        for stem, paths in _groups(folder, pattern):
            if stem in names:
                kept += 1
            else:
                unneeded.append(UnneededFiles(paths=paths, bytes=sum(map(_bytes, paths))))
    return LocalPlan(unneeded=tuple(unneeded), kept=kept)


def carry_out_local(plan: LocalPlan) -> None:
    """Remove what a plan names and is still there. Each is moved aside first: nothing half removed counts as whole."""
    for item in plan.unneeded:
        for path in item.paths:
            with suppress(FileNotFoundError), partial_folder(path.parent, name="pruned") as work:
                path.rename(work / path.name)


def _needed(places: Places) -> _Needed:
    needed = _Needed()
    folders = sorted(path.parent for path in places.repositories.glob(f"*/{RECIPE}"))
    choices = [BuildChoice(size=size, weights=weights) for size, weights in itertools.product(*_CHOICES)]
    for folder, choice in itertools.product(folders, choices):
        for source in archives_of(folder, choice):
            needed.archives.add(f"{source.name}.{model_digest(source)}")
            _add_exports(source, needed)
    return needed


_CHOICES: tuple[tuple[Size, ...], tuple[Weights, ...]] = (get_args(Size), get_args(Weights))


def _add_exports(source: ArchiveSource, needed: _Needed) -> None:
    """The exports, environments and downloads of an archive, and of the folders that it uses."""
    name, recipe = source.folder.resolve().name, source.recipe
    for count in range(1, len(recipe.exports) + 1):
        needed.exports.add(f"{name}.{export_digest(source, count=count)}")
    part = recipe.execution_environment
    if part is not None and (source.folder / part.requirements).is_file():
        pythons = {release.python for release in load_catalogue().releases.values()}
        needed.exports |= {environment_stem(source.folder, part, python=python) for python in pythons}
    if recipe.source is not None and recipe.source.sha256 is not None:
        needed.sources.add(recipe.source.sha256)
    for used in source.used:
        _add_exports(used, needed)


def _groups(folder: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Stem → what is called so in a folder, an archive before its manifest and its client files."""
    found: dict[str, list[Path]] = {}
    for path in _entries(folder):
        match = pattern.fullmatch(path.name)
        if match:
            found.setdefault(match["stem"], []).append(path)
    for stem, paths in found.items():
        yield stem, tuple(sorted(paths, key=lambda path: not path.name.endswith(".tar.gz")))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
