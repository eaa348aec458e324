"""``tritonstack add``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from tritonstack.adding.additions import ANSWER, TENSOR_FORM, AddOptions, parse_tensors
from tritonstack.adding.input_adapter import with_adapter
from tritonstack.adding.large_files import large_file_advice
from tritonstack.adding.new_folder import Added, refuse_existing, write_folder
from tritonstack.adding.sources import read_source
from tritonstack.cli.conventions import LOCAL, echo, environment_option, package_option
from tritonstack.cli.progress import Steps
from tritonstack.config.model_entries import CURRENT, endpoint_for_models, lines_to_add, model_entries
from tritonstack.errors import InputError, Problem, TritonstackError
from tritonstack.lint import ServingTarget
from tritonstack.lint.registry import shown
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import Tensor, read_config
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source_files import CONFIG, files_below
from tritonstack.paths import environment_file


@click.command("add", epilog="example: tritonstack add model.onnx --name resnet")
@click.argument("source", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the model folder. [default: made of the file's name]")
@environment_option("Name of the environment that shall serve it.")
@click.option("--endpoint", help="Endpoint that shall serve it. [default: the only multi-model endpoint]")
@click.option("--variant", help="Name of a second production variant of a single-model endpoint, which serves it.")
@click.option(
    "--input", "inputs", multiple=True, metavar="TENSOR", help=f"Input that the file does not state: {TENSOR_FORM}."
)
@click.option(
    "--output", "outputs", multiple=True, metavar="TENSOR", help="The same for an output. Both may be repeated."
)
@click.option("--image", metavar="INPUT", help="Take images for this input: an adapter, and an image as the sample.")
@click.option("--text", metavar="INPUT", help="Take texts for this input: an adapter, and a text as the sample.")
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    help="File tokenizer.json, where --text names an input for the numbers of tokens.",
)
@click.option(
    "--text-pairs",
    is_flag=True,
    help="With --text: texts come in pairs, such as question and context, or query and passage (cross-encoders).",
)
@package_option
def command(
    *,
    source: Path,
    name: str | None,
    environment: str,
    endpoint: str | None,
    variant: str | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
    image: str | None,
    text: str | None,
    tokenizer: Path | None,
    text_pairs: bool,
    packages: Sequence[str],
) -> int:
    """Make a model folder of a model's file, a Triton model folder or repository, or a model.tar.gz.

    Files: ONNX, TorchScript, and forests: XGBoost's JSON and UBJSON, LightGBM's text.

    Writes model_repos/NAME with recipe.yaml, config.pbtxt, a sample request of seeded values and the response that the
    model gives to it, and puts NAME onto an endpoint of the environment. Nothing that is there is overwritten. The
    code of a Python or TorchScript model is run for that, on this machine and with your rights: add what you trust.
    """
    options = AddOptions(
        name=name,
        inputs=parse_tensors("--input", inputs),
        outputs=parse_tensors("--output", outputs),
        image=image,
        text=text,
        tokenizer=tokenizer,
        text_pairs=text_pairs,
        packages=tuple(packages),
    )
    context = click.get_current_context()
    named = context.get_parameter_source("environment") is ParameterSource.COMMANDLINE
    explicit = named or (endpoint, variant) != (None, None)
    places, file = Places.of_project(), environment_file(environment)
    serving = _serving(file, endpoint, explicit=explicit, as_variant=variant is not None)
    target = None if isinstance(serving, InputError) else serving[1]
    steps = Steps()
    with (
        steps.step(f"add {source}") as step,
        read_source(source, options, places=places, report=step.say, target=target, announce=steps.note) as found,
    ):
        refuse_existing(found, places.repositories)
        if variant is not None and len(found) > 1:
            raise InputError([Problem(field="--variant", found=f"{len(found)} models", allowed="one model")])
        adapted = [with_adapter(each, options) for each in found]
        added = [
            write_folder(each, places=places, target=target, report=step.say, announce=steps.note) for each in adapted
        ]
        step.end_with(
            ", ".join(f"{each.addition.name}{'' if each.recorded else ', without a response'}" for each in added)
        )
    _print_results(
        added,
        file=file,
        environment=environment,
        endpoint=serving if isinstance(serving, InputError) else serving[0],
        variant=variant,
        streams=target is not None and bool(target.streams),
        project=places.repositories.parent,
    )
    return max((each.failure.exit_code for each in added if each.failure), default=0)


def _print_results(
    added: Sequence[Added],
    *,
    file: Path,
    environment: str,
    endpoint: str | InputError,
    variant: str | None,
    streams: bool,
    project: Path,
) -> None:
    """Put what is ready onto the endpoint; print what was written, what keeps the rest from it, and what comes next.

    ``endpoint``: its name, or why the environment has none. ``streams``: whether it streams responses.
    """
    ready = [each for each in added if each.failure is None]
    lines = [line for each in added for line in _written(each)]
    if ready:
        names = [each.addition.name for each in ready]
        if isinstance(endpoint, InputError):
            lines += _not_served(file, endpoint, names)
        else:
            lines += _serve(file, endpoint, names, variant)
    lines += [line for each in added for line in large_file_advice(each.folder, project=project)]
    echo("\n".join(lines))
    for each in added:
        if each.failure is not None:
            echo("\n".join(_unfinished(each, each.failure)), err=True)
            if isinstance(endpoint, str):
                echo("\n".join(_to_add(file, endpoint, each.addition.name, variant)), err=True)
    unfinished = [each.addition.name for each in added if each.failure is not None]
    if unfinished and isinstance(endpoint, InputError):
        echo("\n".join(_not_served(file, endpoint, unfinished)), err=True)
    if ready:
        options = f" --variant {variant}" if variant else ""
        options += " --stream" if streams else ""
        name = endpoint if isinstance(endpoint, str) else None
        echo("\n".join(_next(ready, environment, options, endpoint=name)))


def _serving(
    file: Path, endpoint: str | None, *, explicit: bool, as_variant: bool
) -> tuple[str, ServingTarget] | InputError:
    """The endpoint that shall serve what is added, or why the environment has none.

    Raises InputError where the user named an environment or an endpoint that cannot serve it.
    """
    try:
        settings, found = endpoint_for_models(file, name=endpoint, as_variant=as_variant)
    except InputError as error:
        if explicit:
            raise
        return error
    return found.name, ServingTarget.of_endpoint(found, settings.environment, region=settings.region)


def _serve(file: Path, endpoint: str, models: Sequence[str], variant: str | None) -> Iterator[str]:
    """Put models onto an endpoint; what was changed, or what is to be changed by hand."""
    entries = model_entries(file, endpoint=endpoint, models=models, variant=variant)
    try:
        entries.write()
    except InputError as error:
        yield f"Not put onto endpoint {endpoint}, as the file would not hold then:\n{error}"
        yield f"  then:    put {', '.join(entries.added)} onto it, in {shown(file)}:"
        yield from (f"           {line}" for line in entries.lines())
    else:
        change = f"models + {', '.join(entries.added)}" if entries.added else "models has it already"
        if variant is not None:
            change = f"variants {CURRENT} and {variant}, whose weight 0 is for requests that name it alone"
        yield f"{shown(file)}\n  endpoint {endpoint} serves it: {change}"


def _to_add(file: Path, endpoint: str, model: str, variant: str | None) -> Iterator[str]:
    """What puts a model onto an endpoint once what keeps it from being served is fixed."""
    entries = model_entries(file, endpoint=endpoint, models=[model], variant=variant)
    if entries.added:
        yield f"  then:    put it onto endpoint {endpoint}, in {shown(file)}:"
    yield from (f"           {line}" for line in entries.lines())


def _not_served(file: Path, error: InputError, models: Sequence[str]) -> Iterator[str]:
    """Why models are on no endpoint, and the lines that put them onto one once that is fixed."""
    yield f"Not put onto an endpoint:\n{error}"
    if all(not problem.advice for problem in error.problems):
        yield f"  do:      fix {', '.join(dict.fromkeys(each.file or shown(file) for each in error.problems))}"
    yield f"  then:    put {', '.join(models)} onto an endpoint, in {shown(file)}:"
    yield from (f"           {line}" for line in lines_to_add(file, models))
    yield "           and see that it holds: tritonstack lint"


def _written(added: Added) -> Iterator[str]:
    """The folder's files, and what they state."""
    addition, recorded = added.addition, added.recorded
    config = read_config(addition.addressed.config)
    batch = f", up to {config.max_batch_size} rows a request" if config.max_batch_size else ""
    rows = [
        (RECIPE, f"kind {addition.kind}"),
        (f"{addition.model}/{CONFIG}", f"{_tensors(config.inputs)} → {_tensors(config.outputs)}{batch}"),
        *((f"{model.name}/", _size(added.folder / model.name)) for model in addition.models),
        *added.locked.items(),
        (addition.request_file, "seeded values" if addition.sample_file is None else "for the adapter"),
        (recorded.file.relative_to(added.folder).as_posix() if recorded else ANSWER, str(recorded or "not recorded")),
    ]
    width = max(len(name) for name, _ in rows)
    yield shown(added.folder)
    yield from (f"  {name:<{width}}  {text}" for name, text in rows)
    yield from (f"  to check: {line}" for line in addition.unknown)
    yield from (f"  {finding}" for finding in added.findings if finding.level == "warning")


def _size(folder: Path) -> str:
    """Number and size of a model directory's files, without its configuration."""
    sizes = [path.stat().st_size for name, path in files_below(folder) if name != CONFIG]
    return f"{len(sizes)} {'file' if len(sizes) == 1 else 'files'}, {sum(sizes):,} bytes"


def _tensors(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f"{tensor.name} {tensor.data_type} {list(tensor.dims)}" for tensor in tensors)


def _unfinished(added: Added, failure: TritonstackError) -> Iterator[str]:
    """Why a folder has no response or cannot be served, and what to do."""
    what = "its model gave no response to record" if added.recorded is None else "the endpoint cannot serve it"
    yield f"{shown(added.folder)} is written, but {what}:"
    yield str(failure)
    yield f"  do:      {added.remedy}"


def _next(added: Sequence[Added], environment: str, options: str, *, endpoint: str | None) -> Iterator[str]:
    """The commands that come next; ``endpoint`` serves what was added, or None does. ``options``: of `invoke`."""
    names = " ".join(each.addition.name for each in added)
    yield "Next:"
    if endpoint is None:
        yield f"  tritonstack build {names}"
    elif environment == LOCAL:
        yield "  tritonstack local deploy"
        for each in added:
            request = shown(each.folder / each.addition.request_file)
            yield f"  tritonstack invoke {endpoint}/{each.addition.name} --input {request}{options}"
    else:
        yield f"  tritonstack build {names} -e {environment}"
