"""``tritonstack pipeline``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tritonstack.config.pipeline import LoadedPipeline, load_pipeline
from tritonstack.paths import project_folder
from tritonstack.pipeline.bootstrap import accounts_of
from tritonstack.pipeline.builds import PipelineNames


@click.group("pipeline")
def command() -> None:
    """What a person does for the pipeline: everything else it does itself."""


@command.command("bootstrap")
@click.option("--file", default="pipeline.yaml", show_default=True, help="The pipeline's settings, in the project.")
@click.option(
    "--policies",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the execution policies into this folder; without it they are only named.",
)
def bootstrap(*, file: str, policies: Path | None) -> None:
    """Print the command lines that prepare each account, and write the policies that they name.

    Each block is run with credentials of its account, once. Nothing is called from here.
    """
    loaded = loaded_pipeline(file)
    partition = PipelineNames.of(loaded.settings).partition
    for account in accounts_of(loaded):
        trusting = "its own account" if account.trusts is None else f"trusts {account.trusts}"
        click.echo(f"# {account.account} {account.region}: {trusting}")
        for line in account.commands(partition=partition, folder=str(policies or "policies")):
            click.echo(line)
        click.echo()
        if policies is not None:
            policies.mkdir(parents=True, exist_ok=True)
            for name, document in account.policies.items():
                (policies / f"{name}.json").write_text(f"{json.dumps(document, indent=2)}\n", encoding="utf-8")
    click.echo("# then, with credentials of the pipeline's account, once:")
    context = "true" if file == "pipeline.yaml" else file
    click.echo(f"npx cdk deploy -c pipeline={context} pipeline")


def loaded_pipeline(file: str) -> LoadedPipeline:
    """The project's pipeline. Raises InputError with every problem."""
    return load_pipeline(project_folder() / file, environments=project_folder() / "environments")
