"""``tritonstack invoke``."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tritonstack.errors import InputError, Problem, TritonstackError

if TYPE_CHECKING:  # imported where it is used, so that --help and wrong options answer at once
    from tritonstack.client.files import InputFile
    from tritonstack.client.model_client import ModelClient
    from tritonstack.client.tables import TensorTable


@click.command("invoke")
@click.argument("name")
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="[INPUT=]FILE",
    help="JSON, .npy, .npz, or an image or text where the model takes one. Several for several inputs.",
)
@click.option("--text", help="A text itself, where the model takes one.")
@click.option("--environment", default="local", show_default=True, help="The environment that NAME belongs to.")
@click.option(
    "--output", "outputs", multiple=True, help="An output that is wanted; without it the one with a meaning, else all."
)
@click.option("--raw", is_flag=True, help="Print every output as it comes, not what the model's recipe says it means.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--format",
    "payload_format",
    type=click.Choice(["auto", "json", "binary"]),
    default="auto",
    show_default=True,
    help="How arrays travel. auto: JSON where it is small and loses nothing, else binary.",
)
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Call so often.")
@click.option(
    "--local", is_flag=True, help="Call the local AWS, whatever the shell points at. Implied by environment local."
)
def command(
    *,
    name: str,
    files: Sequence[str],
    text: str | None,
    environment: str,
    outputs: Sequence[str],
    raw: bool,
    as_json: bool,
    payload_format: Any,
    repeat: int,
    local: bool,
) -> None:
    """Call a model by its NAME: [endpoint/]model, or endpoint/archive for one archive whatever is current."""
    # Imported here so that --help and wrong options answer at once.
    from tritonstack.client.errors import ReleaseLookupError  # noqa: PLC0415
    from tritonstack.client.files import InputFile  # noqa: PLC0415
    from tritonstack.client.model_client import ModelClient  # noqa: PLC0415
    from tritonstack.client.questions import outputs_meant  # noqa: PLC0415
    from tritonstack.commands import invoke_view  # noqa: PLC0415

    if not files and text is None:
        raise InputError([Problem(field="--input", found="nothing", allowed="--input FILE or --text TEXT")])
    session = _session(environment, local=local)
    client = ModelClient(environment=environment, session=session, on_wait=_say)
    try:
        table = client.tensor_table(name)
    except (InputError, ReleaseLookupError) as error:
        _refuse_without_credentials(error, environment, on_local_aws=_is_local(session))
        _explain(error, client, environment, on_local_aws=_is_local(session))
        raise
    inputs = _inputs(client, table, [InputFile.parse(name) for name in files], text)
    if table is not None and (problems := table.problems(inputs, outputs, file=files[0] if len(files) == 1 else None)):
        raise InputError(problems)
    wanted = (list(outputs) or None) if raw else outputs_meant(table, outputs)
    answers = [client.invoke(name, inputs, wanted, payload_format=payload_format) for _ in range(repeat)]
    if table is not None and not raw:
        answers[-1] = client.with_meaning(answers[-1], table)
    if as_json:
        click.echo(json.dumps(invoke_view.as_json(answers), indent=2))
    else:
        invoke_view.show(answers)


def _inputs(client: ModelClient, table: TensorTable | None, files: Sequence[InputFile], text: str | None) -> Any:
    """The inputs of all files and of the text together. Raises InputError."""
    from tritonstack.client.files import NO_MANIFEST, read_inputs  # noqa: PLC0415
    from tritonstack.client.questions import question_inputs  # noqa: PLC0415

    inputs = read_inputs(files, table, fetch=client.client_files)
    if text is None:
        return inputs
    if table is None:
        raise InputError([Problem(field="--text", found="a model whose manifest cannot be read", allowed=NO_MANIFEST)])
    from_text = question_inputs(table, text=text, fetch=client.client_files)
    twice = sorted(inputs.keys() & from_text.keys())
    if twice:
        found = f"input {', '.join(twice)}, which a file gives too"
        raise InputError([Problem(field="--text", found=found, allowed="either a file or a text for an input")])
    return inputs | from_text


def _session(environment: str, *, local: bool) -> Any:
    """What makes AWS clients: the local AWS, or boto3 in the region that the environment's file names."""
    from tritonstack.commands.session import AccountSession, local_session  # noqa: PLC0415

    return local_session(environment, wanted=local) or AccountSession(_region(environment))


def _is_local(session: Any) -> bool:
    from tritonstack.local.aws import LocalSession  # noqa: PLC0415

    return isinstance(session, LocalSession)


def _refuse_without_credentials(error: TritonstackError, environment: str, *, on_local_aws: bool) -> None:
    """Raise what lies behind an account that cannot be asked while the local AWS runs: that one was meant. Or return.

    Only environment ``local`` implies the local AWS: every other is asked of the account that credentials are of.
    """
    from botocore.exceptions import NoCredentialsError  # noqa: PLC0415

    from tritonstack.local.aws import find_local_aws  # noqa: PLC0415

    if on_local_aws or not isinstance(error.__cause__, NoCredentialsError) or find_local_aws() is None:
        return
    problem = Problem(
        field="AWS settings",
        found="no credentials, and a local AWS that runs",
        allowed=f"credentials of the account of environment {environment}; only environment local needs none",
        advice="Where deploy-local deployed it: tritonstack invoke --local …",
    )
    raise InputError([problem]) from error


def _explain(error: TritonstackError, client: Any, environment: str, *, on_local_aws: bool) -> None:
    """Raise what lies behind a name that leads nowhere: no such environment, or nothing deployed. Else return."""
    if _has_releases(client):
        return
    folder = _environment_file(environment).parent
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if environment not in names:
        found = f"{environment}, of which there is neither a file {environment}.yaml nor a release record"
        allowed = f"an environment of {folder}: {', '.join(names) or 'none there'}"
        near = difflib.get_close_matches(environment, names, n=1)
        advice = f"Did you mean {near[0]}?" if near else ""
        raise InputError([Problem(field="--environment", found=found, allowed=allowed, advice=advice)]) from error
    if on_local_aws:
        found = f"nothing of environment {environment} is deployed on the local AWS"
        advice = f"tritonstack deploy-local {environment}".removesuffix(" local")
        raise InputError([Problem(found=found, allowed="a deployed environment", advice=advice)]) from error


def _has_releases(client: Any) -> bool:
    try:
        return bool(client.releases())
    except TritonstackError:
        return False


def _environment_file(environment: str) -> Path:
    from tritonstack.local.paths import project_folder  # noqa: PLC0415

    return project_folder() / "environments" / f"{environment}.yaml"


def _region(environment: str) -> str | None:
    """The region that the environment's file names; None without one: then boto3's own settings count."""
    path = _environment_file(environment)
    if not path.is_file():
        return None
    from tritonstack.settings import load_environment  # noqa: PLC0415

    return load_environment(path).region


def _say(wait: Any) -> None:
    """A line on standard error for each pause."""
    click.echo(f"{wait.kind.value}; trying again in {wait.seconds:.1f} s ({wait.message})", err=True)
