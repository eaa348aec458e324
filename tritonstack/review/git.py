"""What git holds at a commit, read without a checkout."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tritonstack.errors import InputError, Problem, WorkFailedError

_PLACE = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def merge_base(ref: str, *, repository: Path) -> str:
    """The commit where HEAD left ``ref``: its id.

    Raises:
        InputError: no git repository, an unknown ref, no common commit (in a shallow clone that history is not there).
    """
    _git(["rev-parse", "--git-dir"], repository, refuse=_no_repository)
    known = _run(["rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"], repository)
    shallow = _git(["rev-parse", "--is-shallow-repository"], repository).strip() == b"true"
    deeper = "this clone is shallow: `git fetch --unshallow` (in CI: a checkout of the whole history, `fetch-depth: 0`)"
    if known.returncode != 0:
        raise InputError(
            [
                Problem(
                    field="--base",
                    found=ref,
                    allowed="a branch, a tag or a commit that this clone has",
                    advice=deeper if shallow else f"`git fetch origin {ref.removeprefix('origin/')}`, or another REF",
                )
            ]
        )
    base = _run(["merge-base", known.stdout.decode().strip(), "HEAD"], repository)
    if base.returncode != 0:
        raise InputError(
            [
                Problem(
                    field="--base",
                    found=f"{ref}, which has no commit in common with HEAD in this clone",
                    allowed="a REF that HEAD was branched from",
                    advice=deeper if shallow else "another REF",
                )
            ]
        )
    return base.stdout.decode().strip()


def files_at(commit: str, folder: str, *, repository: Path, ending: str) -> dict[str, str]:
    """Path in ``folder`` → text, of every file there that ends so; empty where the commit has no such folder.

    Args:
        commit: its id.
        folder: from ``repository``.
        repository: the repository's root or a folder inside.
        ending: ``.json``.
    """
    listed = _git(["ls-tree", "-r", "-z", "--name-only", commit, "--", f"{folder}/"], repository).decode()
    names = [name for name in listed.split("\0") if name.endswith(ending)]
    if not names:
        return {}
    asked = "".join(f"{commit}:./{name}\n" for name in names)
    told = _git(["cat-file", "--batch"], repository, standard_input=asked.encode())
    texts = {}
    for name in names:
        head, _, told = told.partition(b"\n")
        size = int(head.split()[-1])
        texts[name.removeprefix(f"{folder}/")] = told[:size].decode("utf-8")
        told = told[size + 1 :]
    return dict(sorted(texts.items()))


def commits_of(commit: str, path: str, *, repository: Path, most: int) -> tuple[str, ...]:
    """The commits up to ``commit`` that touched a file, newest first; in a shallow clone those that it has.

    Args:
        commit: its id.
        path: the file's, from ``repository``.
        repository: the repository's root or a folder inside.
        most: how many at most.
    """
    told = _git(["log", "--topo-order", f"--max-count={most}", "--format=%H", commit, "--", path], repository)
    return tuple(told.decode().split())


def contents_of(files: Sequence[tuple[str, str]], *, repository: Path) -> tuple[str | None, ...]:
    """The text of each (commit, path from ``repository``), in their order; None where the commit has no such file."""
    if not files:
        return ()
    asked = "".join(f"{commit}:./{path}\n" for commit, path in files)
    told = _git(["cat-file", "--batch"], repository, standard_input=asked.encode())
    texts: list[str | None] = []
    for _ in files:
        head, _, told = told.partition(b"\n")
        if head.endswith(b" missing"):
            texts.append(None)
            continue
        size = int(head.split()[-1])
        texts.append(told[:size].decode("utf-8"))
        told = told[size + 1 :]
    return tuple(texts)


def changed_lines(commit: str, *, repository: Path) -> dict[str, tuple[tuple[int, int], ...]]:
    """File → first and last line of each place that changed since a commit, as the working tree has them.

    A place where lines only went is the line before it. Files that are gone, and those that git does not know, are out.

    Args:
        commit: its id.
        repository: the repository's root or a folder inside, from which files are named.
    """
    options = ["--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-prefix"]
    told = _git(["-c", "core.quotePath=false", "diff", *options, "--relative", commit, "--"], repository)
    found: dict[str, list[tuple[int, int]]] = {}
    file = ""
    for line in told.decode("utf-8", errors="replace").splitlines():
        if line.startswith("+++ "):
            file = "" if line == "+++ /dev/null" else line.removeprefix("+++ ").rstrip("\t")
        elif file and (place := _PLACE.match(line)):
            first, count = int(place[1]), int(place[2] or 1)
            found.setdefault(file, []).append((max(first, 1), max(first + count - 1, first, 1)))
    return {name: tuple(places) for name, places in sorted(found.items())}


def _git(arguments: list[str], repository: Path, *, standard_input: bytes = b"", refuse: object = None) -> bytes:
    ran = _run(arguments, repository, standard_input=standard_input)
    if ran.returncode != 0:
        if refuse is _no_repository:
            raise InputError([_no_repository(repository)])
        raise WorkFailedError(f"git {' '.join(arguments)}: {ran.stderr.decode(errors='replace').strip()}")
    return ran.stdout


def _run(arguments: list[str], repository: Path, *, standard_input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    # A hook's variables would name another repository than the folder's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", "--no-optional-locks", *arguments],
            cwd=repository,
            env={**environment, "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"},
            input=standard_input,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise InputError([Problem(found="no git on PATH", allowed="git", advice="install git")]) from error


def _no_repository(folder: Path) -> Problem:
    return Problem(
        file=str(folder), found="no git repository", allowed="a clone of the repository", advice="run it in the clone"
    )
