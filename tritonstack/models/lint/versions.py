"""Rules about a model's version folders and the policy that chooses among them.

Source: core src/model_repository_manager/model_lifecycle.cc (VersionsToLoad, AsyncLoad).
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.recipe import read_recipe

_NEGATIVE = tuple(f"-{digit}" for digit in range(10))


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What a model's version folders, and the files in them, do wrong."""
    for name in sorted(model.folders - set(model.versions)):
        if name[:1].isdecimal() or name[:2] in _NEGATIVE:
            allowed = "a whole number from 1, without leading zeros, in 63 bits"
            yield Finding(
                file=model.directory / name, rule="version-ignored", found=f"version folder {name}", allowed=allowed
            )
    made_by_build = model.is_ensemble and view.recipe is not None
    if not model.versions and not made_by_build:
        allowed = "a folder 1/ (an empty one for an ensemble)"
        yield Finding(file=model.directory, rule="no-version", found="no version folder", allowed=allowed)
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
    if gone:
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
            yield Finding(
                file=model.directory / version,
                rule="model-file" if backend == "python" else "backend-file",
                found=f"no {wanted}",
                allowed=f"{wanted}, the file that backend {backend} loads",
                advice="name it under exports[].produces if an export makes it" if view.recipe else "",
            )


def _is_built_later(view: RepositoryView, model: ModelView) -> bool:
    """Whether the plan is yet to be built from the graph: the archive of a build without an engine holds the graph."""
    if view.recipe is None:
        return view.addressed is not None  # staged by a build; a repository as it stands has its plans
    is_own = model.directory.parent == view.root
    recipe = view.recipe if is_own else read_recipe(model.directory.parent)
    return recipe.engine is not None


def _has_model_file(model: ModelView, version: str, names: list[str]) -> bool:
    """A file, or a folder of that name (an ONNX model with external weights may be one)."""
    alternatives = [*names, *(str(value) for value in model.config.node.entries("cc_model_filenames").values())]
    places = [f"{version}/{name}" for name in alternatives]
    return any(file == place or file.startswith(f"{place}/") for place in places for file in model.files)
