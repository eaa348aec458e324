"""The committed snapshots of what a pipeline adds: its own stack, and the access stack of each environment.

The environments' other stacks are the same with a pipeline as without; ``snapshots/`` has those.
"""

from __future__ import annotations

from tritonstack.review.snapshot import Snapshots, part_of

FOLDER = "snapshots-pipeline"
ADDED = ("pipeline", "pipeline-access")
SETTINGS = "pipeline.yaml"
"""The file that a pipeline is made of."""
CONTEXT = {"pipeline": "true"}
"""The context that makes the app add it."""


def added_by_pipeline(synthesised: Snapshots) -> Snapshots:
    """Of a synthesised pipeline, the stacks that are there only because of it, with their findings."""
    return part_of(synthesised, ADDED)
