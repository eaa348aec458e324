"""Model folders → recipe → export → proof → lint → pack → publish.

The names below are what synthesis needs; building, packing and publishing lie in their modules. Each is imported on its
first use, so that importing one module of this package does not import the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonstack.models.inputs import (
        check_model_folders,
        choice_of,
        model_digest,
        release_set,
        resolved_models,
        sources_of,
    )
    from tritonstack.models.recipe import Recipe, read_recipe
    from tritonstack.models.source import ArchiveContents, ArchiveSource, BuildChoice, contents_of

__all__ = [
    "ArchiveContents",
    "ArchiveSource",
    "BuildChoice",
    "Recipe",
    "check_model_folders",
    "choice_of",
    "contents_of",
    "model_digest",
    "read_recipe",
    "release_set",
    "resolved_models",
    "sources_of",
]

_MODULES = {
    "inputs": ("check_model_folders", "choice_of", "model_digest", "release_set", "resolved_models", "sources_of"),
    "recipe": ("Recipe", "read_recipe"),
    "source": ("ArchiveContents", "ArchiveSource", "BuildChoice", "contents_of"),
}


if not TYPE_CHECKING:  # else every wrong name would pass the type checker

    def __getattr__(name: str) -> Any:
        """Import a name of ``__all__`` from its module on its first use (PEP 562)."""
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        globals()[name] = found
        return found
