"""What an archive contains: checked against the endpoint and the release that shall serve it."""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack.archives.folder import CONFIG, files_below
from tritonstack.archives.model_config import read_config
from tritonstack.archives.source import ArchiveSource


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
    """Whether an archive needs a TensorRT engine and holds the ONNX graph instead, since a build makes no engine."""
    if "tensorrt" not in contents_of(source).backends:
        return False
    made = {name for export in source.recipe.exports for name in export.produces}
    used = {name for used in source.recipe.uses for name, _ in files_below(source.folder.parent / used.folder)}
    return not any(name.endswith(".plan") for name in {*source.files(), *made, *used})
