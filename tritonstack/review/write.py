"""Rewrites the committed snapshots from what is synthesised now, or with ``--check`` reports how they differ.

python -m tritonstack.review.write [--check]
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError
from tritonstack.paths import machine_folder
from tritonstack.review.assembly import read_assembly
from tritonstack.review.change import (
    ABSENT,
    Absent,
    AssetChange,
    Changes,
    DocumentChange,
    Effect,
    EnvironmentChange,
    PropertyChange,
    ResourceChange,
    StackChange,
)
from tritonstack.review.changes import compare
from tritonstack.review.snapshot import Json, Snapshots, readable
from tritonstack.review.stored import FINDINGS, FOLDER, read_snapshots, texts_of, write_snapshots


def synthesise(
    project: Path, outdir: Path, *, validation: bool = True, context: Mapping[str, Any] | None = None
) -> None:
    """Synthesise every environment into ``outdir``.

    Open policy findings are no failure here: the report of them lies in ``outdir``, beside the templates.

    Args:
        project: the folder with ``cdk.json``.
        outdir: the cloud assembly's folder; made where it is not there.
        validation: whether policy findings are looked for, which takes most of the time.
        context: more context values than ``cdk.json`` has.

    Raises:
        InputError: ``project`` has no ``cdk.json`` that names an app, or the app refused its input.
        WorkFailedError: the app failed.
    """
    settings = _settings(project)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    outdir.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(
        shlex.split(settings["app"]),
        cwd=project,
        env={
            **environment,
            "CDK_OUTDIR": str(outdir.resolve()),
            "CDK_CONTEXT_JSON": json.dumps({**settings.get("context", {}), **(context or {})}),
            "CDK_VALIDATION": "true" if validation else "false",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode == 0 or (validation and (outdir / "validation-report.json").is_file()):
        return
    if ran.returncode == InputError.exit_code:
        raise _RefusedByAppError(ran.stderr.strip())
    raise WorkFailedError(f"{settings['app']} failed with {ran.returncode}:\n{ran.stderr.strip()}")


class _RefusedByAppError(InputError):
    """What the app said of its input, word by word."""

    def __init__(self, message: str) -> None:
        super().__init__([Problem(found=message, allowed="input that the app takes")])
        self.args = (message,)


def _settings(project: Path) -> dict[str, Any]:
    path = project / "cdk.json"
    found = "no such file"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and isinstance(document.get("app"), str):
            return document
        found = "no app"
    except FileNotFoundError:
        pass
    except ValueError as error:
        found = f"no JSON: {error}"
    raise InputError([Problem(file=str(path), field="app", found=found, allowed="the command that starts the CDK app")])


_LONGEST = 120


def lines(changes: Changes) -> list[str]:
    """Every change, a resource or a property a line; nothing where nothing changes."""
    return [line for each in changes.environments for line in _environment(each)]


def property_words(change: PropertyChange) -> str:
    """One property: ``ProductionVariants[0].InstanceType: ml.g4dn.xlarge → ml.g5.xlarge``."""
    if change.follows is not None:
        return f"{change.name}: {'follows' if change.certain else 'may follow'} {change.follows}"
    if change.before is ABSENT:
        return f"{change.name}: new, {_short(change.after)}"
    if change.after is ABSENT:
        return f"{change.name}: gone, was {_short(change.before)}"
    return f"{change.name}: {_short(change.before)} → {_short(change.after)}"


def _environment(environment: EnvironmentChange) -> Iterator[str]:
    if environment.effect in {Effect.NEW, Effect.REMOVED}:
        yield f"environment {environment.name}: {environment.effect.value}"
    for stack in environment.stacks:
        yield f"{environment.name}/{stack.name}: {stack.effect.value}"
        yield from (f"  {line}" for line in _stack(stack))
    findings = environment.findings
    told = {
        "found": findings.new,
        "no longer found": findings.gone,
        "accepted": findings.accepted,
        "no longer accepted": findings.no_longer_accepted,
        "accepted for another reason": findings.reworded,
    }
    for word, those in told.items():
        for each in those:
            yield f"{environment.name}/{each.stack} {each.path}: policy finding {word}: {each.rule}"


def _stack(stack: StackChange) -> Iterator[str]:
    yield from stack.reasons
    for resource in stack.resources:
        yield from _resource(resource)
    yield from (property_words(each) for each in stack.template)
    for asset in stack.assets:
        yield _asset(asset)
    for document in stack.documents:
        yield from _document(document)


def _resource(resource: ResourceChange) -> Iterator[str]:
    yield f"{resource.path} ({resource.type}): {resource.effect.value}"
    yield from (f"  {each}" for each in (*resource.reasons, *map(property_words, resource.properties)))
    yield from (f"  {property_words(each)}" for each in resource.attributes)


def _asset(asset: AssetChange) -> str:
    told = {"changed": asset.changed, "new": asset.new, "gone": asset.removed}
    files = "; ".join(f"{word}: {', '.join(names)}" for word, names in told.items() if names)
    return f"{asset.path}: {asset.kind} changed ({files or 'what it is'})"


def _document(document: DocumentChange) -> Iterator[str]:
    for each in document.members:
        yield f"{document.path}: {property_words(each)}"
    if not document.members:
        yield f"{document.path}: {'new' if document.before is ABSENT else 'gone'}"


def _short(value: Json | Absent) -> str:
    text = readable(value) if value != "" else '""'
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


COMMAND = "make snapshots"


def out_of_date(synthesised: Snapshots, folder: Path) -> list[str]:
    """What differs between the snapshots in ``folder`` and what was synthesised; nothing where they are the same.

    Lines in words, of which the last says what to do. Findings are not looked at where this synthesis ran without
    validation.

    Raises:
        InputError: ``folder`` holds no snapshots.
    """
    committed = read_snapshots(folder)
    wanted = texts_of(synthesised)
    unknown = {f"{name}/{FINDINGS}" for name, each in synthesised.environments.items() if each.findings is None}
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")}
    differing = sorted(
        name
        for name in (wanted.keys() | there.keys()) - unknown
        if name not in there or name not in wanted or there[name].read_text(encoding="utf-8") != wanted[name]
    )
    if not differing:
        return []
    told = lines(compare(committed, synthesised))
    if not told:
        told = [f"{name}: the same content, written otherwise" for name in differing]
    return [*told, f"Run `{COMMAND}`, look at the difference, and commit {folder.name}/ with the change that made it."]


ROOT = machine_folder()


def main(arguments: list[str]) -> int:
    """Synthesise with validation, and write or check.

    Returns 0, an error's exit code after its message, or with ``--check`` 1 where the snapshots are out of date.
    """
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return InputError.exit_code
    try:
        with tempfile.TemporaryDirectory(prefix="snapshots-") as name:
            synthesise(ROOT, Path(name))
            snapshots = read_assembly(Path(name))
        return check(snapshots) if arguments else write(snapshots)
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def check(snapshots: Snapshots) -> int:
    """Say what differs from the committed snapshots. Returns 1 where anything does, else 0."""
    told = out_of_date(snapshots, ROOT / FOLDER)
    print("\n".join(told or [f"{FOLDER}/ is what is synthesised now."]))
    return 1 if told else 0


def write(snapshots: Snapshots) -> int:
    """Write them, and say which files changed. Returns 0."""
    touched = write_snapshots(snapshots, ROOT / FOLDER)
    for path in touched:
        print(f"{FOLDER}/{path}{'' if (ROOT / FOLDER / path).is_file() else ' (removed)'}")
    stacks = sum(len(each.stacks) for each in snapshots.environments.values())
    print(f"{stacks} stacks of {len(snapshots.environments)} environments: {len(touched)} files written or removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
