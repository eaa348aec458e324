"""``tritonstack pipeline`` and ``outputs``: what a pipeline needs, and what it reads of an environment."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tritonstack.cli.conventions import echo, environment_option, json_option, local_option, result_console
from tritonstack.cli.leftovers import note_left
from tritonstack.cli.root import SuggestingGroup
from tritonstack.cli.session import session_of
from tritonstack.config import load_environment
from tritonstack.config.pipeline import load_pipeline
from tritonstack.outputs.reading import read_outputs, table
from tritonstack.paths import environment_file, project_folder, write_text
from tritonstack.pipeline.bootstrap import accounts_of
from tritonstack.pipeline.builds import PipelineNames


@click.group("pipeline", epilog="example: tritonstack pipeline bootstrap --policies policies", cls=SuggestingGroup)
def pipeline_group() -> None:
    """Prepare accounts for the deployment pipeline."""


@pipeline_group.command("bootstrap", epilog="example: tritonstack pipeline bootstrap --policies policies")
@click.option("--file", default="pipeline.yaml", show_default=True, help="The pipeline's settings file in the project.")
@click.option(
    "--policies",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the execution policies to this folder. Without it, they are only named.",
)
def bootstrap(*, file: str, policies: Path | None) -> None:
    """Print the `cdk bootstrap` commands of each account, and write the policies that they refer to.

    Run each block once, with credentials of its account. This command calls no AWS service.
    """
    project = project_folder()
    loaded = load_pipeline(project / file, environments=project / "environments")
    partition = PipelineNames.of(loaded.settings).partition
    for account in accounts_of(loaded):
        trusting = "its own account" if account.trusts is None else f"trusts {account.trusts}"
        echo(f"# {account.account} {account.region}: {trusting}")
        for line in account.commands(partition=partition, folder=str(policies or "policies")):
            echo(line)
        echo()
        if policies is not None:
            policies.mkdir(parents=True, exist_ok=True)
            for name, document in account.policies.items():
                (policies / f"{name}.json").write_text(f"{json.dumps(document, indent=2)}\n", encoding="utf-8")
    echo("# then, with credentials of the pipeline's account, once:")
    context = "true" if file == "pipeline.yaml" else file
    echo(f"npx cdk deploy -c pipeline={context} pipeline")


@click.command("outputs", epilog="example: tritonstack outputs -e prod --output outputs.json")
@environment_option()
@json_option("Print JSON, as schemas/outputs.schema.json.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON to this file instead.")
@local_option
def outputs_command(*, environment: str, as_json: bool, output: Path | None, local: bool) -> None:
    """Print what other pipelines need of ENVIRONMENT: endpoints, bucket, key, roles, release records, alarms.

    Reads the SSM parameters of the deployed stacks and the current release records; the environment's file only states
    which must exist. The JSON document is a fixed contract (tritonstack docs outputs).
    """
    settings = load_environment(environment_file(environment))
    session = session_of(settings, local=local)
    document = read_outputs(session, settings)
    note_left(settings, session, local=local)  # on standard error: the document is a fixed contract
    if output is not None:
        write_text(output, document.text())
        echo(f"{output}: written")
    elif as_json:
        click.echo(document.text(), nl=False)
    else:
        result_console().print(table(document))
