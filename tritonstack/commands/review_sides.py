"""The two sides that ``tritonstack review`` compares: what the base has committed, and what is synthesised now."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.pipeline.snapshot import CONTEXT, FOLDER, SETTINGS, added_by_pipeline
from tritonstack.review.assembly import read_assembly
from tritonstack.review.joining import NOTHING, joined, no_better_known, same_but_open, without
from tritonstack.review.report import Base
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import read_snapshots_at, snapshots_at
from tritonstack.review.write import synthesise


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What is compared.

    Attributes:
        before: at the base.
        after: now.
        notes: what of them cannot be compared.
    """

    before: Snapshots
    after: Snapshots
    notes: tuple[str, ...] = ()


def base_of(named: str | Sequence[str], project: Path) -> tuple[Base, Snapshots]:
    """What to compare with, and its environments: what was named, or the first of some defaults that the clone has.

    Raises:
        InputError: none of them can be compared with.
    """
    problems: list[Problem] = []
    for ref in [named] if isinstance(named, str) else named:
        try:
            commit, snapshots = read_snapshots_at(ref, repository=project)
        except InputError as error:
            problems += error.problems
        else:
            return Base(ref=ref, commit=commit, chosen=isinstance(named, str)), snapshots
    raise InputError(list(dict.fromkeys(problems)))


def sides_of(base: Base, environments: Snapshots, *, project: Path, assembly: Path | None) -> Sides:
    """Both sides, with what the project's pipeline adds to the environments.

    Args:
        base: what to compare with.
        environments: its snapshots, without the pipeline's.
        project: the project's folder.
        assembly: a cloud assembly to take in place of synthesising.

    Raises:
        InputError: the base's snapshots or the app's input are wrong.
        WorkFailedError: the app failed.
    """
    added = snapshots_at(base.commit, repository=project, folder=FOLDER)
    if assembly is not None:
        found = read_assembly(assembly)
        part = added_by_pipeline(found)
        if added is not None and not part.environments and (project / SETTINGS).is_file():
            note = f"{assembly} was synthesised without -c pipeline=true: what {SETTINGS} makes is not compared."
            return Sides(before=environments, after=found, notes=(note,))
        return _sides(environments, added, after=without(found, part), added_after=part)
    with ThreadPoolExecutor(max_workers=1) as beside:  # each waits for a process of its own
        pipeline = beside.submit(_pipeline, project, added) if (project / SETTINGS).is_file() else None
        after = synthesised(project)
        return _sides(environments, added, after=after, added_after=NOTHING if pipeline is None else pipeline.result())


def _sides(before: Snapshots, added: Snapshots | None, *, after: Snapshots, added_after: Snapshots) -> Sides:
    """Both sides, each joined to one."""
    added = added or NOTHING
    unknown = sorted(name for name, each in added.environments.items() if each.findings is None)
    note = f"The base has no policy findings of what {SETTINGS} makes: whether there are new ones is not known."
    return Sides(
        before=joined(before, added),
        after=joined(after, no_better_known(added_after, added)),
        notes=(note,) if unknown else (),
    )


def synthesised(project: Path, *, validation: bool = True) -> Snapshots:
    """The project's environments as they are now. ``validation``: whether policy findings are looked for."""
    with tempfile.TemporaryDirectory(prefix="review-") as name:
        synthesise(project, Path(name), validation=validation)
        return read_assembly(Path(name))


def _pipeline(project: Path, before: Snapshots | None) -> Snapshots:
    """What the pipeline adds now.

    Validation takes most of a synthesis. Templates that did not change, with the same acceptances, have the findings
    that they had: only others are synthesised again to look for them.
    """
    with tempfile.TemporaryDirectory(prefix="review-") as name:
        synthesise(project, Path(name), validation=False, context=CONTEXT)
        found = added_by_pipeline(read_assembly(Path(name), accepted=True))
    if before is not None and same_but_open(found, before):
        return before
    with tempfile.TemporaryDirectory(prefix="review-") as name:
        synthesise(project, Path(name), context=CONTEXT)
        return added_by_pipeline(read_assembly(Path(name)))
