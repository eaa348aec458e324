"""The corpus: changes of one property each (``cases/*.yaml``) and the facts of their reports (``facts.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.review.corpus.edit import Edit
from tests.review.corpus.side import FOLDER, Side

_MEMBERS = {"base", "before", "change"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One change.

    Attributes:
        name: what changes.
        before: a base, and what differs from it before the change.
        after: likewise after it.
        facts: of its report, as ``facts.py`` has them.
    """

    name: str
    before: Side
    after: Side
    facts: Mapping[str, Any]

    @property
    def base(self) -> str:
        """The base of both sides."""
        return self.after.base


def cases() -> tuple[Case, ...]:
    """Every case, by file and in its order."""
    file = FOLDER / "facts.yaml"
    facts = _read(file) if file.is_file() else {}
    found: list[Case] = []
    for path in sorted((FOLDER / "cases").glob("*.yaml")):
        found += [_case(name, given, facts.get(name, {})) for name, given in _read(path).items()]
    names = [each.name for each in found]
    assert len(set(names)) == len(names), "a name stands for one case"
    return tuple(found)


def case(name: str) -> Case:
    """The case of this name."""
    return next(each for each in cases() if each.name == name)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def _case(name: str, given: Mapping[str, Any], facts: Mapping[str, Any]) -> Case:
    unknown = given.keys() - _MEMBERS
    assert not unknown, f"{name}: a case has no {sorted(unknown)}"
    return Case(
        name=name,
        before=Side(base=given["base"], edit=Edit.of(given.get("before", {}))),
        after=Side(base=given["base"], edit=Edit.of(given.get("change", {}))),
        facts=facts,
    )
