"""``tritonstack invoke``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.cli.conventions import (
    box_width,
    echo,
    environment_option,
    json_option,
    local_option,
    print_json,
    result_console,
)
from tritonstack.cli.session import calling_session, explain
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse, visible

if TYPE_CHECKING:  # imported where it is used, so that --help and wrong options answer at once
    from tritonstack.client.body import Array, PayloadFormat
    from tritonstack.client.copies import CopyResponse, LoadCounter, LoadCounts
    from tritonstack.client.errors import ModelFailedError
    from tritonstack.client.model_client import ModelClient, ModelResponse
    from tritonstack.client.postprocessing import Meaning


@click.command("invoke", epilog="example: tritonstack invoke models/iris --data '{\"X\": [5.1, 3.5, 1.4, 0.2]}'")
@click.argument("name")
@click.option(
    "--data",
    metavar="JSON",
    help="A record, {input: value, …}; a list of records, a batch; or a KServe request. - reads standard input, where "
    "records may also be one a line.",
)
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="[INPUT=]FILE",
    help="JSON, JSON lines (.jsonl), CSV with a heading, .npy, .npz, or an image or text where the model's recipe has "
    "an adapter; - is JSON from standard input. May be repeated.",
)
@click.option(
    "--text",
    "texts",
    multiple=True,
    metavar="TEXT",
    help="Text input, where the model's recipe has an adapter. Repeated: a batch.",
)
@click.option(
    "--text-pair",
    "pairs",
    multiple=True,
    metavar="TEXT",
    help="Second text of a pair, after --text: the context of a question, a passage. Repeated: one for each --text, "
    "or several for one.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Image, where the model's recipe has an adapter. Repeated: a batch.",
)
@environment_option()
@click.option(
    "--output",
    "outputs",
    multiple=True,
    help="Requested output. [default: the one that the recipe interprets, else all]",
)
@click.option(
    "--variant",
    help="Production variant that responds, by its name in the settings. [default: by weight]",
    metavar="NAME",
)
@click.option(
    "--payload",
    type=click.Choice(["auto", "json", "binary"]),
    default="auto",
    show_default=True,
    help="Payload of request and response: KServe JSON, or its binary tensor extension. auto: JSON where the request "
    "is small and loses nothing, and a binary response.",
)
@click.option("--binary", "payload", flag_value="binary", help="Short for --payload binary.")
@click.option(
    "--each-copy",
    is_flag=True,
    help="NAME's recipe has copies: send the request to each of them in turn, then show hits, loads and unloads.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    help="How often --each-copy goes round. In the first a copy may have to be loaded. [default: 2]",
)
@click.option(
    "--stream",
    is_flag=True,
    help="NAME's endpoint streams (container.inference_type: generate_stream): print each response as it comes, and "
    "then the time to the first and between them.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Parameter of the request, for a model that streams. May be repeated.",
)
@click.option("--raw", is_flag=True, help="Print the output tensors, not their meaning by the model's recipe.")
@json_option()
@local_option
def command(
    *,
    name: str,
    data: str | None,
    files: Sequence[str],
    texts: Sequence[str],
    pairs: Sequence[str],
    images: Sequence[Path],
    environment: str,
    outputs: Sequence[str],
    variant: str | None,
    payload: PayloadFormat,
    each_copy: bool,
    rounds: int | None,
    stream: bool,
    parameters: Sequence[str],
    raw: bool,
    as_json: bool,
    local: bool,
) -> None:
    """Send a request to a model by its NAME: [endpoint/]model for its current release, or endpoint/archive."""
    # Imported here so that --help and wrong options answer at once.
    from tritonstack.cli.streaming import print_events  # noqa: PLC0415
    from tritonstack.client.copies import copies_of  # noqa: PLC0415
    from tritonstack.client.errors import ModelFailedError, ReleaseLookupError  # noqa: PLC0415
    from tritonstack.client.inputs import InputFile, read_inputs, requested_outputs  # noqa: PLC0415
    from tritonstack.client.model_client import ModelClient  # noqa: PLC0415

    if rounds is not None and not each_copy:
        problem = Problem(
            field="--rounds", found="--rounds without --each-copy", allowed="--each-copy, for a model with copies"
        )
        raise InputError([problem])
    given = _texts(texts, pairs)
    if data is None and not files and not given and not images:
        allowed = "--data '{…}', --data - (standard input), --input FILE, --text TEXT or --image FILE"
        raise InputError([Problem(field="input", found="nothing", allowed=allowed)])
    documents = _documents(data, files)
    sent_with = _stream_parameters(parameters, stream=stream, each_copy=each_copy, payload=payload)
    session = calling_session(environment, local=local)
    client = ModelClient(environment=environment, session=session, on_wait=_print_wait)
    copies = copies_of(client, name) if each_copy else []
    name = copies[0] if copies else name
    try:
        table = client.tensor_table(name)
    except (InputError, ReleaseLookupError) as error:
        explain(error, client, environment, session)
        raise
    inputs = read_inputs(
        [InputFile.parse(file) for file in files if file != STANDARD_INPUT],
        table,
        data=documents,
        images=images,
        texts=given,
        fetch=client.client_files,
    )
    if table is not None and (problems := table.problems(inputs, outputs, file=files[0] if len(files) == 1 else None)):
        raise InputError(problems)
    wanted = (list(outputs) or None) if raw else requested_outputs(table, outputs)
    send = functools.partial(client.invoke, inputs=inputs, outputs=wanted, payload_format=payload, variant=variant)
    if copies:
        _invoke_copies(client, copies, send, rounds=rounds or ROUNDS, session=session, as_json=as_json)
        return
    try:
        if stream:
            events = client.stream(name, inputs, parameters=sent_with, variant=variant)
            print_events(events, outputs=outputs, as_json=as_json, on_screen=sys.stdout.isatty())
            return
        answer = send(name)
    except ModelFailedError as error:
        raise _failed(client, name, error) from error
    if not raw:
        answer = client.with_meaning(answer, table)
    if as_json:
        print_json(_as_json(answer))
    else:
        show(answer)


def _stream_parameters(
    parameters: Sequence[str], *, stream: bool, each_copy: bool, payload: str
) -> dict[str, bool | int | float | str]:
    """The parameters of a streamed request.

    Raises InputError: they are none; options that such a request does not have; parameters of another request.
    """
    from tritonstack.cli.streaming import parse_parameters  # noqa: PLC0415

    problems = []
    if stream and each_copy:
        problems.append(Problem(field="--each-copy", found="with --stream", allowed="one of them"))
    if stream and payload == "binary":
        problems.append(Problem(field="--payload", found="binary with --stream", allowed="json: Triton takes no other"))
    if parameters and not stream:
        problems.append(Problem(field="--parameter", found="without --stream", allowed="with --stream"))
    refuse(problems)
    return parse_parameters(parameters)


def _failed(client: ModelClient, name: str, error: ModelFailedError) -> WorkFailedError:
    """The error of a model's response, with what its program raised."""
    from tritonstack.models.manifest import Places  # noqa: PLC0415
    from tritonstack.models.python_failure import response_failure  # noqa: PLC0415
    from tritonstack.models.selection import is_made_of_folder  # noqa: PLC0415

    archive, repositories = client.resolve(name).archive, Places.of_project().repositories
    message = response_failure(
        error,
        model=archive.model,
        repositories=repositories,
        serves_folder=is_made_of_folder(archive, repositories),
    )
    return WorkFailedError(message)


# --- All copies of a model in turn ---

ROUNDS = 2
ACCOUNT_SECONDS, LOCAL_SECONDS = 180.0, 8.0
"""For CloudWatch's figures: a minute's come a minute or two after it; the local AWS's every five seconds."""


def _invoke_copies(
    client: ModelClient,
    copies: Sequence[str],
    send: Callable[[str], ModelResponse],
    *,
    rounds: int,
    session: Any,
    as_json: bool,
) -> None:
    """A request to each copy in turn, so often, then what CloudWatch counted of the endpoint meanwhile."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    from tritonstack.client.copies import LoadCounter, in_turn  # noqa: PLC0415
    from tritonstack.client.errors import ModelFailedError  # noqa: PLC0415
    from tritonstack.local_aws import is_local  # noqa: PLC0415

    endpoint, cloudwatch = client.target(copies[0]).endpoint_name, session.client("cloudwatch")
    counter: LoadCounter | None = None
    counts: LoadCounts | None = None
    refused = ""
    try:
        counter = LoadCounter(cloudwatch, endpoint=endpoint, variants=client.variants(copies[0]))
    except (BotoCoreError, ClientError) as error:
        refused = str(error)
    responses: list[CopyResponse] = []
    try:
        for each in in_turn(copies, send, rounds=rounds):
            responses.append(each)
            if not as_json:
                which = "first" if each.round == 1 else "repeated"
                echo(f"{each.copy}: {each.response.total_milliseconds / 1000:.3f} s, {which}")
    except ModelFailedError as error:
        raise _failed(client, copies[len(responses) % len(copies)], error) from error
    try:
        counts = None if counter is None else _counts(counter, requests=len(responses), local=is_local(cloudwatch))
    except (BotoCoreError, ClientError) as error:
        refused = str(error)
    if refused:
        echo(f"CloudWatch's figures of loads and unloads cannot be read: {refused}", err=True)
    if as_json:
        rows = [
            {"copy": each.copy, "round": each.round, "seconds": round(each.response.total_milliseconds / 1000, 6)}
            for each in responses
        ]
        print_json({"requests": rows, "counted": None if counts is None else vars(counts)})
    elif counts is not None:
        echo(_counted_line(counts, endpoint=endpoint, sent=len(responses)))


def _counts(counter: LoadCounter, *, requests: int, local: bool) -> LoadCounts:
    """What CloudWatch counted, once it has the requests."""
    from tritonstack.client.copies import await_counts  # noqa: PLC0415

    if not local:
        echo(f"waiting for CloudWatch's figures, at most {ACCOUNT_SECONDS:.0f} s", err=True)
    return await_counts(
        counter.read,
        requests=requests,
        seconds=LOCAL_SECONDS if local else ACCOUNT_SECONDS,
        poll_seconds=1 if local else 10,
    )


def _counted_line(counts: LoadCounts, *, endpoint: str, sent: int) -> str:
    """What was counted, in a line; with the requests of this command where there were others, or some are missing."""

    def text(count: int | None) -> str:
        return "no figure" if count is None else str(count)

    requests = f"{text(counts.requests)} requests" + ("" if counts.requests == sent else f" ({sent} sent here)")
    return (
        f"CloudWatch counted for {endpoint} meanwhile: {requests}, {text(counts.hits)} hits, "
        f"{text(counts.loads)} loads, {text(counts.unloads)} unloads"
    )


STANDARD_INPUT = "-"
LARGEST_DATA = 1 << 28
"""Bytes of standard input that are read: more than the JSON of the largest request, 25 MB, takes."""


def _documents(data: str | None, files: Sequence[str]) -> list[tuple[str, bytes]]:
    """JSON of the command line and of standard input, each with its name in messages."""
    dashes = [data, *files].count(STANDARD_INPUT)
    if dashes > 1:
        raise InputError([Problem(field="-", found=f"standard input {dashes} times", allowed="once")])
    found = [] if data in (None, STANDARD_INPUT) else [("--data", str(data).encode())]
    if dashes:
        content = sys.stdin.buffer.read(LARGEST_DATA + 1)
        if len(content) > LARGEST_DATA:
            allowed = f"at most {LARGEST_DATA:,} bytes; a request has 25 MB"
            raise InputError([Problem(file="standard input", found="more than is read", allowed=allowed)])
        found.append(("standard input", content))
    return found


def _texts(texts: Sequence[str], pairs: Sequence[str]) -> list[str | tuple[str, str]]:
    """The texts of a batch, or its pairs. Raises InputError where their numbers do not fit."""
    if pairs and len(texts) not in (1, len(pairs)):
        found = f"{len(texts)} --text and {len(pairs)} --text-pair" if texts else "no --text"
        allowed = "--text FIRST --text-pair SECOND, each as often as the other; or one --text with several pairs"
        raise InputError([Problem(field="--text-pair", found=found, allowed=allowed)])
    if not pairs:
        return list(texts)
    firsts = texts if len(texts) == len(pairs) else [texts[0]] * len(pairs)
    return list(zip(firsts, pairs, strict=True))


def _print_wait(wait: Any) -> None:
    """A line on standard error for each pause."""
    echo(f"{wait.kind.value}; trying again in {wait.seconds:.1f} s ({wait.message})", err=True)


FIRST_VALUES = 6
"""How many of a vector's values are shown."""


def _as_json(answer: ModelResponse) -> dict[str, Any]:
    """A response in KServe's form, with variant and time."""
    from tritonstack.client.manifest import datatype_of  # noqa: PLC0415

    meanings = {"meanings": [_meaning_json(meaning) for meaning in answer.meanings]} if answer.meanings else {}
    return {
        "model_name": answer.model_name,
        "model_version": answer.model_version,
        "endpoint_name": answer.endpoint_name,
        "target_model": answer.target_model,
        "variant": answer.variant,
        "milliseconds": round(answer.milliseconds, 3),
        "attempts": answer.attempts,
        "bytes_sent": answer.bytes_sent,
        "bytes_received": answer.bytes_received,
        "outputs": [
            {"name": name, "datatype": datatype_of(array), "shape": list(array.shape), "data": _plain(array)}
            for name, array in answer.outputs.items()
        ],
        **meanings,
    }


def _meaning_json(meaning: Meaning) -> dict[str, Any]:
    from tritonstack.client import postprocessing  # noqa: PLC0415

    if isinstance(meaning, postprocessing.Classes):
        return {"classes": [{"index": one.index, "name": one.name, "score": one.score} for one in meaning.best]}
    if isinstance(meaning, postprocessing.Text):
        return {"text": meaning.text}
    return {"embedding": _plain(meaning.vector)}


def _plain(array: Array) -> list[Any]:
    """An array's elements for JSON, flat; bytes as text, with escapes where they are none."""
    if array.dtype == object:
        return [item.decode(errors="backslashreplace") for item in array.ravel()]
    if array.dtype.kind in "biu":
        values: list[Any] = array.ravel().tolist()
        return values
    # The shortest decimal that reads back as the same number of the array's own type: 0.1, not 0.10000000149.
    return [float(str(value)) for value in array.ravel()]


def show(answer: ModelResponse) -> None:
    """Print a response, by its meaning where it has one, and a line with variant and time."""
    console = result_console()
    for meaning in answer.meanings:
        _show_meaning(console, meaning)
    if not answer.meanings:
        console.print(_arrays(answer), width=box_width(console))
    form = "binary" if answer.content_type.startswith("application/vnd") else "JSON"
    who = f"{answer.target_model or answer.model_name} at {answer.endpoint_name} ({answer.variant})"
    tries = f" after {answer.attempts} attempts" if answer.attempts > 1 else ""
    time = f"{answer.milliseconds:.1f} ms{tries}"
    console.print(
        Text(f"{who}: {time}; {answer.bytes_sent:,} bytes sent as {form}, {answer.bytes_received:,} received"),
        soft_wrap=not console.is_terminal,  # at words on a screen, one line for a program
    )


def _show_meaning(console: Console, meaning: Meaning) -> None:
    from tritonstack.client import postprocessing  # noqa: PLC0415
    from tritonstack.client.manifest import datatype_of  # noqa: PLC0415

    if isinstance(meaning, postprocessing.Text):
        written = visible(meaning.text) if console.is_terminal else meaning.text
        if written.strip():
            click.echo(written)  # as it is, blanks included
        else:
            console.print(Text("(an empty text)", style="dim"))
    elif isinstance(meaning, postprocessing.Embedding):
        vector = meaning.vector
        first = ", ".join(f"{float(value):.4f}" for value in vector[:FIRST_VALUES])
        rest = ", …" if vector.size > FIRST_VALUES else ""
        console.print(Text(f"{vector.size} values of {datatype_of(vector)}: {first}{rest}"), soft_wrap=True)
    else:
        table = Table("class", "name", "score")
        for label in meaning.best:
            table.add_row(str(label.index), Text(label.name), f"{label.score:.4f}")
        console.print(table, width=box_width(console))


def _arrays(answer: ModelResponse) -> Table:
    """A table of a response's outputs."""
    import numpy as np  # noqa: PLC0415

    from tritonstack.client.manifest import datatype_of, shape_text  # noqa: PLC0415

    table = Table("output", "type", "shape", "values")
    for name, array in answer.outputs.items():
        shown = np.array(_plain(array), dtype=object).reshape(array.shape) if array.dtype == object else array
        # One line a row, however long: the table wraps it to the screen, and wrapped twice it would be in shreds.
        values = np.array2string(shown, threshold=40, edgeitems=5, precision=4, max_line_width=sys.maxsize)
        table.add_row(Text(name), datatype_of(array), Text(shape_text(array.shape)), Text(values))
    return table
