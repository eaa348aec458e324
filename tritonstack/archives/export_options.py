"""What an export script is told, and the digest of everything that its files depend on."""

from __future__ import annotations

from typing import Any

from tritonstack.archives.digest import library_files, lock_digests, sha256_of, short_digest
from tritonstack.archives.export_recipe import Export
from tritonstack.archives.folder import CONFIG
from tritonstack.archives.model_config import read_config
from tritonstack.archives.source import ArchiveSource


def script_options(source: ArchiveSource, export: Export) -> dict[str, Any]:
    """``--options`` of one export: the recipe's and the build's choices. The same for overlays that export alike.

    Raises :class:`InputError` where a recipe or a configuration is wrong.
    """
    recipe = source.recipe
    return {
        "size": source.size,
        "weights": source.weights,
        "seed": recipe.seed,
        "source": recipe.source.plain() if recipe.source else None,
        "graph": export.graph.model_dump(mode="json") if export.graph else None,
        "engine": recipe.engine.model_dump(mode="json", exclude={"tolerance"}) if recipe.engine else None,
        "max_batch_size": max_batch_size(source),
        "largest_batch": recipe.proof.largest_batch,
        "tolerance": recipe.proof.tolerance,
        "options": export.options,
        "archive": source.folder.resolve().name,
    }


def max_batch_size(source: ArchiveSource) -> int:
    """The addressed model's, the overlay's fragments included; 0 where there is no such model."""
    configs = (model.config for model in source.own_models() if model.name == source.model)
    return next((read_config(config).max_batch_size for config in configs), 0)


def export_digest(source: ArchiveSource, *, count: int) -> str:
    """The digest of what the first ``count`` exports of an archive depend on: 16 hexadecimal digits.

    It covers what the scripts are told, every file of the folder but configurations, fragments and the sample's answer,
    the sample request with its adapter, lock files and the library of the exporters. Overlays and copies whose exports
    are the same have the same digest, so that they share one export.
    """
    recipe = source.recipe
    exports = recipe.exports[:count]
    left_out = {*source.fragments, recipe.sample.answer}
    files = {
        name: sha256_of(path)
        for name, path in source.files().items()
        if name not in left_out and not name.endswith(f"/{CONFIG}")
    }
    steps = [
        {
            "environment": export.environment,
            "script": export.script,
            "produces": export.produces,
            "options": script_options(source, export),
        }
        for export in exports
    ]
    return short_digest(
        {
            "steps": steps,
            "sample": [recipe.sample.request, recipe.adapters.model_dump(mode="json", exclude_defaults=True)],
            "files": files,
            "locks": lock_digests(source),
            "library": {name: sha256_of(path) for name, path in library_files(source).items()},
        }
    )
