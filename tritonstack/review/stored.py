"""The folder of snapshots: written, and read from the working tree or from a commit without a checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.paths import write_text
from tritonstack.review.snapshot import (
    EnvironmentSnapshot,
    Snapshots,
    assets_of,
    assets_text,
    findings_of,
    findings_text,
    stack_of,
    stack_text,
)
from tritonstack.untrusted.foreign_text import parse_json

FOLDER = "snapshots"
ASSETS = "assets.json"
FINDINGS = "findings.json"
WRITE = "tritonstack snapshots"
"""The command that writes them."""


def texts_of(snapshots: Snapshots) -> dict[str, str]:
    """Path in the folder → text, of every file, sorted."""
    texts: dict[str, str] = {}
    for name, environment in snapshots.environments.items():
        for stack in environment.stacks.values():
            texts[f"{name}/{stack.name}.json"] = stack_text(stack)
        texts[f"{name}/{ASSETS}"] = assets_text(environment)
        if environment.findings is not None:
            texts[f"{name}/{FINDINGS}"] = findings_text(environment.findings)
    return dict(sorted(texts.items()))


def write_snapshots(snapshots: Snapshots, folder: Path) -> tuple[str, ...]:
    """Make the folder hold these snapshots and no others. Returns the paths that changed, came or went, sorted.

    Findings of an environment stay where this synthesis ran without validation. Files with another ending stay, too.
    """
    texts = texts_of(snapshots)
    touched = []
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        environment = snapshots.environments.get(name.partition("/")[0])
        unknown = path.name == FINDINGS and environment is not None and environment.findings is None
        if name not in texts and not unknown:
            path.unlink()
            touched.append(name)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
            touched.append(name)
    return tuple(sorted(touched))


def read_snapshots(folder: Path) -> Snapshots:
    """The snapshots in a folder.

    Raises:
        InputError: there are none, or a file is no snapshot.
    """
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.json"))
    }
    return _snapshots(texts, place=str(folder))


def read_snapshots_at(ref: str, *, repository: Path) -> tuple[str, Snapshots]:
    """The commit where HEAD left ``ref`` (the merge base), and the snapshots committed there.

    ``repository``: its root, or a folder in it that holds the snapshots' folder. Raises InputError: no repository, an
    unknown ref, a shallow clone that ends before the merge base, no snapshots there.
    """
    commit = merge_base(ref, repository=repository)
    found = snapshots_at(commit, repository=repository, folder=FOLDER)
    return commit, found or _snapshots({}, place=f"{commit[:12]}:{FOLDER}")


def snapshots_at(commit: str, *, repository: Path, folder: str) -> Snapshots | None:
    """The snapshots that a commit has in a folder; None where it has no such folder.

    Raises:
        InputError: a file there is no snapshot.
    """
    listed = _git(["ls-tree", "-r", "-z", "--name-only", commit, "--", f"{folder}/"], repository).decode()
    names = sorted(name for name in listed.split("\0") if name.endswith(".json"))
    texts = contents_of([(commit, name) for name in names], repository=repository)
    there = {name.removeprefix(f"{folder}/"): text for name, text in zip(names, texts, strict=True) if text is not None}
    return _snapshots(there, place=f"{commit[:12]}:{folder}") if there else None


def _snapshots(texts: Mapping[str, str], *, place: str) -> Snapshots:
    documents: dict[str, dict[str, Any]] = {}
    problems = []
    for name, text in texts.items():
        path = PurePosixPath(name)
        if len(path.parts) != 2:
            continue
        try:
            documents.setdefault(path.parts[0], {})[path.name] = parse_json(text)
        except ValueError as error:
            found, allowed = f"no JSON: {error}", "a snapshot"
            problems.append(Problem(file=f"{place}/{name}", found=found, allowed=allowed, advice=WRITE))
    if not documents and not problems:
        allowed = f"{FOLDER}/<environment>/<stack>.json of every stack"
        advice = f"{WRITE}, then commit them"
        problems.append(Problem(file=place, found="no snapshots", allowed=allowed, advice=advice))
    refuse(problems)
    return Snapshots(environments={name: _environment(name, of, place=place) for name, of in sorted(documents.items())})


def _environment(name: str, files: Mapping[str, Any], *, place: str) -> EnvironmentSnapshot:
    try:
        assets = assets_of(files.get(ASSETS, {}))
        findings = findings_of(files[FINDINGS]) if FINDINGS in files else None
        named = {file.removesuffix(".json"): each for file, each in sorted(files.items())}
        stacks = {
            stack: stack_of(stack, document, assets.get(stack, {}))
            for stack, document in named.items()
            if f"{stack}.json" not in {ASSETS, FINDINGS}
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found, allowed = f"a file that is no snapshot of this version: {error!r}", f"files that `{WRITE}` wrote"
        raise InputError([Problem(file=f"{place}/{name}", found=found, allowed=allowed, advice=WRITE)]) from error
    return EnvironmentSnapshot(name=name, stacks=stacks, findings=findings)


# git: nothing is checked out.


def merge_base(ref: str, *, repository: Path) -> str:
    """The commit where HEAD left ``ref``: its id.

    Raises:
        InputError: no git repository, an unknown ref, no common commit (or one that a shallow clone lacks).
    """
    if _run(["rev-parse", "--git-dir"], repository).returncode != 0:
        allowed, advice = "a clone of the repository", "run it in the clone"
        raise InputError([Problem(file=str(repository), found="no git repository", allowed=allowed, advice=advice)])
    known = _run(["rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"], repository)
    base = _run(["merge-base", known.stdout.decode().strip(), "HEAD"], repository) if known.returncode == 0 else known
    if base.returncode == 0:
        return base.stdout.decode().strip()
    if known.returncode != 0:
        found, allowed = ref, "a branch, a tag or a commit that this clone has"
        advice = f"`git fetch origin {ref.removeprefix('origin/')}`, or another REF"
    else:
        found = f"{ref}, which has no commit in common with HEAD in this clone"
        allowed, advice = "a REF that HEAD was branched from", "another REF"
    if _git(["rev-parse", "--is-shallow-repository"], repository).strip() == b"true":
        advice = (
            "this clone is shallow: `git fetch --unshallow` (in CI: a checkout of the whole history, `fetch-depth: 0`)"
        )
    raise InputError([Problem(field="--base", found=found, allowed=allowed, advice=advice)])


def commits_of(commit: str, path: str, *, repository: Path, most: int) -> tuple[str, ...]:
    """At most ``most`` commits up to ``commit`` that touched a file, newest first; of a shallow clone those it has."""
    log = _git(["log", "--topo-order", f"--max-count={most}", "--format=%H", commit, "--", path], repository)
    return tuple(log.decode().split())


def contents_of(files: Sequence[tuple[str, str]], *, repository: Path) -> tuple[str | None, ...]:
    """The text of each (commit, path from ``repository``), in their order; None where the commit has no such file."""
    if not files:
        return ()
    names = "".join(f"{commit}:./{path}\n" for commit, path in files)
    output = _git(["cat-file", "--batch"], repository, standard_input=names.encode())
    texts: list[str | None] = []
    for _ in files:
        head, _, output = output.partition(b"\n")
        if head.endswith(b" missing"):
            texts.append(None)
            continue
        size = int(head.split()[-1])
        texts.append(output[:size].decode("utf-8"))
        output = output[size + 1 :]
    return tuple(texts)


def _git(arguments: list[str], repository: Path, *, standard_input: bytes = b"") -> bytes:
    ran = _run(arguments, repository, standard_input=standard_input)
    if ran.returncode != 0:
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
