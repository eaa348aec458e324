"""The committed environments, synthesised once for every test here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stacks.app_process import committed_assembly

# As in tests/stacks: the corpus synthesises in this process.
os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cloud assembly of every committed environment, with its validation report."""
    return committed_assembly(tmp_path_factory)
