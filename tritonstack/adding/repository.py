"""A Triton model folder or repository → model folders: one for each ensemble with its steps, one for each other model.

A ``config.pbtxt`` is kept as it is. What it leaves to be completed, from an ONNX graph or by the literals of a
Python model's program, is written at its end, for a build needs every tensor in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tritonstack.adding.additions import (
    PACKED,
    PLAN,
    SUPPORTED,
    Addition,
    AddOptions,
    TritonModel,
    config_text,
    folder_name,
)
from tritonstack.adding.conversions import refusal
from tritonstack.adding.python_packages import NeededPackages, needed_packages
from tritonstack.errors import InputError, Problem, collecting, listing, refuse
from tritonstack.lint import ServingTarget
from tritonstack.lint.completion import complete
from tritonstack.lint.content import check_content
from tritonstack.lint.view import RepositoryView, view_repository
from tritonstack.model_files.framework_files import framework_model
from tritonstack.models.model_config import EXECUTION_ENV_PATH, Tensor
from tritonstack.models.model_view import ModelView, view_model
from tritonstack.models.pbtxt import quoted
from tritonstack.models.python_calls import programs_of
from tritonstack.models.recipe import KIND_BACKENDS, Dependency
from tritonstack.models.source_files import CONFIG, files_below, listed_below
from tritonstack.models.tensorrt_models import TENSORRT
from tritonstack.untrusted.folder_files import text_inside
from tritonstack.untrusted.tar_reading import first_match

KINDS = {backend: kind for kind, backend in KIND_BACKENDS.items()}
_PATH = f"$$TRITON_MODEL_DIRECTORY/{PACKED}"
ENVIRONMENT_PARAMETER = f'parameters {{\n  key: "{EXECUTION_ENV_PATH}"\n  value {{ string_value: "{_PATH}" }}\n}}\n'
"""Names the environment that a build packs of the lock file."""
_ACTIVATE = re.compile(r"^(?:\./)?(bin/activate)$")
COMPLETED = "# Completed by tritonstack add, as Triton does when it loads the model."
TENSORFLOW = "tensorflow"
_MOST_LEVELS = 3
"""So many folders that hold nothing but the next one are looked through for the repository."""


def repository_additions(
    folder: Path, options: AddOptions, *, given: Path, name: str, target: ServingTarget | None = None
) -> tuple[Addition, ...]:
    """The model folders that a Triton model folder or a repository gives.

    ``given``: what the user named, for messages: ``folder`` or the archive that it was unpacked from. ``name``: of the
    model where ``folder`` is one and does not state its name itself. ``target``: where it shall be served. Raises
    :class:`InputError` with every model that lacks something, and where there is none.
    """
    view = _view(folder, name)
    if not view.models:
        raise InputError([_no_model(folder, given)])
    refuse(list(_not_in_release(view, target)))
    groups = _groups(view)
    if options.name is not None and len(groups) > 1:
        found = f"{options.name} for {len(groups)} models: {', '.join(groups)}"
        allowed = "a name for one model; without it they are called so"
        raise InputError([Problem(field="--name", found=found, allowed=allowed)])
    problems: list[Problem] = list(_missing_steps(view))
    if given_tensors := [each.name for each in (*options.inputs, *options.outputs)]:
        allowed = f"none for a Triton model folder: its {CONFIG} states the tensors"
        problems.append(Problem(field="--input, --output", found=", ".join(given_tensors), allowed=allowed))
    found_models: list[Addition] = []
    for addressed, members in groups.items():
        with collecting(problems):
            found_models.append(_addition(view, addressed, members, options, given=given))
    refuse(problems)
    return tuple(found_models)


def _not_in_release(view: RepositoryView, target: ServingTarget | None) -> Iterator[Problem]:
    """Models of TensorFlow for a release whose image has no backend for them, each with its conversion."""
    release = target.release if target is not None else None
    if release is None or TENSORFLOW in release.backends:
        return
    for model in view.models.values():
        if model.backend != TENSORFLOW or not model.versions:
            continue
        path = model.directory / model.versions[-1] / (model.model_file or "model.savedmodel")
        converted = framework_model(path) if path.exists() else None
        if converted is not None:
            problem = refusal(converted, name=model.name)
            lacks = f", and the image of release {release.version} has no backend tensorflow"
            yield replace(problem, found=problem.found + lacks)


def _view(folder: Path, name: str) -> RepositoryView:
    """The models of a folder: of itself where it is one, else of its sub-folders."""
    for _ in range(_MOST_LEVELS):
        own = view_model(folder, (), root=folder)
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
    return CONFIG in model.files or bool(model.versions and model.derived.backend and not model.derived.from_name)


def _no_model(folder: Path, given: Path) -> Problem:
    """The problem of a folder without a model, with what can be added."""
    files = [name for name, _, _ in listed_below(folder)]
    graphs = [name for name in files if name.endswith((".onnx", ".pt"))]
    advice = f"tritonstack add {given / graphs[0]} --name NAME" if graphs and folder == given else ""
    found = f"no Triton model: {listing(files, none='no file')}"
    return Problem(
        file=str(given), found=found, allowed=f"<model>/{CONFIG} and <model>/1/…; {SUPPORTED}", advice=advice
    )


def _groups(view: RepositoryView) -> dict[str, tuple[str, ...]]:
    """Model that requests reach → the models of its archive, itself first.

    Ensembles, and Python models that call others, include the models that they use; an unused model is its own group.
    """
    uses = {name: _used(name, view) for name in view.models}
    used = {other for name, others in uses.items() for other in others if other != name}
    groups: dict[str, tuple[str, ...]] = {}
    for root in [name for name in view.models if name not in used] or list(view.models)[:1]:
        reached = [root]
        for name in reached:
            reached += [each for each in uses[name] if each not in reached]
        groups[root] = (root, *sorted(reached[1:]))
    return groups


def _used(name: str, view: RepositoryView) -> list[str]:
    """The models of the repository that one calls: an ensemble's steps, or names that a Python model's code quotes."""
    model = view.models[name]
    if model.is_ensemble:
        called = dict.fromkeys(step.text("model_name") for step in model.config.steps)
        return [each for each in called if each in view.models]
    if model.backend != "python":
        return []
    programs = [model.on_disk(each) for each in model.files if each.endswith(".py")]
    texts = [text_inside(path, view.root) for path in programs if path is not None]
    quotes = {each for text in texts for each in re.findall(r"model_name\s*=\s*[\"']([^\"']+)[\"']", text)}
    return sorted(quotes & view.models.keys() - {name})


def _missing_steps(view: RepositoryView) -> Iterator[Problem]:
    for model in view.ensembles:
        for step in model.config.steps:
            name = step.text("model_name")
            if name not in view.models:
                found = f"step {name}, which is not in the repository"
                place = f"line {step.line_of('model_name')}"
                allowed = f"models next to it: {', '.join(sorted(view.models))}"
                yield Problem(file=str(model.file), field=place, found=found, allowed=allowed)


def _addition(
    view: RepositoryView, addressed: str, members: Sequence[str], options: AddOptions, *, given: Path
) -> Addition:
    problems: list[Problem] = []
    unknown: list[str] = []
    models: list[TritonModel] = []
    packages: dict[str, NeededPackages] = {}
    brings_own = False
    for name in members:
        model = view.models[name]
        damaged = [finding.problem() for finding in check_content(view, model) if finding.level == "error"]
        problems += damaged
        text = ""
        with collecting([] if damaged else problems):  # nothing is completed from a file that is none
            text, of_model = _completed(view, model, name)
            unknown += of_model
        if model.backend == TENSORRT and "1/model.onnx" not in model.files:
            found, advice = PLAN
            problems.append(Problem(file=str(model.directory), found=found, allowed=SUPPORTED, advice=advice))
        names_own = EXECUTION_ENV_PATH in model.config.node.entries("parameters")
        if model.backend == "python" and not names_own and (packed := _packed_environment(model)):
            brings_own = True
            text = f"{text.rstrip()}\n\n{ENVIRONMENT_PARAMETER.replace(PACKED, packed)}"
            unknown.append(f"{name}/{CONFIG} named no execution environment; {packed} is there, and is written into it")
        elif model.backend == "python" and not names_own:
            with collecting(problems):
                needed = needed_packages(
                    model.directory,
                    within=view.root,
                    programs=programs_of(model.directory),
                    packages=options.packages,
                )
                if needed is not None:
                    packages[name] = needed
        files: dict[str, Path] = {}
        with collecting(problems):  # links that lead outside, pipes: copied they would be somebody's files
            files = {file: path for file, path in files_below(model.directory, within=view.root) if file != CONFIG}
        models.append(TritonModel(name=name, config=text, files=files))
    if any(needed.is_stated for needed in packages.values()):  # --package is for those that ask for any
        packages = {name: needed for name, needed in packages.items() if needed.is_stated}
    models = [
        replace(model, config=f"{model.config.rstrip()}\n\n{ENVIRONMENT_PARAMETER}")
        if model.name in packages
        else model
        for model in models
    ]
    main = view.models[addressed]
    if not main.backend and main.is_readable:
        allowed = 'backend: "…" or platform: "…"'
        problems.append(Problem(file=str(main.file), field="backend", found="no backend", allowed=allowed))
    refuse(problems)
    others = f" with {', '.join(members[1:])}" if len(members) > 1 else ""
    return Addition(
        name=folder_name(options.name or addressed, given=options.name is not None, source=given),
        model=addressed,
        kind=KINDS.get(main.backend, "other"),
        dependency="python" if packages or brings_own else _dependency([view.models[name] for name in members]),
        packages=packages,
        description=f"The Triton model {addressed}{others}.",
        models=tuple(models),
        unknown=tuple(unknown),
    )


def _packed_environment(model: ModelView) -> str:
    """An execution environment that lies in a Python model's directory, as conda-pack makes one; empty for none."""
    for name in sorted(model.files):
        path = model.on_disk(name) if "/" not in name and name.endswith(".tar.gz") else None
        if path is not None and first_match(path, _ACTIVATE):
            return name
    return ""


def _dependency(models: Sequence[ModelView]) -> Dependency:
    """Dependency of the models' bytes, by their configurations."""
    if any(model.backend == TENSORRT for model in models):
        return "engine"
    has_own_python = any(EXECUTION_ENV_PATH in model.config.node.entries("parameters") for model in models)
    return "python" if has_own_python else "none"


def _completed(view: RepositoryView, model: ModelView, name: str) -> tuple[str, tuple[str, ...]]:
    """A configuration's text with every tensor in it, and what was taken that it does not state.

    Raises :class:`InputError` where the model's files do not state the tensors.
    """
    config = model.config
    if not model.is_readable:
        return model.text, ()  # the linter reports why
    done, states_size = complete(view, model), config.node.has("max_batch_size")
    added: dict[str, Sequence[Tensor]] = {}
    if not config.inputs:
        added["input"] = done.inputs
    if not config.outputs:
        added["output"] = done.outputs
    if lacking := [kind for kind, tensors in added.items() if not tensors]:
        backend = f"{model.backend or 'no backend'} completes none"
        raise InputError(
            [
                Problem(
                    file=str(model.file),
                    field=kind,
                    found=f"no {kind}, and nothing in the folder that states it ({backend})",
                    allowed=f"every {kind} with name, data_type and dims",
                    advice=f"write them into {model.file}",
                )
                for kind in lacking
            ]
        )
    if not added and config.backend:
        return model.text, ()
    grows = states_size and not config.max_batch_size and done.max_batch_size > 0
    if grows and model.backend != "python":  # Triton cannot tell 0 from none; a user can. A program sets what it wants
        added = {kind: [_without_batch(each) for each in tensors] for kind, tensors in added.items()}
    head = [] if CONFIG in model.files else [f"name: {quoted(name)}"]
    head += [] if config.backend else [f"backend: {quoted(model.backend)}"]
    fields = config_text(
        head="\n".join(head),
        max_batch_size=None if states_size else done.max_batch_size or None,
        inputs=added.get("input", ()),
        outputs=added.get("output", ()),
    )
    text = f"{model.text.rstrip()}\n\n" if model.text.strip() else ""
    what = ", ".join([*(["backend"] if not config.backend else []), *(f"{kind}s" for kind in added)])
    return f"{text}{COMPLETED}\n{fields}", (
        f"{name}/{CONFIG} left {what} to Triton: written at its end from the files",
    )


def _without_batch(tensor: Tensor) -> Tensor:
    """A tensor of a batch as one with a free first axis."""
    return replace(tensor, dims=(-1, *(tensor.dims if tensor.reshape is None else tensor.reshape)), reshape=None)
