"""Rules about directories, files and version folders of an archive, and about its recipe."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

from tritonstack.errors import InputError
from tritonstack.lint.backends.fil import other_file
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field
from tritonstack.models.model_config import EXECUTION_ENV_PATH, Node
from tritonstack.models.model_view import ModelView
from tritonstack.models.recipe import KIND_BACKENDS, RECIPE, Dependency, Recipe, read_recipe
from tritonstack.models.sample import read_sample
from tritonstack.models.source_files import CONFIG, is_junk, model_directories
from tritonstack.untrusted.folder_files import unfit

# Source: server src/sagemaker_server.cc (SageMakerMMELoadModel) and docker/sagemaker/serve.


OUTSIDE_MODELS = ("sample", "warmup", "tests", "overlays")
"""Folders beside the models that a model folder may have; they are not packed."""


def check_layout(view: RepositoryView) -> Iterator[Finding]:
    """Check the directories of an archive."""
    yield from _root(view)
    if not view.models:
        yield Finding(file=view.root, rule="no-model", found="no directory with a config.pbtxt")
        return
    yield from _ensembles_as_seen(view)
    yield from _served(view)
    yield from _single_model(view)


def _root(view: RepositoryView) -> Iterator[Finding]:
    if (view.root / CONFIG).is_file():
        yield Finding(file=view.root / CONFIG, rule="config-at-root", found=f"{CONFIG} at the root of the archive")
    for path in sorted(view.root.iterdir()):
        expected = {*view.models, *(OUTSIDE_MODELS if view.recipe else ())}
        if path.is_dir() and path.name not in expected and not is_junk(path.name):
            yield Finding(
                file=path,
                rule="directory-without-config",
                found=f"a directory without {CONFIG}",
                advice="" if view.recipe else f"a recipe.yaml would leave {', '.join(OUTSIDE_MODELS)} out",
            )


def _ensembles_as_seen(view: RepositoryView) -> Iterator[Finding]:
    """Find ensembles on which the front end, which searches the text, and Triton, which reads the field, disagree."""
    for model in view.models.values():
        if model.is_ensemble and not model.sagemaker_sees_ensemble:
            found = "an ensemble that SageMaker's front end does not see"
            yield at_field(model, "platform", "ensemble-literal", found)
        elif model.sagemaker_sees_ensemble and not model.is_ensemble:
            yield at_field(model, "name", "ensemble-mistaken", 'the text platform: "ensemble" in a model that is none')


def _served(view: RepositoryView) -> Iterator[Finding]:
    """The model that requests reach: the ensemble, else the only one."""
    names = ", ".join(sorted(view.models))
    ensembles = [model.name for model in view.ensembles]
    reached = ensembles or sorted(view.models)
    if len(ensembles) > 1:
        found = f"{len(ensembles)} ensembles: {', '.join(ensembles)}"
        yield Finding(file=view.root, rule="several-ensembles", found=found)
    elif len(view.models) > 1 and not ensembles and view.called:
        if view.target.multi_model is None:
            yield Finding(
                file=view.root,
                rule="bls-default-model",
                found=f"several models and no ensemble, and {view.addressed or 'one of them'} calls others: {names}",
            )
    elif len(view.models) > 1 and not ensembles:
        found = f"several models and no ensemble: {names}"
        yield Finding(file=view.root, rule="several-models-no-ensemble", found=found)
    elif view.addressed is not None and view.addressed != reached[0] and view.addressed in view.models:
        found = f"requests shall reach {view.addressed}, SageMaker serves {reached[0]}"
        allowed = "the only model, or the only ensemble, as the one that the recipe names"
        yield Finding(file=view.root, rule="addressed-model", found=found, allowed=allowed)


def _single_model(view: RepositoryView) -> Iterator[Finding]:
    """Single-model mode: the serve script takes the only directory, or the one that a variable names."""
    target = view.target
    if target.multi_model is not False:
        return
    ensembles = [model for model in view.models.values() if model.config.is_ensemble]
    by_itself = len(ensembles) == 1 or (view.recipe is not None and not ensembles and bool(view.called))
    named = target.names_ensemble and by_itself
    if target.default_model is None and len(view.models) > 1 and not named:
        found = f"{len(view.models)} models, and {target.name} names none to serve"
        allowed = f"container.default_model_name: {view.served or 'one of them'}"
        yield Finding(file=view.root, rule="default-model", found=found, allowed=allowed)
    elif target.default_model is not None and target.default_model not in view.models:
        found = f"{target.name} serves {target.default_model}, which is not in the archive"
        yield Finding(file=view.root, rule="default-model", found=found, allowed=", ".join(sorted(view.models)))


STRAY = (
    ".ipynb_checkpoints", "*.ipynb", ".git", ".svn", ".DS_Store", "Thumbs.db", "desktop.ini", ".vscode", ".idea",
    "*~", "*.swp", "*.swo", "*.bak", "*.orig", "*.rej", "*.tmp", "*.partial", "#*#", ".#*",
    ".pytest_cache", ".mypy_cache", ".ruff_cache",
)  # fmt: skip
"""What notebooks, version control, editors and file managers leave behind."""


def check_inside(view: RepositoryView) -> Iterator[Finding]:
    """Links that lead out of the folder, or nowhere, and what is no file: nothing of them is read, copied or packed.

    Of a model folder with a recipe a model's links stay inside the model, which is packed by itself.
    """
    models = {path.name: path for path in model_directories(view.root)} if view.recipe else {}
    for current, directories, names in os.walk(view.root):
        for name in sorted([*directories, *names]):
            path = Path(current) / name
            of_model = models.get(path.relative_to(view.root).parts[0])
            root = view.root if of_model in (None, path) else of_model
            found = "" if is_junk(name) else unfit(path, root or view.root)
            if found:
                yield Finding(file=path, rule="link-outside" if path.is_symlink() else "not-a-file", found=found)
        directories[:] = [name for name in directories if not _is_stray(name) and not is_junk(name)]


def check_files(view: RepositoryView) -> Iterator[Finding]:
    """Find leftover files in everything that is packed.

    Of a model folder with a recipe the models are packed, of any other repository everything.
    """
    roots = model_directories(view.root) if view.recipe else (view.root,)
    for root in (each for each in roots if not unfit(each, view.root)):
        for current, directories, names in os.walk(root):
            for name in sorted([*directories, *names]):
                path = Path(current) / name
                if _is_stray(name):
                    rule = "notebook-checkpoints" if name == ".ipynb_checkpoints" else "stray-file"
                    found = "what a notebook, an editor or version control left behind"
                    yield Finding(file=path, rule=rule, found=found)
            directories[:] = [name for name in directories if not _is_stray(name)]


def _is_stray(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in STRAY)


# Source: core src/model_repository_manager/model_lifecycle.cc (VersionsToLoad, AsyncLoad).


_NEGATIVE = tuple(f"-{digit}" for digit in range(10))


def check_versions(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a model's version folders and the files in them."""
    for name in sorted(model.folders - set(model.versions)):
        if name[:1].isdecimal() or name[:2] in _NEGATIVE:
            yield Finding(file=model.directory / name, rule="version-ignored", found=f"version folder {name}")
    made_by_build = model.is_ensemble and view.recipe is not None
    if not model.versions and not made_by_build:
        yield Finding(file=model.directory, rule="no-version", found="no version folder")
    elif not model.served_versions and not made_by_build:
        allowed = f"a policy that takes one of {', '.join(model.versions)}"
        yield at_field(model, "version_policy", "version-policy", "a version_policy that takes no version", allowed)
    else:
        yield from _missing_versions(model)
    yield from _model_file(view, model)


def _missing_versions(model: ModelView) -> Iterator[Finding]:
    """Versions that the policy names and that are not there: Triton logs an error and serves the others."""
    policy = model.config.node.node("version_policy")
    specific = policy.node("specific") if policy else None
    if policy is None or specific is None:
        return
    gone = [number for number in specific.integers("versions") if str(number) not in model.versions]
    if repeated := [number for number in gone if gone.count(number) > 1]:  # which Triton loads, there or not
        found, allowed = f"version {repeated[0]} twice, which is not there", ", ".join(model.versions)
        yield at_field(model, "versions", "version-policy", found, allowed, specific)
    elif gone:
        found, allowed = f"version {gone[0]}, which is not there", ", ".join(model.versions)
        yield at_field(model, "versions", "version-missing", found, allowed, specific)


def _model_file(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    wanted = model.model_file
    if model.is_ensemble or not wanted:
        return
    backend = model.backend
    alternatives = {"dali": ["dali.py"], "tensorrt": ["model.onnx"]}
    if backend == "tensorrt" and not _is_built_later(view, model):
        alternatives = {}
    for version in model.served_versions:
        names = [wanted, *alternatives.get(backend, [])]
        is_file = f"{version}/{wanted}" in model.files  # Python imports no folder of that name
        if not (is_file if backend == "python" else _has_model_file(model, version, names)):
            kind = f" as model_type {model.config.forest_type}" if backend == "fil" else ""
            of_export = "name it under exports[].produces if an export makes it" if view.recipe else ""
            yield Finding(
                file=model.directory / version,
                rule="model-file" if backend == "python" else "backend-file",
                found=f"no {wanted}",
                allowed=f"{wanted}, the file that backend {backend} loads{kind}",
                advice=(other_file(model, version) if backend == "fil" else "") or of_export,
            )


def _is_built_later(view: RepositoryView, model: ModelView) -> bool:
    """Whether the plan is yet to be built from the graph: the archive of a build without an engine holds the graph."""
    if view.recipe is None:
        return view.addressed is not None  # staged by a build; a finished repository has its plans
    is_own = model.directory.parent == view.root
    recipe = view.recipe if is_own else read_recipe(model.directory.parent)
    return recipe.engine is not None


def _has_model_file(model: ModelView, version: str, names: list[str]) -> bool:
    """A file, or a folder of that name (an ONNX model with external weights may be one)."""
    alternatives = [*names, *(str(value) for value in model.config.node.entries("cc_model_filenames").values())]
    places = [f"{version}/{name}" for name in alternatives]
    return any(file == place or file.startswith(f"{place}/") for place in places for file in model.files)


def check_recipe(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about a recipe; none for a repository without one."""
    if view.recipe is None:
        return
    yield from _files(view, view.recipe)
    yield from _sample(view, view.recipe)
    yield from _addressed(view, view.recipe)
    yield from _adapters(view, view.recipe)
    for model in view.models.values():
        yield from _dependency(model, view.recipe.dependency)


def _at(view: RepositoryView, rule: str, found: str, allowed: str) -> Finding:
    return Finding(file=view.root / RECIPE, rule=rule, found=found, allowed=allowed)


def _files(view: RepositoryView, recipe: Recipe) -> Iterator[Finding]:
    wanted = {"sample.request": recipe.sample.request, "sample.answer": recipe.sample.answer}
    produced = {name for export in recipe.exports for name in export.produces}
    for index, export in enumerate(recipe.exports):
        wanted[f"exports[{index}].script"] = export.script
        for name in export.produces:
            if name.split("/")[0] not in {*view.models, "sample"} and name not in recipe.client_files:
                found = f"exports[{index}].produces: {name}"
                allowed = f"files below a model: {', '.join(view.models)}; below sample; or client_files"
                yield _at(view, "export-outside", found, allowed)
    for name in recipe.files:
        if name.split("/")[0] not in view.models:
            yield _at(view, "export-outside", f"files: {name}", f"files below a model: {', '.join(view.models)}")
    wanted |= {f"client_files[{index}]": name for index, name in enumerate(recipe.client_files)}
    if recipe.engine is not None and recipe.engine.calibration_cache is not None:
        wanted["engine.calibration_cache"] = recipe.engine.calibration_cache
    for field, name in wanted.items():
        exported = name in produced and field != "engine.calibration_cache"  # which trtexec reads in the folder
        if not exported and not (view.root / name).is_file():
            yield _at(view, "recipe-file", f"{field}: no file {name}", "a file of the model folder")
    for used in recipe.uses:
        for model in used.models:
            if not (view.root.parent / used.folder / model / CONFIG).is_file():
                yield _at(view, "used-model", f"uses: no model {model} in {used.folder}", "a model of that folder")


def _sample(view: RepositoryView, recipe: Recipe) -> Iterator[Finding]:
    """Check the content of the sample's files; another rule checks that they exist."""
    if not all((view.root / name).is_file() for name in (recipe.sample.request, recipe.sample.answer)):
        return
    try:
        read_sample(view.root, recipe)
    except InputError as error:
        for problem in error.problems:
            found = f"{problem.field}: {problem.found}" if problem.field else problem.found
            yield Finding(file=Path(problem.file or view.root), rule="sample", found=found, allowed=problem.allowed)


def _adapters(view: RepositoryView, recipe: Recipe) -> Iterator[Finding]:
    """Inputs of adapters and outputs of answers that the model lacks; a model without a list of tensors is passed."""
    model = view.models.get(view.addressed or "")
    if model is None or not model.is_readable:
        return
    inputs, outputs = ([each.name for each in tensors] for tensors in (model.config.inputs, model.config.outputs))
    used = [(f"adapters.{kind}", each, inputs) for kind, one in recipe.adapters.present.items() for each in one.inputs]
    if (meaning := recipe.answers.kind) is not None:
        used.append(("answers", meaning.output, outputs))
    for field, name, known in used:
        if known and name not in known:
            yield _at(view, "adapter-tensor", f"{field}: {name}, which the model lacks", ", ".join(known))


def _addressed(view: RepositoryView, recipe: Recipe) -> Iterator[Finding]:
    model = view.models.get(view.addressed or "")
    if model is None:
        found = f"no model directory {view.addressed}"
        yield _at(view, "addressed-model", found, f"model: one of {', '.join(sorted(view.models)) or 'none there'}")
    elif model.backend:
        kind = next((kind for kind, backend in KIND_BACKENDS.items() if backend == model.backend), "other")
        if recipe.kind != kind:
            found = f"kind: {recipe.kind}, and {model.name}/{CONFIG} says {model.backend}"
            wanted = KIND_BACKENDS.get(recipe.kind)
            allowed = f"kind: {kind}{f', or a configuration for {wanted}' if wanted else ''}"
            yield _at(view, "kind-differs", found, allowed)


def _dependency(model: ModelView, dependency: Dependency) -> Iterator[Finding]:
    """Dependencies that a configuration implies, against the recipe's ``dependency``."""
    node = model.config.node
    if model.backend == "tensorrt" and dependency != "engine":
        line = node.line_of("backend" if node.has("backend") else "platform")
        found = f"backend tensorrt, and {RECIPE} says dependency: {dependency}"
        allowed = "dependency: engine: a plan runs on one TensorRT and one kind of GPU"
        yield Finding(file=model.file, line=line, rule="dependency-differs", found=found, allowed=allowed)
    own_python = node.entries("parameters").get(EXECUTION_ENV_PATH)
    if isinstance(own_python, Node) and dependency == "none":
        found = f"{EXECUTION_ENV_PATH}, and {RECIPE} says dependency: none"
        allowed = "dependency: python or engine: an execution environment runs on one version of Python"
        yield Finding(file=model.file, line=own_python.line, rule="dependency-differs", found=found, allowed=allowed)
