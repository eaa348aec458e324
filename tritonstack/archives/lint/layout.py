"""Rules about the archive's layout: what SageMaker's front end of Triton makes of the directories.

Source: triton-inference-server/server src/sagemaker_server.cc (SageMakerMMELoadModel).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonstack.archives.folder import CONFIG, JUNK
from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.view import ModelView, RepositoryView

MANY_DIRECTORIES = 5
OUT_OF_MEMORY_WORDS = (
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "out of memory",
    "MemoryError",
    "OOM",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_",
    "failed to allocate memory",
    "No space left on device",
)
"""Texts in an error that the front end takes for a full GPU (507), case-sensitive: src/sagemaker_server.cc."""

OUTSIDE_MODELS = ("sample", "warmup", "tests")
"""Folders beside the models that a model folder may have; they are not packed."""


def check_layout(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about the directories of an archive."""
    yield from _root(view)
    if not view.models:
        yield Finding(
            file=view.root, rule="no-model", found="no directory with a config.pbtxt", allowed="<model>/config.pbtxt"
        )
        return
    yield from _addressed(view)
    if len(view.models) > MANY_DIRECTORIES:
        found = f"{len(view.models)} models in one archive"
        yield Finding(
            file=view.root,
            rule="many-directories",
            level="warning",
            found=found,
            allowed=f"up to {MANY_DIRECTORIES}; SageMaker's front end logs a warning above that",
        )
    for model in view.models.values():
        yield from _model(view, model)


def _root(view: RepositoryView) -> Iterator[Finding]:
    if (view.root / CONFIG).is_file():
        yield Finding(
            file=view.root / CONFIG,
            rule="config-at-root",
            found="config.pbtxt at the root of the archive",
            allowed="<model>/config.pbtxt",
            advice="a single-model endpoint refuses it, and it hides every model directory",
        )
    for path in sorted(view.root.rglob("*")):
        if path.name == ".ipynb_checkpoints":
            yield Finding(
                file=path,
                rule="notebook-checkpoints",
                found="a folder that a notebook left behind",
                allowed="none: other tools pack it, and Triton reads it as a model or a version",
                advice="delete it",
            )
    for path in sorted(view.root.iterdir()):
        is_stray = path.is_dir() and path.name not in (*view.models, *OUTSIDE_MODELS, *JUNK)
        if is_stray and (view.recipe is None or _looks_like_model(path)):
            yield Finding(
                file=path,
                rule="directory-without-config",
                found="a directory without config.pbtxt",
                allowed="model directories, each with a config.pbtxt",
                advice="SageMaker's front end counts it as a model",
            )


def _looks_like_model(path: Path) -> bool:
    return any(child.is_dir() and child.name.isdecimal() for child in path.iterdir())


def _addressed(view: RepositoryView) -> Iterator[Finding]:
    """Which model do requests reach? SageMaker asks for the only one, or for the only ensemble."""
    names = ", ".join(sorted(view.models))
    ensembles = [model.name for model in view.ensembles]
    reached = ensembles or sorted(view.models)
    if len(ensembles) > 1:
        yield Finding(
            file=view.root,
            rule="several-ensembles",
            found=f"{len(ensembles)} ensembles: {', '.join(ensembles)}",
            allowed='one model with platform: "ensemble"; which of several is served is arbitrary',
        )
    elif len(view.models) > 1 and not ensembles:
        yield Finding(
            file=view.root,
            rule="several-models-no-ensemble",
            found=f"several models and no ensemble: {names}",
            allowed='one model, or one with platform: "ensemble" that uses the others',
            advice="without it, which model is served is arbitrary",
        )
    elif view.addressed is not None and view.addressed != reached[0]:
        yield Finding(
            file=view.root,
            rule="addressed-model",
            found=f"requests shall reach {view.addressed}, SageMaker serves {reached[0]}",
            allowed="the only model, or the only ensemble, as the one that the recipe names",
        )


def _model(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    name = model.config.name
    line = model.config.node.line_of("name")
    if name and name != model.name:
        yield Finding(
            file=model.file, line=line, rule="name-differs", found=f'name: "{name}"', allowed=f'name: "{model.name}"'
        )
    tensors = [(tensor.name, tensor.line) for tensor in (*model.config.inputs, *model.config.outputs)]
    for text, where in ((model.name, line), *tensors):
        word = next((word for word in OUT_OF_MEMORY_WORDS if word in text), None)
        if word:
            yield Finding(
                file=model.file,
                line=where,
                rule="out-of-memory-in-name",
                found=f"{word!r} in the name {text}",
                allowed="any other name",
                advice="each error that quotes it would make SageMaker unload other models (507)",
            )
    yield from _versions(view, model)


def _versions(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    ignored = sorted(name for name in model.folders if name.isdecimal() and name not in model.versions)
    if ignored:
        yield Finding(
            file=model.file.parent / ignored[0],
            rule="version-ignored",
            found=f"version folder {ignored[0]}",
            allowed="a number from 1, without leading zeros; Triton ignores others",
        )
    made_by_build = model.config.is_ensemble and view.recipe is not None
    if not model.versions and not made_by_build:
        yield Finding(
            file=model.file.parent,
            rule="no-version",
            found="no version folder",
            allowed="a folder 1/ (an empty one for an ensemble)",
        )
    wanted = model.config.model_file
    if model.config.is_ensemble or not wanted:
        return
    for version in model.versions:
        if not _has_model_file(model, version, wanted):
            yield Finding(
                file=model.file.parent / version,
                rule="model-file",
                found=f"no {wanted}",
                allowed=f"{wanted}, the file that backend {model.config.backend} loads",
                advice="name it under export.produces if an export makes it" if view.recipe else "",
            )


def _has_model_file(model: ModelView, version: str, wanted: str) -> bool:
    """A file, or a folder of that name (an ONNX model with external weights may be one)."""
    alternatives = [wanted, "dali.py"] if model.config.backend == "dali" else [wanted]
    alternatives += [str(value) for value in model.config.node.entries("cc_model_filenames").values()]
    places = [f"{version}/{name}" for name in alternatives]
    return any(file == place or file.startswith(f"{place}/") for place in places for file in model.files)
