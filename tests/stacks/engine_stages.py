"""The stages of environments whose archives need TensorRT engines."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

from stacks.stage import EnvironmentStage, builds_of
from tests.constructs_lib.templates import new_app
from tests.engines.engine_environments import served_engines, write_models
from tritonstack.served import Served


def stage_of(served: Served, project: Path, *, scope: cdk.App | None = None) -> EnvironmentStage:
    """The stage as the app makes it, in an app of its own unless ``scope`` is one."""
    return EnvironmentStage(
        scope or new_app(),
        environment=served.environment,
        release_sets=served.release_sets,
        builds=builds_of(served, models=project / "model_repos"),
    )


def engine_stage(project: Path, *endpoints: str, header: str = "", models: str = "[fast]") -> EnvironmentStage:
    """The stage of a project with the model folders of ``write_models``, which are written where there are none."""
    if not (project / "model_repos").is_dir():
        write_models(project)
    return stage_of(served_engines(project, *endpoints, header=header, models=models), project)
