"""What ``-c pipeline=…`` makes of the app: the pipeline's environments, and the pipeline over them."""

from __future__ import annotations

import json
from pathlib import Path

from constructs import Construct

from tritonstack.config.pipeline import LoadedPipeline, LoadedStage, load_pipeline
from tritonstack.engines.deployed_builds import deployed_builds
from tritonstack.engines.order import Served, all_served
from tritonstack.releases.commits import commits_of

from .pipeline import DeployedStage, PipelineStack
from .stage import EnvironmentStage, builds_of

FILE = "pipeline.yaml"
STACK = "pipeline"


def add_pipeline(app: Construct, *, asked: str, root: Path, models: Path, folder: Path) -> LoadedPipeline:
    """Add the stages of a pipeline's environments, and the pipeline's stack.

    Args:
        app: the app. The stages are its children, under the same ids as without a pipeline.
        asked: what ``-c pipeline`` says: ``true`` for ``pipeline.yaml``, else a file; relative to ``root``.
        root: the folder with ``cdk.json`` and ``package.json``.
        models: the folder of the model folders.
        folder: the folder of the environments.

    Raises:
        InputError: with every problem of the pipeline's file, the environments' files and the models.
    """
    file = FILE if asked.lower() == "true" else asked
    loaded = load_pipeline(root / file, environments=folder)
    matched = all_served([(stage.environment, stage.file) for stage in loaded.stages], models)
    stages = [_stage(app, *each, models=models) for each in zip(loaded.stages, matched, strict=True)]
    pinned = json.loads((root / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    PipelineStack(app, STACK, settings=loaded.settings, file=asked, cli_version=pinned["aws-cdk"], stages=stages)
    return loaded


def _stage(app: Construct, stage: LoadedStage, served: Served, *, models: Path) -> DeployedStage:
    making = deployed_builds(served, models)  # where no deployment builds, the pipeline does
    made = EnvironmentStage(
        app,
        environment=served.environment,
        release_sets=served.release_sets,
        commits=commits_of(served.sources, models),
        builds=builds_of(served, models=models),
    )
    return DeployedStage(loaded=stage, stage=made, environments=making.environments, weights=making.weights)
