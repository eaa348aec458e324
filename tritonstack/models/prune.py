"""Objects of the bucket that no record or history needs, and archives on this machine that no recipe names."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws_session import Session, code_of
from tritonstack.catalogue import load_catalogue
from tritonstack.disk import partial_folder
from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.execution_environment import environment_stem
from tritonstack.models.exporting import export_digest
from tritonstack.models.inputs import model_digest
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import RECIPE, Size, Weights
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.naming import ArchiveName, inputs_key, release_parameter

DEFAULT_HISTORY = 5
DEFAULT_GRACE_HOURS = 24.0


@dataclass(frozen=True, kw_only=True)
class Unneeded:
    """One archive that may go, and the keys that go with it, the archive's first."""

    archive_key: str
    bytes: int
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PrunePlan:
    """What would be deleted, and how many archives stay."""

    bucket: str
    unneeded: tuple[Unneeded, ...]
    kept: int


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """An archive in the bucket."""

    endpoint: str
    platform: str
    name: ArchiveName
    key: str
    bytes: int
    modified: dt.datetime

    @property
    def manifest_key(self) -> str:
        return f"{self.manifest_folder}.json"

    @property
    def manifest_folder(self) -> str:
        """Below it lie the archive's client files."""
        return f"manifests/{self.endpoint}/{self.platform}/{self.name.model}.{self.name.digest}"


class Pruning:
    """Plans and carries out the pruning of one environment's bucket."""

    def __init__(self, environment: str, *, session: Session) -> None:
        """Raises InputError where the environment's artifacts are not deployed."""
        self.environment = environment
        self.bucket = ArtifactBucket(environment=environment, session=session)
        self.ssm = session.client("ssm")

    def plan(self, *, history: int = DEFAULT_HISTORY, grace_hours: float = DEFAULT_GRACE_HOURS) -> PrunePlan:
        """What may go: every archive that neither a release record nor its last ``history`` earlier values name.

        Archives younger than ``grace_hours`` stay: they may be published and not activated yet. Inputs go with the last
        archive of their digest. Raises :class:`WorkFailedError` where AWS refuses.
        """
        stored = list(self._stored())
        named: dict[tuple[str, str], frozenset[str]] = {}
        for item in stored:
            owner = (item.endpoint, item.name.model)
            if owner not in named:
                named[owner] = self._named(*owner, history)
        oldest_kept = dt.datetime.now(dt.UTC) - dt.timedelta(hours=grace_hours)
        going = [
            item
            for item in stored
            if item.name.digest not in named[item.endpoint, item.name.model] and item.modified < oldest_kept
        ]
        staying = {item.name.digest for item in stored if item not in going}
        return PrunePlan(
            bucket=self.bucket.name,
            unneeded=tuple(self._unneeded(going, staying)),
            kept=len(stored) - len(going),
        )

    def carry_out(self, plan: PrunePlan) -> None:
        """Delete what a plan names: archives first, so that no archive is ever without its manifest."""
        groups = sorted(((index, key) for item in plan.unneeded for index, key in enumerate(item.keys)))
        self.bucket.delete([key for _, key in groups])

    def _stored(self) -> Iterator[_Stored]:
        for entry in self.bucket.keys("endpoints/"):
            parts = entry["Key"].split("/")
            name = ArchiveName.parse(parts[-1])
            if name is not None and len(parts) == 4:
                yield _Stored(
                    endpoint=parts[1],
                    platform=parts[2],
                    name=name,
                    key=entry["Key"],
                    bytes=entry["Size"],
                    modified=entry["LastModified"],
                )

    def _named(self, endpoint: str, model: str, history: int) -> frozenset[str]:
        """The digests of a model's record: its current value and the last ``history`` before it."""
        name = release_parameter(environment=self.environment, endpoint=endpoint, model=model)
        values: list[dict[str, Any]] = []
        try:
            for page in self.ssm.get_paginator("get_parameter_history").paginate(Name=name):
                values += page["Parameters"]
        except (ClientError, BotoCoreError) as error:
            if code_of(error) == "ParameterNotFound":
                return frozenset()
            raise WorkFailedError(f"could not read the history of {name}: {error}") from error
        newest = sorted(values, key=lambda value: value["Version"], reverse=True)
        return frozenset(value["Value"] for value in newest[: history + 1])

    def _unneeded(self, going: list[_Stored], staying: set[str]) -> Iterator[Unneeded]:
        last_of = {item.name.digest: item for item in going}
        for item in going:
            client_files = [entry["Key"] for entry in self.bucket.keys(f"{item.manifest_folder}/")]
            keys = [item.key, item.manifest_key, *client_files]
            if item.name.digest not in staying and last_of[item.name.digest] is item:
                keys.append(inputs_key(digest=item.name.digest))
            yield Unneeded(archive_key=item.key, bytes=item.bytes, keys=tuple(keys))


_BUILT = re.compile(r"(?P<stem>[a-z0-9-]+\.[0-9a-f]{16})(\.tar\.gz|\.json|\.files)")
_EXPORT = re.compile(r"(?P<stem>[a-z0-9-]+\.[0-9a-f]{16})")
_ENVIRONMENT = re.compile(r"(?P<stem>[a-z0-9-]+\.python-\d+\.\d+\.[0-9a-f]{16})(\.tar\.gz|\.tar\.json)")
_SOURCE = re.compile(r"(?P<stem>[0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True)
class UnneededFiles:
    """What belongs together and may go: an archive with its manifest and client files, an export, or a download."""

    paths: tuple[Path, ...]  # files and folders, first the one whose presence means that all is there
    bytes: int  # of all of them


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
    :class:`InputError` where a recipe is wrong: then what it needs is unknown.
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
