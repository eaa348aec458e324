"""One side of a case: the files of a project, and the stage that is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import yaml

from stacks.stage import EnvironmentStage
from tests.models.folders import write_double
from tests.review.corpus.edit import Edit
from tests.review.corpus.patches import PATCHES

FOLDER = Path(__file__).parent
ENVIRONMENT = "dev"
MODELS = ("double", "triple")


@dataclass(frozen=True, kw_only=True)
class Side:
    """A base with an edit.

    Attributes:
        base: the file in ``bases/``.
        edit: what differs from it.
    """

    base: str
    edit: Edit

    @property
    def key(self) -> str:
        """What tells it from every other one."""
        return f"{self.base} {self.edit.key}"

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
