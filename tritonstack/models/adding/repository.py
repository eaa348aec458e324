"""A Triton model folder or repository → model folders: one for each ensemble with its steps, one for each other model.

A ``config.pbtxt`` is kept as it is. What it leaves to Triton's auto-completion is written at its end, for a build needs
every tensor in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.models.adding.additions import PLAN, SUPPORTED, Addition, AddOptions, TritonModel, folder_name
from tritonstack.models.adding.tensors import DEFAULT_BATCH, TENSOR_FORM, batch_axis, config_text
from tritonstack.models.lint.completion import complete
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.lint.view import ModelView, RepositoryView, view_model, view_repository
from tritonstack.models.model_config import Tensor
from tritonstack.models.pbtxt import quoted
from tritonstack.models.recipe import KIND_BACKENDS, Dependency
from tritonstack.models.source import CONFIG, TENSORRT, files_below

KINDS = {backend: kind for kind, backend in KIND_BACKENDS.items()}
COMPLETED = "# Completed by tritonstack add, as Triton does when it loads the model."
ENVIRONMENT = "EXECUTION_ENV_PATH"
_MOST_LEVELS = 3
"""So many folders that hold nothing but the next one are looked through for the repository."""


def repository_additions(folder: Path, options: AddOptions, *, given: Path, name: str) -> tuple[Addition, ...]:
    """The model folders that a Triton model folder or a repository gives.

    ``given``: what the user named, for messages: ``folder`` or the archive that it was unpacked from. ``name``: of the
    model where ``folder`` is one and does not state its name itself. Raises :class:`InputError` with every model that
    lacks something, and where there is none.
    """
    view = _view(folder, name)
    if not view.models:
        raise InputError([_no_model(folder, given)])
    groups = _groups(view)
    if options.name is not None and len(groups) > 1:
        found = f"{options.name} for {len(groups)} models: {', '.join(groups)}"
        allowed = "a name for one model; without it they are called so"
        raise InputError([Problem(field="--name", found=found, allowed=allowed)])
    problems: list[Problem] = list(_missing_steps(view))
    if (options.inputs or options.outputs or options.max_batch_size is not None) and len(view.models) > 1:
        found = "tensors or a batch size for several models"
        problems.append(Problem(field="--input", found=found, allowed="one model", advice=f"change their {CONFIG}"))
    found_models: list[Addition] = []
    for addressed, members in groups.items():
        try:
            found_models.append(_addition(view, addressed, members, options, given=given))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(tuple(dict.fromkeys(problems)))
    return tuple(found_models)


def _view(folder: Path, name: str) -> RepositoryView:
    """The models of a folder: of itself where it is one, else of its sub-folders."""
    for _ in range(_MOST_LEVELS):
        own = view_model(folder, ())
        if _is_model(own):
            return RepositoryView(root=folder, recipe=None, addressed=None, models={own.config.name or name: own})
        view = view_repository(folder, addressed=None)
        view = replace(view, models={each: model for each, model in view.models.items() if _is_model(model)})
        inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
        if view.models or len(inside) != 1 or not inside[0].is_dir():
            break
        folder = inside[0]
    return view


def _is_model(model: ModelView) -> bool:
    """Whether a directory is a model's: with a configuration, or a version with a file that Triton knows."""
    return CONFIG in model.files or bool(model.versions and model.derived.backend)


def _no_model(folder: Path, given: Path) -> Problem:
    """What is there instead of a model, and what of it can be added."""
    files = [name for name, _ in files_below(folder)]
    graphs = [name for name in files if name.endswith((".onnx", ".pt"))]
    shown = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "") or "no file"
    advice = f"tritonstack add {given / graphs[0]} --name NAME" if graphs and folder == given else ""
    found = f"no Triton model: {shown}"
    return Problem(
        file=str(given), found=found, allowed=f"<model>/{CONFIG} and <model>/1/…; {SUPPORTED}", advice=advice
    )


def _groups(view: RepositoryView) -> dict[str, tuple[str, ...]]:
    """Model that requests reach → the models of its archive, itself first.

    Ensembles, and Python models that call others, bring what they use; what nobody uses stands for itself.
    """
    uses = {name: _used(name, view) for name in view.models}
    used = {other for name, others in uses.items() for other in others if other != name}
    roots = [name for name in view.models if name not in used] or list(view.models)[:1]
    return {root: tuple(dict.fromkeys([root, *sorted(_reached(root, uses) - {root})])) for root in roots}


def _reached(name: str, uses: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting += uses[here]
    return found


def _used(name: str, view: RepositoryView) -> list[str]:
    """The models of the repository that one calls: an ensemble's steps, or names that a Python model's code quotes."""
    model = view.models[name]
    if model.is_ensemble:
        called = [step.text("model_name") for step in model.config.steps]
        return [each for each in called if each in view.models]
    if model.backend != "python":
        return []
    programs = [model.directory / each for each in model.files if each.endswith(".py")]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in programs if path.is_file()]
    quotes = {each for text in texts for each in re.findall(r"model_name\s*=\s*[\"']([^\"']+)[\"']", text)}
    return sorted(quotes & view.models.keys() - {name})


def _missing_steps(view: RepositoryView) -> Iterator[Problem]:
    for model in view.ensembles:
        for step in model.config.steps:
            name = step.text("model_name")
            if name not in view.models:
                found = f"step {name}, which is not in the repository"
                place = f"line {step.line_of('model_name')}"
                allowed = f"models beside it: {', '.join(sorted(view.models))}"
                yield Problem(file=str(model.file), field=place, found=found, allowed=allowed)


def _addition(
    view: RepositoryView, addressed: str, members: Sequence[str], options: AddOptions, *, given: Path
) -> Addition:
    problems: list[Problem] = []
    unknown: list[str] = []
    models: list[TritonModel] = []
    for name in members:
        model = view.models[name]
        try:
            completed = _completed(view, model, name, options, given=given)
        except InputError as error:
            problems += error.problems
            continue
        unknown += completed.unknown
        if model.backend == TENSORRT and "1/model.onnx" not in model.files:
            found, advice = PLAN
            problems.append(Problem(file=str(model.directory), found=found, allowed=SUPPORTED, advice=advice))
        files = {file: path for file, path in files_below(model.directory) if file != CONFIG}
        gone = [path for path in files.values() if not path.is_file()]
        problems += [Problem(file=str(path), found="a link to nothing", allowed="a file") for path in gone]
        models.append(TritonModel(name=name, config=completed.text, files=files))
    main = view.models[addressed]
    if not main.backend and main.is_readable:
        allowed = 'backend: "…" or platform: "…"'
        problems.append(Problem(file=str(main.file), field="backend", found="no backend", allowed=allowed))
    if problems:
        raise InputError(problems)
    others = f" with {', '.join(members[1:])}" if len(members) > 1 else ""
    return Addition(
        name=folder_name(options.name or addressed, given=options.name is not None, source=given),
        model=addressed,
        kind=KINDS.get(main.backend, "other"),
        dependency=_dependency(view.models[name] for name in members),
        description=f"The Triton model {addressed}{others}.",
        models=tuple(models),
        unknown=tuple(unknown),
    )


def _dependency(models: Iterable[ModelView]) -> Dependency:
    """What the models' bytes depend on, by their configurations."""
    found: Dependency = "none"
    for model in models:
        if model.backend == TENSORRT:
            return "engine"
        if ENVIRONMENT in model.config.node.entries("parameters"):
            found = "python"
    return found


@dataclass(frozen=True, kw_only=True)
class _Completed:
    """The text of a configuration with every tensor in it, and what was taken."""

    text: str
    unknown: tuple[str, ...] = ()


def _completed(view: RepositoryView, model: ModelView, name: str, options: AddOptions, *, given: Path) -> _Completed:
    """Raises :class:`InputError` where neither the model's files nor the options state the tensors."""
    config = model.config
    if not model.is_readable:
        return _Completed(text=model.text)  # the linter reports why
    done = complete(view, model)
    stated = {"input": config.inputs, "output": config.outputs}
    completed = {"input": done.inputs, "output": done.outputs}
    options_of = {"input": options.inputs, "output": options.outputs}
    problems = [
        Problem(field=f"--{kind}", found=tensor.name, allowed=f"no --{kind}: {CONFIG} states the {kind}s")
        for kind, tensors in options_of.items()
        if stated[kind]
        for tensor in tensors
    ]
    size = done.max_batch_size
    if config.node.has("max_batch_size"):
        size = config.max_batch_size
        if options.max_batch_size is not None:
            allowed = f"no --max-batch-size: {CONFIG} states {size}"
            problems.append(Problem(field="--max-batch-size", found=str(options.max_batch_size), allowed=allowed))
    elif options.max_batch_size is not None:
        size = options.max_batch_size
    elif options.inputs and options.outputs:
        size = DEFAULT_BATCH if batch_axis(options.inputs, options.outputs).possible else 0
    added: dict[str, tuple[GraphTensor, ...]] = {}
    for kind, tensors in stated.items():
        if tensors:
            continue
        added[kind] = options_of[kind] or tuple(
            _as_graph(each, batches=done.max_batch_size > 0) for each in completed[kind]
        )
        if not added[kind]:
            problems.append(_lacks(model, kind, given=given, is_only=len(view.models) == 1))
    if problems:
        raise InputError(problems)
    if not added and config.backend:
        return _Completed(text=model.text)
    head = [] if config.backend else [f"backend: {quoted(model.backend)}"]
    head = head if CONFIG in model.files else [f"name: {quoted(name)}", *head]
    fields = config_text(
        head="\n".join(head),
        max_batch_size=None if config.node.has("max_batch_size") or not size else size,
        inputs=added.get("input", ()),
        outputs=added.get("output", ()),
        batches=size > 0,
    )
    text = f"{model.text.rstrip()}\n\n" if model.text.strip() else ""
    what = ", ".join([*(["backend"] if not config.backend else []), *(f"{kind}s" for kind in added)])
    unknown = f"{name}/{CONFIG} left {what} to Triton; written there: check them"
    return _Completed(text=f"{text}{COMPLETED}\n{fields}", unknown=(unknown,))


def _as_graph(tensor: Tensor, *, batches: bool) -> GraphTensor:
    """A completed tensor with its batch axis."""
    dims = () if tensor.reshape == () else tensor.dims
    axes = tuple(None if length == -1 else length for length in dims)
    return GraphTensor(name=tensor.name, datatype=tensor.data_type, shape=(None, *axes) if batches else axes)


def _lacks(model: ModelView, kind: str, *, given: Path, is_only: bool) -> Problem:
    """Tensors that nothing states: the command with the option, or the file to write them into."""
    how = f"tritonstack add {given} --{kind} NAME:TYPE:SHAPE" if is_only else f"write them into {model.file}"
    backend = model.backend or "no backend"
    found = f"no {kind}, and nothing in the folder that states it ({backend} completes none)"
    return Problem(file=str(model.file), field=kind, found=found, allowed=f"every {kind}: {TENSOR_FORM}", advice=how)
