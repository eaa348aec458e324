"""The folder of snapshots: written whole, read from the working tree or from any commit.

``<environment>/<stack>.json`` a stack, ``<environment>/assets.json`` what the stacks deploy beside their templates,
``<environment>/findings.json`` the policy findings, where validation was on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tritonstack.errors import InputError, Problem
from tritonstack.review.git import files_at, merge_base
from tritonstack.review.layout import assets_of, assets_text, findings_of, findings_text, stack_of, stack_text
from tritonstack.review.snapshot import EnvironmentSnapshot, Snapshots

FOLDER = "snapshots"
ASSETS = "assets.json"
FINDINGS = "findings.json"
_MAKE = "`make snapshots` writes them"


def texts_of(snapshots: Snapshots) -> dict[str, str]:
    """Path in the folder → text, of every file, sorted.

    Raises:
        InputError: a stack is called as a file that stands beside the stacks'.
    """
    texts: dict[str, str] = {}
    for name, environment in snapshots.environments.items():
        for stack in environment.stacks.values():
            if f"{stack.name}.json" in {ASSETS, FINDINGS}:
                raise InputError(
                    [Problem(field=f"{name}/{stack.name}", found=stack.name, allowed="any other id of a stack")]
                )
            texts[f"{name}/{stack.name}.json"] = stack_text(stack)
        texts[f"{name}/{ASSETS}"] = assets_text(environment)
        if environment.findings is not None:
            texts[f"{name}/{FINDINGS}"] = findings_text(environment.findings)
    return dict(sorted(texts.items()))


def write_snapshots(snapshots: Snapshots, folder: Path) -> tuple[str, ...]:
    """Make the folder hold these snapshots and nothing else. Returns the paths that changed, came or went, sorted.

    A file that is right already is left alone. Findings of an environment that are there stay where this synthesis ran
    without validation. Files that are no snapshots (another ending, the folder itself) are left alone, too.
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
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(path)
            touched.append(name)
    return tuple(sorted(touched))


def read_snapshots(folder: Path) -> Snapshots:
    """The snapshots in a folder.

    Raises:
        InputError: there are none, or a file is none.
    """
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.json"))
    }
    return _snapshots(texts, place=str(folder))


def read_snapshots_at(ref: str, *, repository: Path, folder: str = FOLDER) -> tuple[str, Snapshots]:
    """The commit where HEAD left ``ref`` (the merge base), and the snapshots committed there.

    Nothing is checked out: old dependencies and credentials are not needed.

    Args:
        ref: a branch, tag or commit: ``origin/main``.
        repository: the repository's root, or a folder in it that holds ``folder``.
        folder: the snapshots' folder.

    Raises:
        InputError: no repository, an unknown ref, a shallow clone that ends before the merge base, no snapshots there.
    """
    commit = merge_base(ref, repository=repository)
    found = snapshots_at(commit, repository=repository, folder=folder)
    return commit, found or _snapshots({}, place=f"{commit[:12]}:{folder}")


def snapshots_at(commit: str, *, repository: Path, folder: str) -> Snapshots | None:
    """The snapshots that a commit has in a folder; None where it has no such folder.

    Args:
        commit: its id.
        repository: the repository's root, or a folder in it that holds ``folder``.
        folder: the snapshots' folder.

    Raises:
        InputError: a file there is no snapshot.
    """
    texts = files_at(commit, folder, repository=repository, ending=".json")
    return _snapshots(texts, place=f"{commit[:12]}:{folder}") if texts else None


def _snapshots(texts: Mapping[str, str], *, place: str) -> Snapshots:
    documents: dict[str, dict[str, Any]] = {}
    problems = []
    for name, text in texts.items():
        path = PurePosixPath(name)
        if len(path.parts) != 2:
            continue
        try:
            documents.setdefault(path.parts[0], {})[path.name] = json.loads(text)
        except ValueError as error:
            problems.append(
                Problem(file=f"{place}/{name}", found=f"no JSON: {error}", allowed="a snapshot", advice=_MAKE)
            )
    if not documents and not problems:
        problems.append(
            Problem(
                file=place,
                found="no snapshots",
                allowed=f"{FOLDER}/<environment>/<stack>.json of every stack",
                advice=f"{_MAKE}; commit them",
            )
        )
    if problems:
        raise InputError(problems)
    return Snapshots(environments={name: _environment(name, of, place=place) for name, of in sorted(documents.items())})


def _environment(name: str, files: Mapping[str, Any], *, place: str) -> EnvironmentSnapshot:
    try:
        assets = assets_of(files.get(ASSETS, {}))
        findings = findings_of(files[FINDINGS]) if FINDINGS in files else None
        stacks = {
            file.removesuffix(".json"): stack_of(
                file.removesuffix(".json"), document, assets.get(file.removesuffix(".json"), {})
            )
            for file, document in sorted(files.items())
            if file not in {ASSETS, FINDINGS}
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            [
                Problem(
                    file=f"{place}/{name}",
                    found=f"a file that is no snapshot of this version: {error!r}",
                    allowed="files that `make snapshots` wrote",
                    advice="`make snapshots`",
                )
            ]
        ) from error
    return EnvironmentSnapshot(name=name, stacks=stacks, findings=findings)
