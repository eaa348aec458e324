"""Inputs of an archive in the bucket, by their digest: packed when it is published, unpacked to build it again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.packing import pack
from tritonstack.disk import link_or_copy, partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.models.digest import LIBRARY, REQUIREMENTS, library_files, lock_files, model_digest, sha256_of
from tritonstack.models.recipe import Size, Weights
from tritonstack.models.selection import sources_of
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.models.source_files import files_below
from tritonstack.naming import inputs_key
from tritonstack.paths import setup_command
from tritonstack.untrusted.unpacking import UnpackLimits, UnsafeArchiveError, unpack

REPOSITORIES = "model_repos"

ADVICE = (
    "check out the commit that made the release (`tritonstack releases -e ENVIRONMENT` names it), make its "
    f"environments ({setup_command()}), and run `tritonstack prepare -e ENVIRONMENT` there"
)

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


def source_of_digest(
    model: str, digest: str, *, repositories: Path, bucket: ArtifactBucket, work: Path, choice: BuildChoice
) -> ArchiveSource:
    """The source of a digest: the model folders where they have it, else ``inputs/<digest>.tar.gz``.

    ``work``: a folder for unpacked inputs, kept as long as the source is used. ``choice``: size and weights, tried
    first, since the digest does not record them.

    Raises :class:`InputError` where no inputs are stored, or this checkout cannot build them (another lock file or
    digest); :class:`WorkFailedError` where they are damaged, or AWS refuses.
    """
    own = _with_digest(model, digest, repositories, choice)
    if own is not None:
        return own
    key = inputs_key(digest=digest)
    archive, folder = work / f"{digest}.tar.gz", work / f"inputs-{digest}"
    if not folder.is_dir():
        if not bucket.fetch(key, archive, most_bytes=INPUT_LIMITS.max_bytes):
            found = f"{model}.{digest}, which is not of the model folders as they are, and no {key} in {bucket.name}"
            raise InputError([Problem(found=found, allowed="a digest whose inputs are kept", advice=ADVICE)])
        _unpack(archive, folder, key)
    kept = _with_digest(model, digest, folder / REPOSITORIES, choice)
    if kept is None:
        found = f"{key}, which has another digest here: it is damaged, or another version of tritonstack made it"
        raise InputError([Problem(found=found, allowed=f"the inputs of {model}.{digest}", advice=ADVICE)])
    _refuse_other_locks(kept, repositories.parent / REQUIREMENTS)
    return kept


def _with_digest(model: str, digest: str, repositories: Path, choice: BuildChoice) -> ArchiveSource | None:
    """The archive's source with this digest, of any size and weights; None where there is none."""
    for each in _choices(choice):
        try:
            for source in sources_of(model, repositories, each):
                if source.name == model and model_digest(source) == digest:
                    return source
        except InputError:  # the folder is gone, or not readable any more: it is not this digest's
            continue
    return None


def _choices(first: BuildChoice) -> Iterator[BuildChoice]:
    """The given choice, then all others."""
    yield first
    every = (BuildChoice(size=s, weights=w) for s, w in itertools.product(get_args(Size), get_args(Weights)))
    yield from (each for each in every if each != first)


def _unpack(archive: Path, folder: Path, key: str) -> None:
    """Unpack stored inputs, and remove their archive."""
    try:
        unpack(archive, folder, limits=INPUT_LIMITS)
    except UnsafeArchiveError as error:
        raise WorkFailedError(f"{key}: {error}") from error
    finally:
        archive.unlink(missing_ok=True)


def _refuse_other_locks(source: ArchiveSource, requirements: Path) -> None:
    """Raise :class:`InputError` for every lock file that differs from this checkout's."""
    problems: list[Problem] = []
    for part in (source, *source.used):
        for lock in lock_files(part.folder, part.recipe):
            own = requirements / lock.name
            if own.is_file() and sha256_of(own) == sha256_of(lock):
                continue
            differs = "another here" if own.is_file() else "not there any more"
            found = f"{REQUIREMENTS}/{lock.name} is {differs} than when {source.name} was made"
            allowed = "the same versions: an export of other ones gives another model"
            problems.append(Problem(file=str(own), found=found, allowed=allowed, advice=ADVICE))
    refuse(problems)
