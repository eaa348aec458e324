"""Which build started an engine's job: so that the jobs of a build that was ended can be found, and no others."""

from __future__ import annotations

import os

VARIABLE = "TRITONSTACK_STARTED_BY"
"""On an engine's job, of CodeBuild and of Processing alike. ``lambda/model_builds`` looks for it."""


def started_by() -> dict[str, str]:
    """The variable with the id of the CodeBuild build that this process is of; none where it is of none."""
    build = os.environ.get("CODEBUILD_BUILD_ID")
    return {VARIABLE: build} if build else {}
