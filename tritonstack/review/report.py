"""Everything that a review says of a change, before it is written down in any form."""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack.review.change import EnvironmentChange
from tritonstack.review.changes import compare
from tritonstack.review.parts import Known, Parts, parts_of
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.verdict import Verdict, standing, verdict_of

__all__ = ["Base", "EnvironmentReport", "Report", "report_of", "standing"]


@dataclass(frozen=True, kw_only=True)
class Base:
    """What the change is compared with.

    Attributes:
        ref: the branch, tag or commit that was asked for.
        commit: the merge base of it and HEAD.
        chosen: whether a person named ``ref``; if not, it is the default.
    """

    ref: str
    commit: str
    chosen: bool


@dataclass(frozen=True, kw_only=True)
class EnvironmentReport:
    """One environment.

    Attributes:
        changes: of its resources, traffic and policy findings.
        parts: models, engines, cost, permissions, openings.
        verdict: in one line.
    """

    changes: EnvironmentChange
    parts: Parts
    verdict: Verdict

    @property
    def name(self) -> str:
        """``dev``."""
        return self.changes.name


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every environment of either side, by name.

    Attributes:
        base: what the change is compared with.
        environments: the unchanged ones included.
        notes: what a reader must know of the comparison itself.
    """

    base: Base
    environments: tuple[EnvironmentReport, ...]
    notes: tuple[str, ...] = ()


def report_of(
    before: Snapshots, after: Snapshots, *, base: Base, known: Known | None = None, notes: tuple[str, ...] = ()
) -> Report:
    """The report of a change. ``known``: None where nothing is known but the templates."""
    reports = []
    for change in compare(before, after).environments:
        sides = before.environments.get(change.name), after.environments.get(change.name)
        parts = parts_of(*sides, change=change, known=known or Known())
        reports.append(EnvironmentReport(changes=change, parts=parts, verdict=verdict_of(change, parts)))
    return Report(base=base, environments=tuple(reports), notes=notes)
