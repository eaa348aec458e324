"""``tritonstack build``."""

from __future__ import annotations

import click

from tritonstack.archives import check_model_folders
from tritonstack.archives.build import BuildSummary, build_environment, build_models
from tritonstack.commands.progress import Step, Steps
from tritonstack.local.paths import project_folder
from tritonstack.settings import load_environment


@click.command("build")
@click.argument("models", nargs=-1)
@click.option("--environment", "-e", help="Build what this environment's endpoints serve.")
def command(*, models: tuple[str, ...], environment: str | None) -> None:
    """Export, prove and pack MODELS (folders below model_repos/), or every model of an environment.

    What is built from the same inputs already is left alone.
    """
    if not models and environment is None:
        environment = "local"
    with Steps().step("build the model archives") as step:
        summary = _build(models, environment, step)
        step.end_with(str(summary))
    for item in summary.built:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in item.manifest.figures.items())
        click.echo(f"{item.name}  {item.manifest.archive.bytes:,} bytes  {figures}")


def _build(models: tuple[str, ...], environment: str | None, step: Step) -> BuildSummary:
    if environment is None:
        return build_models(models, report=step.say)
    file = project_folder() / "environments" / f"{environment}.yaml"
    settings = load_environment(file)
    check_model_folders(settings, project_folder() / "model_repos", file=file)
    return build_environment(settings, models=models, report=step.say)
