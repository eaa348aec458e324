"""Which Triton backends a model folder needs: checked against the release that shall serve it."""

from __future__ import annotations

from pathlib import Path

from tritonstack.archives.folder import CONFIG, model_directories
from tritonstack.archives.model_config import read_config
from tritonstack.archives.recipe import read_recipe


def backends_of(folder: Path) -> frozenset[str]:
    """The backends (``onnxruntime``, ``python``, …; ``ensemble`` too) of every model that the archive contains.

    The models of used folders count. A configuration that names no backend adds none: the linter refuses it.
    Raises :class:`InputError` where a recipe is wrong.
    """
    recipe = read_recipe(folder)
    own = [path / CONFIG for path in model_directories(folder)]
    used = [folder.parent / used.folder / model / CONFIG for used in recipe.uses for model in used.models]
    found = {read_config(path.read_text()).backend for path in (*own, *used) if path.is_file()}
    return frozenset(found - {""})
