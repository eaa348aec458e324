"""What an archive contains: checked against the endpoint and the release that shall serve it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from tritonstack.models.folder import CONFIG
from tritonstack.models.model_config import ModelConfig, read_config
from tritonstack.models.source import ArchiveSource, OwnModel

TENSORRT = "tensorrt"


@dataclass(frozen=True, kw_only=True)
class ArchiveContents:
    """The Triton models of one archive, those of used folders included.

    Attributes:
        models: their directories' names, sorted.
        ensembles: those of them that SageMaker's front end takes for ensembles.
        backends: what ``backend:`` and ``platform:`` of their configurations name (``onnxruntime``, ``ensemble``, …).
    """

    models: tuple[str, ...]
    ensembles: tuple[str, ...]
    backends: frozenset[str]


def contents_of(source: ArchiveSource) -> ArchiveContents:
    """What an archive will contain.

    A configuration that names no backend adds none: the linter refuses it. Raises :class:`InputError` where a recipe
    or an overlay is wrong.
    """
    texts = {model.name: model.config for model in source.own_models()}
    for used in source.recipe.uses:
        for name in used.models:
            config = source.folder.parent / used.folder / name / CONFIG
            if config.is_file():
                texts[name] = config.read_text(encoding="utf-8", errors="replace")
    configs = {name: read_config(texts[name]) for name in sorted(texts)}
    return ArchiveContents(
        models=tuple(configs),
        ensembles=tuple(name for name, config in configs.items() if config.is_ensemble),
        backends=frozenset(config.backend for config in configs.values()) - {""},
    )


def lacks_plan(source: ArchiveSource) -> bool:
    """Whether an archive needs a TensorRT engine that has yet to be built: a build makes its ONNX graph alone."""
    return bool(models_without_plan(source))


def models_without_plan(source: ArchiveSource) -> tuple[str, ...]:
    """The TensorRT models of an archive, those of used folders included, that neither folder nor export gives a plan.

    Sorted. Raises :class:`InputError` where a recipe or an overlay is wrong.
    """
    parts = {part.name: part for part in source.used}
    models = [(model, source) for model in source.own_models()]
    for used in source.recipe.uses:
        part = parts[used.folder]
        models += [(model, part) for model in part.own_models() if model.name in used.models]
    return tuple(sorted(model.name for model, part in models if _lacks_plan(model, part)))


def _lacks_plan(model: OwnModel, source: ArchiveSource) -> bool:
    config = read_config(model.config)
    if config.backend != TENSORRT:
        return False
    made = {name for export in source.recipe.exports for name in export.produces}
    files = (PurePosixPath(name) for name in {*source.files(), *made})
    return not any(path.parts[0] == model.directory.name and is_plan(path.name, config) for path in files)


def is_plan(name: str, config: ModelConfig) -> bool:
    """Whether a file of a TensorRT model is a plan by its name: what the backend loads, or one for another GPU."""
    return name.endswith(".plan") or name == config.model_file
