"""``tritonstack invoke``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from tritonstack.cli.conventions import environment_option, json_option, local_option, print_json
from tritonstack.cli.session import calling_session, explain
from tritonstack.errors import InputError, Problem


@click.command("invoke")
@click.argument("name")
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="[INPUT=]FILE",
    help="JSON, .npy, .npz, or an image or text where the model's recipe has an adapter. May be repeated.",
)
@click.option("--text", help="Text input, where the model's recipe has an adapter.")
@environment_option()
@click.option(
    "--output",
    "outputs",
    multiple=True,
    help="Requested output. [default: the one that the recipe interprets, else all]",
)
@click.option("--raw", is_flag=True, help="Print the output tensors, not their meaning by the model's recipe.")
@json_option()
@local_option
def command(
    *,
    name: str,
    files: Sequence[str],
    text: str | None,
    environment: str,
    outputs: Sequence[str],
    raw: bool,
    as_json: bool,
    local: bool,
) -> None:
    """Send a request to a model by its NAME: [endpoint/]model for its current release, or endpoint/archive."""
    # Imported here so that --help and wrong options answer at once.
    from tritonstack.cli import invoke_view  # noqa: PLC0415
    from tritonstack.client.errors import ReleaseLookupError  # noqa: PLC0415
    from tritonstack.client.inputs import InputFile, read_inputs, requested_outputs  # noqa: PLC0415
    from tritonstack.client.model_client import ModelClient  # noqa: PLC0415

    if not files and text is None:
        raise InputError([Problem(field="--input", found="nothing", allowed="--input FILE or --text TEXT")])
    session = calling_session(environment, local=local)
    client = ModelClient(environment=environment, session=session, on_wait=_print_wait)
    try:
        table = client.tensor_table(name)
    except (InputError, ReleaseLookupError) as error:
        explain(error, client, environment, session)
        raise
    inputs = read_inputs([InputFile.parse(name) for name in files], table, text=text, fetch=client.client_files)
    if table is not None and (problems := table.problems(inputs, outputs, file=files[0] if len(files) == 1 else None)):
        raise InputError(problems)
    wanted = (list(outputs) or None) if raw else requested_outputs(table, outputs)
    answer = client.invoke(name, inputs, wanted)
    if not raw:
        answer = client.with_meaning(answer, table)
    if as_json:
        print_json(invoke_view.as_json(answer))
    else:
        invoke_view.show(answer)


def _print_wait(wait: Any) -> None:
    """A line on standard error for each pause."""
    click.echo(f"{wait.kind.value}; trying again in {wait.seconds:.1f} s ({wait.message})", err=True)
