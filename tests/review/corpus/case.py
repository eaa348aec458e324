"""The corpus: changes of one property each, as data, and what a review must say of them.

``cases/*.yaml`` hold the changes, ``says/*.yaml`` what a review must say of each, file by file under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.review.corpus.edit import Edit
from tests.review.corpus.side import FOLDER, Side

_MEMBERS = {"base", "before", "change", "not_deployed", "not_back"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One change.

    Attributes:
        name: what changes.
        before: a base, and what differs from it before the change.
        after: likewise after it.
        says: what a review must say of it, as ``said.py`` has it.
        not_deployed: why it is not deployed on the local AWS; None where it is.
        not_back: why it is not taken back there; None where it is.
    """

    name: str
    before: Side
    after: Side
    says: Mapping[str, Any]
    not_deployed: str | None = None
    not_back: str | None = None

    @property
    def base(self) -> str:
        """The base of both sides."""
        return self.after.base


def cases() -> tuple[Case, ...]:
    """Every case, by file and in its order."""
    found: list[Case] = []
    for path in sorted((FOLDER / "cases").glob("*.yaml")):
        told = FOLDER / "says" / path.name
        says = _read(told) if told.is_file() else {}
        found += [_case(name, given, says.get(name, {})) for name, given in _read(path).items()]
    names = [each.name for each in found]
    assert len(set(names)) == len(names), "a name stands for one case"
    return tuple(found)


def case(name: str) -> Case:
    """The case of this name."""
    return next(each for each in cases() if each.name == name)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def _case(name: str, given: Mapping[str, Any], says: Mapping[str, Any]) -> Case:
    unknown = given.keys() - _MEMBERS
    assert not unknown, f"{name}: a case has no {sorted(unknown)}"
    return Case(
        name=name,
        before=Side(base=given["base"], edit=Edit.of(given.get("before", {}))),
        after=Side(base=given["base"], edit=Edit.of(given.get("change", {}))),
        says=says,
        not_deployed=given.get("not_deployed"),
        not_back=given.get("not_back"),
    )
