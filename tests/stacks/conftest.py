"""The CDK in one process: the validator takes four fifths of a synthesis, and has a gate of its own; the pipelines."""

from __future__ import annotations

import os

import pytest

from tests.stacks.pipeline_templates import Synthesised, committed_pipeline, other_pipeline

os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The repository's own pipeline."""
    return committed_pipeline(tmp_path_factory)


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """A pipeline with everything else on."""
    return other_pipeline(tmp_path_factory)
