"""``tritonstack update``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from tritonstack.adding.additions import TENSOR_FORM, parse_tensors
from tritonstack.adding.new_folder import response_changes
from tritonstack.cli.conventions import LOCAL, echo, environment_option, package_option, plain_table, result_console
from tritonstack.cli.progress import Steps, ended_by_signals
from tritonstack.config import EndpointSettings, load_environment
from tritonstack.config.model_entries import lines_to_add
from tritonstack.errors import InputError
from tritonstack.lint import ServingTarget
from tritonstack.lint.registry import shown
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import read_recipe
from tritonstack.models.selection import sources_of
from tritonstack.models.source import archives_of
from tritonstack.paths import environment_file
from tritonstack.updating.contract import CallerChange
from tritonstack.updating.model_copy import UpdateOptions
from tritonstack.updating.next_version import Updated, update_model


@click.command("update", epilog="example: tritonstack update iris retrained.onnx")
@click.argument("model", metavar="MODEL")
@click.argument("source", metavar="[FILE_OR_FOLDER]", required=False, type=click.Path(path_type=Path))
@environment_option("Name of the environment that serves it.")
@click.option(
    "--accept-changes", is_flag=True, help="Take it although callers have to send or read something else from then on."
)
@click.option(
    "--take-config",
    is_flag=True,
    help="Take the config.pbtxt of the new folder. [default: the one that is here stays, but for the tensors]",
)
@click.option(
    "--input", "inputs", multiple=True, metavar="TENSOR", help=f"Input that a TorchScript file takes: {TENSOR_FORM}."
)
@click.option(
    "--output", "outputs", multiple=True, metavar="TENSOR", help="The same for an output. Both may be repeated."
)
@package_option
def command(
    *,
    model: str,
    source: Path | None,
    environment: str,
    accept_changes: bool,
    take_config: bool,
    inputs: Sequence[str],
    outputs: Sequence[str],
    packages: Sequence[str],
) -> int:
    """Put a new file into a model's folder, or take the files there as they are now, and record its response anew.

    MODEL is a folder below model_repos/, or FOLDER/MODEL for a step of an ensemble. FILE_OR_FOLDER is what `tritonstack
    add` takes; a Python program alone (.py) is taken, too. What you set in config.pbtxt and recipe.yaml stays. A new
    version that needs other requests, or gives other outputs, is shown and refused without --accept-changes. An error
    or an interruption changes nothing. The code of a Python or TorchScript model is run, with your rights.
    """
    options = UpdateOptions(
        inputs=parse_tensors("--input", inputs),
        outputs=parse_tensors("--output", outputs),
        packages=tuple(packages),
        accept_changes=accept_changes,
        take_config=take_config,
    )
    places = Places.of_project()
    read_recipe(places.folder(model.partition("/")[0]))  # refused before anything else is looked at
    endpoint, target = _serving(environment, model.partition("/")[0], places)
    steps = Steps()
    with ended_by_signals(), steps.step(f"update {model}") as step:
        updated = update_model(
            model,
            source,
            options,
            places=places,
            target=target,
            report=step.say,
            announce=steps.note,
            show=_show_changes,
        )
        count = len(updated.files)
        step.end_with(f"{count} file{'s' if count != 1 else ''} changed")
    for line in (*_written(updated), *_next(updated, environment, endpoint, source)):
        echo(line)
    return 1 if updated.skipped else 0


def _serving(environment: str, folder: str, places: Places) -> tuple[EndpointSettings | None, ServingTarget | None]:
    """The endpoint of the environment that serves the model, and what it can serve; None where none does."""
    file = environment_file(environment)
    try:
        settings = load_environment(file)
        for endpoint in settings.endpoints:
            sources = (source for name in endpoint.models for source in sources_of(name, places.repositories))
            if any(source.folder.name == folder for source in sources):
                return endpoint, ServingTarget.of_endpoint(endpoint, settings.environment)
    except InputError:
        if environment != LOCAL or file.is_file():
            raise
    return None, None


def _show_changes(changes: Mapping[str, tuple[CallerChange, ...]]) -> None:
    """Print what callers notice, a row each; one sentence where that is nothing."""
    for model, found in changes.items():
        if not found:
            echo(f"{model}: inputs, outputs, types, shapes and batch are as before")
            continue
        rows = ((each.what, each.before, each.after, "callers change" if each.breaks else "") for each in found)
        result_console().print(plain_table(("callers notice", "before", "after", ""), rows, title=model))


def _written(updated: Updated) -> Iterator[str]:
    """The files that changed, and the new response beside the one before."""
    yield shown(updated.folder)
    names = [each.name for each in updated.files]
    width = max(map(len, names), default=0)
    for each in updated.files:
        before, after = ("none" if size is None else f"{size:,} bytes" for size in (each.before, each.after))
        yield f"  {each.name:<{width}}  {before} → {after}"
    if not names:
        yield "  no file changed"
    yield from (f"  {note}" for note in updated.notes)
    request = read_recipe(updated.folder).sample.request
    for recorded in updated.recorded:
        yield f"response to {shown(updated.folder / request)}: {recorded}"
        if request in names:
            yield "  not compared with the earlier response, which was to another request"
        elif not recorded.earlier:
            yield "  the first one: none was recorded before"
        else:
            yield from (f"  {line}" for line in response_changes(recorded))
    if updated.skipped:
        answer = shown(updated.folder / read_recipe(updated.folder).sample.answer)
        yield f"response not recorded, for no server here runs it: {updated.skipped}"
        yield f"  do:      write {answer}, in KServe's JSON form, by what made the model"


def _next(updated: Updated, environment: str, endpoint: EndpointSettings | None, source: Path | None) -> Iterator[str]:
    """The commands that come next."""
    if not updated.files:
        return
    name = updated.folder.name
    message = f"{name}: {source.name}" if source is not None else f"{name}: the next version"
    yield "Next:"
    yield f"  git add -A {shown(updated.folder)} && git commit -m {shlex.quote(message)}"
    if endpoint is None:
        yield f"  tritonstack build {name}"
        file = environment_file(environment)
        yield f"No endpoint of {environment} serves {name}. To serve it, write into {shown(file)}:"
        yield from (f"  {line}" for line in lines_to_add(file, [name]))
    elif environment == LOCAL:
        yield "  tritonstack local deploy"
        request = shown(updated.folder / read_recipe(updated.folder).sample.request)
        for archive in archives_of(updated.folder)[:1]:
            stream = " --stream" if endpoint.streams else ""
            yield f"  tritonstack invoke {endpoint.name}/{archive.name} --input {request}{stream}"
    else:
        yield f"  tritonstack build {name} -e {environment}"
