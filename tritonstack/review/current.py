"""Whether the committed snapshots are what is synthesised now, and if not, what changed: in words."""

from __future__ import annotations

from pathlib import Path

from tritonstack.review.changes import compare
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import FINDINGS, read_snapshots, texts_of
from tritonstack.review.words import lines

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
