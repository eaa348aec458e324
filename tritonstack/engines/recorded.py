"""The source of a recorded digest: the repository's own where its digest is that one, else the inputs kept for it."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.digest import LIBRARY as OWN_LIBRARY
from tritonstack.archives.digest import lock_files, model_digest, sha256_of
from tritonstack.archives.inputs import INPUT_LIMITS, LIBRARY, REPOSITORIES, REQUIREMENTS, unzip_inputs
from tritonstack.archives.resolving import sources_of
from tritonstack.archives.source import ArchiveSource, BuildChoice
from tritonstack.archives.source_recipe import Size, Weights
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.naming import inputs_key
from tritonstack.unpacking import UnsafeArchiveError

ADVICE = (
    "check out the commit that made the release (`tritonstack releases ENVIRONMENT` names it), make its environments "
    "(make setup), and run `tritonstack prepare` there"
)

_OF_PACKAGE = ("__init__.py", "errors.py")
"""What the library imports of the rest of the package: not of the digest, so taken from this checkout."""


def source_of_digest(
    model: str, digest: str, *, repositories: Path, bucket: ArtifactBucket, work: Path, choice: BuildChoice
) -> ArchiveSource:
    """The source of a digest, from the model folders where it is theirs, else from ``inputs/<digest>.zip``.

    Args:
        model: the archive's name.
        digest: 16 hexadecimal digits.
        repositories: the folder of the model folders.
        bucket: where inputs are kept.
        work: a folder for what is unpacked, which lives as long as the source is used.
        choice: how the models are made; tried first, since only the digest tells which one it was.

    Raises:
        InputError: no inputs are kept, or this checkout cannot build them: another lock file, or a digest that it works
            out otherwise.
        WorkFailedError: the zip is damaged or not what it is called, or AWS refuses.
    """
    own = _with_digest(model, digest, repositories, choice, library=None)
    if own is not None:
        return own
    key = inputs_key(digest=digest)
    archive, folder = work / f"{digest}.zip", work / f"inputs-{digest}"
    if not folder.is_dir():
        if not bucket.fetch(key, archive, most_bytes=INPUT_LIMITS.max_bytes):
            found = f"{model}.{digest}, which is not of the model folders as they are, and no {key} in {bucket.name}"
            raise InputError([Problem(found=found, allowed="a digest whose inputs are kept", advice=ADVICE)])
        _unpack(archive, folder, key)
    library = folder / LIBRARY
    kept = _with_digest(model, digest, folder / REPOSITORIES, choice, library=library if library.is_dir() else None)
    if kept is None:
        found = f"{key}, which has another digest here: it is damaged, or another version of tritonstack made it"
        raise InputError([Problem(found=found, allowed=f"the inputs of {model}.{digest}", advice=ADVICE)])
    _refuse_other_locks(kept, repositories.parent / REQUIREMENTS)
    return kept


def _with_digest(
    model: str, digest: str, repositories: Path, choice: BuildChoice, *, library: Path | None
) -> ArchiveSource | None:
    """The archive's source that has this digest, made in whatever size and with whatever weights; None: none has."""
    for each in _choices(choice):
        try:
            for source in sources_of(model, repositories, each):
                candidate = dataclasses.replace(source, library=library)
                if candidate.name == model and model_digest(candidate) == digest:
                    return candidate
        except InputError:  # the folder is gone, or not readable any more: it is not this digest's
            continue
    return None


def _choices(first: BuildChoice) -> Iterator[BuildChoice]:
    """The given choice, then all others."""
    yield first
    every = (BuildChoice(size=s, weights=w) for s, w in itertools.product(get_args(Size), get_args(Weights)))
    yield from (each for each in every if each != first)


def _unpack(archive: Path, folder: Path, key: str) -> None:
    """Unpack the kept inputs, and put what their library needs of the package beside it."""
    try:
        unzip_inputs(archive, folder)
    except UnsafeArchiveError as error:
        raise WorkFailedError(f"{key}: {error}") from error
    finally:
        archive.unlink(missing_ok=True)
    library = folder / LIBRARY
    if library.is_dir():
        for name in _OF_PACKAGE:
            shutil.copyfile(OWN_LIBRARY.with_name(name), library.with_name(name))


def _refuse_other_locks(source: ArchiveSource, requirements: Path) -> None:
    """Raise :class:`InputError` for every lock file that this checkout's environments are not made from."""
    problems: dict[Problem, None] = {}
    for part in (source, *source.used):
        for lock in lock_files(part.folder, part.recipe):
            own = requirements / lock.name
            if own.is_file() and sha256_of(own) == sha256_of(lock):
                continue
            differs = "another here" if own.is_file() else "not there any more"
            found = f"{REQUIREMENTS}/{lock.name} is {differs} than when {source.name} was made"
            allowed = "the same versions: an export of other ones gives another model"
            problems[Problem(file=str(own), found=found, allowed=allowed, advice=ADVICE)] = None
    if problems:
        raise InputError(tuple(problems))
