"""The commit that a model's inputs come from, by one ``git log`` for a whole repository, and no network.

The result goes into release records for people to read; nothing depends on it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack.models.inputs import LIBRARY, library_files, lock_files
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import ArchiveSource

UNCOMMITTED = "uncommitted"
"""The working tree differs from HEAD in an input."""
UNKNOWN = "unknown"
"""There is no git, the folder is in no repository, or its history is cut off (a shallow clone) before the answer."""

_LOG = (
    *("git", "--no-optional-locks", "-c", "core.quotePath=false", "-c", "log.showRoot=true", "-c", "log.follow=false"),
    # A partial clone would fetch what it lacks: there the answer is not known.
    *("-c", "protocol.allow=never", "-c", "log.showSignature=false", "-c", "log.mailmap=false", "log"),
    # Against the first parent alone, so that the newest entry of a path is what HEAD holds, whatever was merged.
    *("-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "-m", "--first-parent", "--no-color"),
    # Of the decorations only "grafted" stays: the commit where a shallow clone's history begins.
    *("--format=%H %D", "--decorate-refs-exclude=*"),
)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """The newest change of a path."""

    age: int  # how many commits back, counted among those that touch inputs
    commit: str  # its id; UNKNOWN at the edge of a shallow clone, where every file looks new
    blob: str | None  # the id of the content that HEAD has; None where HEAD has no such path


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    """An archive's inputs: the files as they are, and the folders where a file that is gone was one, too."""

    files: frozenset[Path]
    folders: tuple[Path, ...]
    left_out: frozenset[Path]

    def had(self, path: Path) -> bool:
        """Whether ``path``, which is no file now, was an input."""
        return path not in self.left_out and any(path.is_relative_to(folder) for folder in self.folders)


def commits_of(sources: Mapping[str, ArchiveSource], repositories: Path) -> dict[str, str]:
    """Archive's name → the last commit that touched its inputs, in 40 hexadecimal digits, or one of the words above.

    Inputs are what the digest covers: the model's folder, the folders that it uses, lock files, and the library of the
    export scripts, as far as they lie in the repository. ``repositories``: the folder of the model folders.
    """
    history = _history(repositories.resolve())
    return {name: UNKNOWN if history is None else history.commit_of(source) for name, source in sorted(sources.items())}


class _History:
    """The newest change of every path in the inputs' folders."""

    def __init__(self, top: Path, changes: Mapping[Path, _Change]) -> None:
        self._top = top
        self._changes = changes
        self._gone = [path for path in changes if not path.is_file()]
        self._found: dict[tuple[Path, str | None], str] = {}
        self._same: dict[Path, bool] = {}

    def commit_of(self, source: ArchiveSource) -> str:
        """The commit of one archive's inputs; the copies of a folder have the same ones."""
        key = (source.folder, source.overlay)
        if key not in self._found:
            self._found[key] = self._commit_of(_inputs_of(source))
        return self._found[key]

    def _commit_of(self, inputs: _Inputs) -> str:
        paths = [path for path in inputs.files if path.is_relative_to(self._top)]
        gone = [path for path in self._gone if inputs.had(path)]
        if not all(self._is_as_in_head(path) for path in paths) or any(self._changes[path].blob for path in gone):
            return UNCOMMITTED
        changes = [self._changes[path] for path in (*paths, *gone)]
        return min(changes, key=lambda change: change.age).commit if changes else UNKNOWN

    def _is_as_in_head(self, path: Path) -> bool:
        if path not in self._same:
            change = self._changes.get(path)
            self._same[path] = change is not None and change.blob == _blob(path)
        return self._same[path]


def _inputs_of(source: ArchiveSource) -> _Inputs:
    folder = source.folder.resolve()
    library = {path.resolve() for path in library_files(source).values()}
    locks = {path.resolve() for path in lock_files(folder, source.recipe)}
    files = {folder / RECIPE, *(folder / name for name in source.files()), *library, *locks}
    folders = [folder, *([folder.parent / LIBRARY] if source.recipe.exports else [])]
    left_out = {folder / name for name in source.produced | source.other_fragments}
    for used in map(_inputs_of, source.used):
        files |= used.files
        folders += used.folders
        left_out |= used.left_out
    return _Inputs(files=frozenset(files), folders=tuple(folders), left_out=frozenset(left_out))


@functools.cache
def _history(repositories: Path) -> _History | None:
    """The history of the inputs' folders; None where git has none."""
    top = next((folder for folder in (repositories, *repositories.parents) if (folder / ".git").exists()), None)
    if top is None:
        return None
    folders = [repositories, repositories.parent / "requirements"]
    names = [folder.relative_to(top).as_posix() for folder in folders if folder.is_relative_to(top)]
    # A hook's variables would name another repository than the folder's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        log = subprocess.run(
            [*_LOG, "--", *names],
            cwd=top,
            env={**environment, "GIT_NO_LAZY_FETCH": "1"},
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None  # no git on this machine, no commit yet, or a repository of another user
    return _History(top, {top / name: change for name, change in _changes(log.stdout.decode(errors="replace"))})


def _changes(log: str) -> Iterator[tuple[str, _Change]]:
    """Each path of ``git log --raw -z`` with its newest change: an entry is ``:modes ids letter``, then the path."""
    seen: set[str] = set()
    age, commit = 0, UNKNOWN
    tokens = iter(log.split("\0"))
    for token in tokens:
        entry = token.lstrip("\n")
        if entry.startswith(":"):
            name, blob = next(tokens), entry.split()[3]
            if name not in seen:
                seen.add(name)
                yield name, _Change(age=age, commit=commit, blob=blob if blob.strip("0") else None)
        elif entry:
            age, (commit, _, decorations) = age + 1, entry.partition(" ")
            commit = UNKNOWN if "grafted" in decorations else commit


def _blob(path: Path) -> str:
    """The id that git gives a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
