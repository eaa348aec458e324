"""``tritonstack pipeline`` and ``outputs``: what a pipeline needs, and what it reads of an environment."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import click
from rich.console import Console

from tritonstack.cli.session import local_option, session_of
from tritonstack.config import load_environment
from tritonstack.config.pipeline import LoadedPipeline, load_pipeline
from tritonstack.outputs.reading import document_of, read_outputs
from tritonstack.outputs.views import table, variables
from tritonstack.paths import project_folder
from tritonstack.pipeline.bootstrap import accounts_of
from tritonstack.pipeline.builds import PipelineNames


@click.group("pipeline")
def pipeline_group() -> None:
    """What a person does for the pipeline: everything else it does itself."""


@pipeline_group.command("bootstrap")
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


@click.command("outputs")
@click.argument("environment")
@click.option("--json", "as_json", is_flag=True, help="The document, as schemas/outputs.schema.json.")
@click.option("--env", "as_variables", is_flag=True, help="Lines NAME=value, for a shell or $GITHUB_ENV.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a file instead: the document, unless --env.",
)
@local_option
def outputs_command(*, environment: str, as_json: bool, as_variables: bool, output: Path | None, local: bool) -> None:
    """Tell other pipelines what ENVIRONMENT has: endpoints, bucket, key, roles, release records, alarms.

    It reads what the deployed stacks wrote to SSM, and the current release records; never the environment's file,
    which only says what must be there. Everything is a table, or a document of a fixed form (docs/outputs.md).
    """
    if as_json and as_variables:
        raise click.UsageError("--json and --env: give one of the two")
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    document = document_of(read_outputs(session_of(settings, local=local), settings), environment=environment)
    if as_variables:
        text = variables(document)
    elif as_json or output is not None:
        text = document.text()
    else:
        Console(highlight=False).print(table(document))
        return
    if output is None:
        click.echo(text, nl=False)
    else:
        write(output, text)
        click.echo(f"{output}: written")


def write(path: Path, text: str) -> None:
    """Write to a temporary name beside ``path``, then move: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
