"""The corpus: changes of one property each (``cases/*.yaml``) and the facts of their reports (``facts.yaml``).

``settled_by_hand.yaml`` holds the facts about properties that a person read in AWS's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import yaml

from stacks.stage import EnvironmentStage
from tests.models.folders import write_double
from tests.review.corpus.patches import PATCHES

FOLDER = Path(__file__).parent
ENVIRONMENT = "dev"
MODELS = ("double", "triple")
UPDATES = {"Replacement": True, "No interruption": False, "Some interruptions": False}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What is different from a base.

    Attributes:
        set: dotted path in the environment's file → value. An item of a list of maps is named by its ``name``:
            ``endpoints.digits.scaling.maximum``; ``endpoints.+`` adds one.
        unset: dotted paths to leave out.
        models: model's name → a line that its ``model.py`` gets at its end.
        patches: names in ``patches.py``, for what no setting reaches.
    """

    set: Mapping[str, Any] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()

    def applied(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings with it; ``settings`` itself is changed."""
        for path, value in self.set.items():
            holder, last = _holder(settings, path)
            if last == "+":
                holder.append(value)
            else:
                holder[last] = value
        for path in self.unset:
            holder, last = _holder(settings, path)
            if isinstance(holder, list):
                holder.remove(_named(holder, last))
            else:
                del holder[last]
        return settings


def _holder(settings: dict[str, Any], path: str) -> tuple[Any, str]:
    """What holds the last part of a path, and that part; maps on the way are made."""
    *way, last = path.split(".")
    holder: Any = settings
    for part in way:
        holder = _named(holder, part) if isinstance(holder, list) else holder.setdefault(part, {})
    return holder, last


def _named(items: list[Any], name: str) -> Any:
    [found] = [each for each in items if each["name"] == name]
    return found


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a case: a file in ``bases/`` with an edit."""

    base: str
    edit: Edit

    def written(self, folder: Path) -> Path:
        """Write ``environments/`` and ``model_repos/`` into a folder. Returns the environment's file."""
        for name in MODELS:
            model = write_double(folder, name=name)
            with (model / name / "1" / "model.py").open("a") as program:
                program.write(self.edit.models.get(name, ""))
        settings: dict[str, Any] = yaml.safe_load((FOLDER / "bases" / f"{self.base}.yaml").read_text())
        file = environment_file(folder)
        file.parent.mkdir()
        file.write_text(yaml.safe_dump(self.edit.applied(settings), sort_keys=False))
        return file

    def stage(self, app: cdk.App, folder: Path) -> EnvironmentStage:
        """The stage of what was written into a folder."""
        stage = EnvironmentStage.from_file(app, file=environment_file(folder), models=folder / "model_repos")
        for name in self.edit.patches:
            PATCHES[name](stage)
        return stage


def environment_file(folder: Path) -> Path:
    """The environment's file of a project."""
    return folder / "environments" / f"{ENVIRONMENT}.yaml"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One change: its name, both its sides, and the facts of its report, as ``facts.py`` has them."""

    name: str
    before: Side
    after: Side
    facts: Mapping[str, Any]


def cases() -> tuple[Case, ...]:
    """Every case, by file and in its order."""
    file = FOLDER / "facts.yaml"
    facts = _read(file) if file.is_file() else {}
    found: dict[str, Case] = {}
    for path in sorted((FOLDER / "cases").glob("*.yaml")):
        for name, given in _read(path).items():
            assert name not in found, "a name stands for one case"
            assert given.keys() <= {"base", "before", "change"}, name
            sides = (Side(base=given["base"], edit=Edit(**given.get(side, {}))) for side in ("before", "change"))
            before, after = sides
            found[name] = Case(name=name, before=before, after=after, facts=facts.get(name, {}))
    return tuple(found.values())


def case(name: str) -> Case:
    """The case of this name."""
    return next(each for each in cases() if each.name == name)


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@dataclass(frozen=True, kw_only=True)
class Settled:
    """One property.

    Attributes:
        type: the resource type, which its documentation page is named after.
        property: the property.
        replaces: whether an update requires replacement, by that page.
        case: the case of the corpus that changes it; None where none does.
        at: the resource there: stack and construct path.
    """

    type: str
    property: str
    replaces: bool
    case: str | None = None
    at: str | None = None

    def __str__(self) -> str:
        """``AWS::SageMaker::Model.VpcConfig network on``."""
        return f"{self.type}.{self.property} {self.case or ''}".rstrip()


def settled_by_hand() -> tuple[Settled, ...]:
    """Every property, page by page."""
    return tuple(
        Settled(
            type=page["page"],
            property=each["property"],
            replaces=UPDATES[each["update"]],
            case=each.get("case"),
            at=each.get("at"),
        )
        for page in _read(FOLDER / "settled_by_hand.yaml")
        for each in page["properties"]
    )
