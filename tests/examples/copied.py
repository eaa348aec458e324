"""Copies of examples that are no apps of their own: an environment file and model folders."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.project import REPOSITORY, Project

EXAMPLES = REPOSITORY / "examples"


def copied_project(name: str, root: Path) -> Project:
    """A project in ``root`` with the files of an example, and the lock files of this repository."""
    for folder in ("environments", "model_repos", "images"):
        if (EXAMPLES / name / folder).is_dir():
            shutil.copytree(EXAMPLES / name / folder, root / folder)
    shutil.copytree(REPOSITORY / "requirements", root / "requirements")
    return Project(root)
