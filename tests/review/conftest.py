"""The committed environments, synthesised once for every test here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stacks.app_process import ROOT
from tritonstack.review.synthesis import synthesise


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cloud assembly of every committed environment, with its validation report."""
    outdir = tmp_path_factory.mktemp("committed") / "cdk.out"
    synthesise(ROOT, outdir)
    return outdir
