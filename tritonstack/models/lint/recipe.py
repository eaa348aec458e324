"""Rules about a recipe against the folder it stands in and the configurations next to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonstack.errors import InputError
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node
from tritonstack.models.recipe import KIND_BACKENDS, RECIPE, Dependency, Recipe
from tritonstack.models.sample import ENVIRONMENT, read_sample
from tritonstack.models.source import CONFIG


def check_recipe(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about a recipe; none for a repository without one."""
    if view.recipe is None:
        return
    yield from _files(view, view.recipe)
    yield from _sample(view, view.recipe)
    yield from _addressed(view, view.recipe)
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
    wanted |= {f"client_files[{index}]": name for index, name in enumerate(recipe.client_files)}
    for field, name in wanted.items():
        if name not in produced and not (view.root / name).is_file():
            yield _at(view, "recipe-file", f"{field}: no file {name}", "a file of the model folder")
    for used in recipe.uses:
        for model in used.models:
            if not (view.root.parent / used.folder / model / CONFIG).is_file():
                yield _at(view, "used-model", f"uses: no model {model} in {used.folder}", "a model of that folder")


def _sample(view: RepositoryView, recipe: Recipe) -> Iterator[Finding]:
    """What is wrong inside the sample's files; that they are there is another rule's matter."""
    if not all((view.root / name).is_file() for name in (recipe.sample.request, recipe.sample.answer)):
        return
    try:
        read_sample(view.root, recipe)
    except InputError as error:
        for problem in error.problems:
            found = f"{problem.field}: {problem.found}" if problem.field else problem.found
            yield Finding(file=Path(problem.file or view.root), rule="sample", found=found, allowed=problem.allowed)


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
    own_python = node.entries("parameters").get(ENVIRONMENT)
    if isinstance(own_python, Node) and dependency == "none":
        found = f"{ENVIRONMENT}, and {RECIPE} says dependency: none"
        allowed = "dependency: python or engine: an execution environment runs on one version of Python"
        yield Finding(file=model.file, line=own_python.line, rule="dependency-differs", found=found, allowed=allowed)
