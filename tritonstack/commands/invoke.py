"""``tritonstack invoke``."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tritonstack.errors import InputError, Problem, TritonstackError


@click.command("invoke")
@click.argument("name")
@click.option(
    "--input",
    "files",
    multiple=True,
    required=True,
    metavar="[INPUT=]FILE",
    help="JSON, .npy, .npz, or an image or text where the model takes one. Several for several inputs.",
)
@click.option("--environment", default="local", show_default=True, help="The environment that NAME belongs to.")
@click.option("--output", "outputs", multiple=True, help="An output that is wanted; without it, all of them.")
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
    environment: str,
    outputs: Sequence[str],
    as_json: bool,
    payload_format: Any,
    repeat: int,
    local: bool,
) -> None:
    """Call a model by its NAME: [endpoint/]model, or endpoint/archive for one archive whatever is current."""
    # Imported here so that --help and wrong options answer at once.
    from tritonstack.client.errors import ReleaseLookupError  # noqa: PLC0415
    from tritonstack.client.files import InputFile, read_inputs  # noqa: PLC0415
    from tritonstack.client.model_client import ModelClient  # noqa: PLC0415

    session = _session(environment, local=local)
    client = ModelClient(environment=environment, session=session, on_wait=_say)
    try:
        table = client.tensor_table(name)
    except (InputError, ReleaseLookupError) as error:
        _explain(error, client, environment, on_local_aws=_is_local(session))
        raise
    inputs = read_inputs([InputFile.parse(text) for text in files], table)
    if table is not None and (problems := table.problems(inputs, outputs, file=files[0] if len(files) == 1 else None)):
        raise InputError(problems)
    answers = []
    for _ in range(repeat):
        answers.append(client.invoke(name, inputs, list(outputs) or None, payload_format=payload_format))
    if as_json:
        click.echo(json.dumps(_as_json(answers), indent=2))
    else:
        _print(answers)


def _session(environment: str, *, local: bool) -> Any:
    """What makes AWS clients: the local AWS, or boto3 in the region that the environment's file names."""
    from tritonstack.commands.session import AccountSession, local_session  # noqa: PLC0415

    return local_session(environment, wanted=local) or AccountSession(_region(environment))


def _is_local(session: Any) -> bool:
    from tritonstack.local.aws import LocalSession  # noqa: PLC0415

    return isinstance(session, LocalSession)


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


def _as_json(answers: Sequence[Any]) -> dict[str, Any]:
    """KServe's form of the last answer, and who answered how fast."""
    from tritonstack.client.tables import datatype_of  # noqa: PLC0415

    last = answers[-1]
    return {
        "model_name": last.model_name,
        "model_version": last.model_version,
        "endpoint_name": last.endpoint_name,
        "target_model": last.target_model,
        "variant": last.variant,
        "milliseconds": [round(answer.milliseconds, 3) for answer in answers],
        "attempts": [answer.attempts for answer in answers],
        "bytes_sent": last.bytes_sent,
        "bytes_received": last.bytes_received,
        "outputs": [
            {"name": name, "datatype": datatype_of(array), "shape": list(array.shape), "data": _plain(array)}
            for name, array in last.outputs.items()
        ],
    }


def _plain(array: Any) -> list[Any]:
    """An array's elements for JSON, flat; bytes as text, with escapes where they are none."""
    if array.dtype == object:
        return [item.decode(errors="backslashreplace") for item in array.ravel()]
    if array.dtype.kind in "biu":
        values: list[Any] = array.ravel().tolist()
        return values
    # The shortest decimal that reads back as the same number of the array's own type: 0.1, not 0.10000000149.
    return [float(str(value)) for value in array.ravel()]


def _print(answers: Sequence[Any]) -> None:
    """A table of the last answer's outputs, and a line about who answered how fast."""
    import numpy as np  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from tritonstack.client.tables import datatype_of, shape_text  # noqa: PLC0415

    table = Table("output", "type", "shape", "values")
    for name, array in answers[-1].outputs.items():
        shown = np.array(_plain(array), dtype=object).reshape(array.shape) if array.dtype == object else array
        # One line a row, however long: the table wraps it to the screen, and wrapped twice it would be in shreds.
        values = np.array2string(shown, threshold=40, edgeitems=5, precision=4, max_line_width=sys.maxsize)
        table.add_row(Text(name), datatype_of(array), Text(shape_text(array.shape)), Text(values))
    console = Console(highlight=False)
    console.print(table)
    last = answers[-1]
    form = "binary" if last.content_type.startswith("application/vnd") else "JSON"
    who = f"{last.target_model or last.model_name} at {last.endpoint_name} ({last.variant})"
    console.print(
        Text(f"{who}: {_times(answers)}; {last.bytes_sent:,} bytes sent as {form}, {last.bytes_received:,} received"),
        soft_wrap=not console.is_terminal,  # at words on a screen, one line for a program
    )


def _times(answers: Sequence[Any]) -> str:
    """The milliseconds of one call, or the spread of many."""
    times = sorted(answer.milliseconds for answer in answers)
    if len(times) == 1:
        tries = f" after {answers[0].attempts} attempts" if answers[0].attempts > 1 else ""
        return f"{times[0]:.1f} ms{tries}"
    p99 = times[min(len(times) - 1, round(0.99 * (len(times) - 1)))]
    first, median = answers[0].milliseconds, times[len(times) // 2]
    return (
        f"{len(times)} calls, first {first:.1f} ms, least {times[0]:.1f}, median {median:.1f}, "
        f"p99 {p99:.1f}, most {times[-1]:.1f} ms"
    )
