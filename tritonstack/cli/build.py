"""``tritonstack build``."""

from __future__ import annotations

from typing import Any, get_args

import click

from tritonstack.cli.progress import Step, Steps
from tritonstack.config import load_environment
from tritonstack.models import BuildChoice, check_model_folders
from tritonstack.models.build import (
    BuildSummary,
    Built,
    build_environment,
    build_models,
    refuse_errors_of_environment,
)
from tritonstack.models.recipe import Size, Weights
from tritonstack.paths import project_folder

LOCAL = "local"


@click.command("build")
@click.argument("models", nargs=-1)
@click.option("--environment", "-e", help="Build what this environment's endpoints serve, as they need it.")
@click.option("--size", type=click.Choice(get_args(Size)), help="tiny: the same architecture with few layers.")
@click.option(
    "--weights", type=click.Choice(get_args(Weights)), help="random: of the recipe's seed; nothing is fetched."
)
def command(*, models: tuple[str, ...], environment: str | None, size: Size | None, weights: Weights | None) -> None:
    """Export, prove and pack MODELS, or every model of an environment.

    MODELS are archives, or folders below model_repos/, which stand for all their archives. What is built from the same
    inputs already is left alone. For an environment they are linted first, for the releases and instance types of its
    endpoints; an error stops the build. Without --size and --weights they are made as the environment says; without an
    environment, in full size with pretrained weights.
    """
    if not models and environment is None:
        environment = LOCAL
    changes = {name: value for name, value in (("size", size), ("weights", weights)) if value is not None}
    with Steps().step("build the model archives") as step:
        summary = _build(models, environment, changes, step)
        step.end_with(str(summary))
    for item in summary.built:
        click.echo(said(item))


def said(item: Built) -> str:
    """An archive, its size, its figures, what its steps took, and what was not as it will be in the cloud."""
    manifest = item.manifest
    figures = ", ".join(f"{name} {value:.4g}" for name, value in manifest.figures.items())
    lines = [f"{item.name}  {manifest.archive.bytes:,} bytes  {figures}"]
    lines += [f"  {step}" for step in item.spent]
    if manifest.plan is False:
        lines.append("  no engine: it holds the ONNX graph, and only the local AWS serves it")
    lines += [f"  proven with {line}" for line in manifest.stand_ins if item.fresh]
    return "\n".join(lines)


def _build(models: tuple[str, ...], environment: str | None, changes: dict[str, Any], step: Step) -> BuildSummary:
    if environment is None:
        return build_models(models, choice=BuildChoice(**changes), report=step.say)
    file = project_folder() / "environments" / f"{environment}.yaml"
    settings = load_environment(file)
    settings = settings.model_copy(update={"builds": settings.builds.model_copy(update=changes)})
    check_model_folders(settings, project_folder() / "model_repos", file=file)
    refuse_errors_of_environment(settings, models=models)
    return build_environment(settings, models=models, local=environment == LOCAL, report=step.say)
