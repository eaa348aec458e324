"""The commit that a model's inputs come from, by git, and no network.

The result goes into release records for people to read; nothing depends on it.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonstack.models.digest import LIBRARY, lock_files
from tritonstack.models.source import ArchiveSource

UNCOMMITTED = "uncommitted"
"""The working tree differs from HEAD in an input."""
UNKNOWN = "unknown"
"""There is no git, the folder is in no repository, or its history is cut off (a shallow clone) before the answer."""

# A partial clone would fetch what it lacks: there the commit is unknown.
_GIT = ("git", "--no-optional-locks", "-c", "protocol.allow=never", "-c", "log.showSignature=false")
# Against the first parent alone: a merged change is the merge's. Of the decorations only "grafted" stays: the commit
# where a shallow clone's history begins, and where every file looks new.
_LOG = ("-c", "log.follow=false", "log", "-1", "--first-parent", "--format=%H %D", "--decorate-refs-exclude=*")
_STATUS = ("status", "--porcelain", "--untracked-files=all")


def commits_of(sources: Mapping[str, ArchiveSource], repositories: Path) -> dict[str, str]:
    """Archive's name → the last commit that touched its inputs, in 40 hexadecimal digits, or one of the words above.

    Inputs are what the digest covers: the model's folder, the folders that it uses, lock files, and the library of the
    export scripts, as far as they are in the repository. ``repositories``: the folder of the model folders.
    """
    here = repositories.resolve()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if top is None:
        return dict.fromkeys(sorted(sources), UNKNOWN)
    return {name: _commit(top, frozenset(_inputs_of(source, top))) for name, source in sorted(sources.items())}


def _inputs_of(source: ArchiveSource, top: Path) -> Iterator[str]:
    """The inputs below ``top``, and what in their folders is none, as path specifications of git."""
    folder = source.folder.resolve()
    library = [folder.parent / LIBRARY] if source.recipe.exports else []
    for path in (folder, *library, *(lock.resolve() for lock in lock_files(folder, source.recipe))):
        if path.is_relative_to(top):
            yield f":(literal){path.relative_to(top).as_posix()}"
            if path == folder:
                left_out = (path / name for name in source.produced | source.other_fragments)
                yield from (f":(exclude,literal){each.relative_to(top).as_posix()}" for each in left_out)
    for used in source.used:
        yield from _inputs_of(used, top)


@functools.cache
def _commit(top: Path, inputs: frozenset[str]) -> str:
    """The last commit of these inputs; the copies of a folder have the same ones."""
    # A hook's variables would name another repository than the folder's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        command = [*_GIT, *arguments, "--", *sorted(inputs)]
        environ = {**environment, "GIT_NO_LAZY_FETCH": "1"}
        done = subprocess.run(command, cwd=top, env=environ, capture_output=True, check=True)
        return done.stdout.decode(errors="replace")

    if not any(each.startswith(":(literal)") for each in inputs):
        return UNKNOWN
    try:
        commit, _, decorations = git(*_LOG).strip().partition(" ")
        if git(*_STATUS):
            return UNCOMMITTED
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN  # no git on this machine, no commit yet, or a repository of another user
    return UNKNOWN if "grafted" in decorations or not commit else commit
