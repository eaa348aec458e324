"""The linter as judge: what it says of a repository as far as Triton's own rules go."""

from __future__ import annotations

from pathlib import Path

from tests.differential.repository import Mutation
from tritonstack.archives.lint import Target, lint_folder
from tritonstack.archives.lint.registry import rule
from tritonstack.catalogue import load_catalogue
from tritonstack.local.container.repository import STAND_INS

BACKENDS = ("python", *STAND_INS)
"""The backends of the local server, as a release's."""

RELEASE = load_catalogue().release("24.09")
"""The release of the catalogue that is next to the local server's, 24.10."""

OF_TRITON = ("triton-core", "ensemble", "python-backend")
"""The categories of rules that Triton's own verdict is compared with: not SageMaker's, nor those of house style."""


IN_SINGLE_MODEL_MODE = ("name-differs-hidden",)
"""What Triton refuses only where the model's directory is its name: the core overwrites the name in the other mode."""


def refusals(mutation: Mutation, folder: Path, *, single_model: bool = False) -> frozenset[str]:
    """The rules by which Triton would refuse the repository, according to the linter."""
    mutation.write(folder)
    findings = lint_folder(folder, target=Target(release=RELEASE, backends=frozenset(BACKENDS)))
    errors = {finding.rule for finding in findings if finding.level == "error"}
    here = IN_SINGLE_MODEL_MODE if single_model else ()
    return frozenset(name for name in errors if rule(name).category in OF_TRITON or name in here)
