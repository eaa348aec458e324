"""What a model folder's archive contains: checked against the endpoint and the release that shall serve it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.folder import CONFIG, model_directories
from tritonstack.archives.model_config import read_config
from tritonstack.archives.recipe import read_recipe


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


def contents_of(folder: Path) -> ArchiveContents:
    """What the archive of a model folder will contain.

    A configuration that names no backend adds none: the linter refuses it. Raises :class:`InputError` where a recipe
    is wrong.
    """
    recipe = read_recipe(folder)
    own = model_directories(folder)
    used = [folder.parent / used.folder / model for used in recipe.uses for model in used.models]
    configs = {
        path.name: read_config((path / CONFIG).read_text(errors="replace"))
        for path in sorted((*own, *used), key=lambda path: path.name)
        if (path / CONFIG).is_file()
    }
    return ArchiveContents(
        models=tuple(configs),
        ensembles=tuple(name for name, config in configs.items() if config.is_ensemble),
        backends=frozenset(config.backend for config in configs.values()) - {""},
    )
