"""The linter as judge: what it says of a repository as far as Triton's own rules go."""

from __future__ import annotations

from pathlib import Path

from tests.differential.repository import Mutation
from tritonstack.catalogue import load_catalogue
from tritonstack.models.lint import Target, lint_folder
from tritonstack.models.lint.registry import rule
from tritonstack_local.container.repository import STAND_INS

BACKENDS = ("python", *STAND_INS)
"""The backends of the local server, as a release's."""

RELEASE = load_catalogue().release("24.09")
"""The release of the catalogue that is next to the local server's, 24.10."""

OF_TRITON = ("triton-core", "ensemble", "python-backend")
"""The categories of rules that Triton's own verdict is compared with: not SageMaker's, nor those of house style."""


def refusals(mutation: Mutation, folder: Path, *, single_model: bool = False) -> frozenset[str]:
    """The rules by which Triton would refuse the repository, according to the linter."""
    mutation.write(folder)
    target = Target(release=RELEASE, backends=frozenset(BACKENDS), multi_model=not single_model)
    errors = {finding.rule for finding in lint_folder(folder, target=target) if finding.level == "error"}
    return frozenset(name for name in errors if rule(name).category in OF_TRITON)
