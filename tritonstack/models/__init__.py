"""Model folders → recipe → export → proof → lint → pack → publish.

The names below are what synthesis needs; what builds, packs and publishes lies in its modules. Each is imported when it
is first used, so that who wants one module of this package pays for that one alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonstack.models.contents import ArchiveContents, contents_of
    from tritonstack.models.digest import check_model_folders, model_digest, release_set
    from tritonstack.models.recipe import Recipe, read_recipe
    from tritonstack.models.resolving import choice_of, resolved_models, sources_of
    from tritonstack.models.source import ArchiveSource, BuildChoice

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
    "contents": ("ArchiveContents", "contents_of"),
    "digest": ("check_model_folders", "model_digest", "release_set"),
    "recipe": ("Recipe", "read_recipe"),
    "resolving": ("choice_of", "resolved_models", "sources_of"),
    "source": ("ArchiveSource", "BuildChoice"),
}


if not TYPE_CHECKING:  # else every wrong name would pass the type checker

    def __getattr__(name: str) -> Any:
        """A name of ``__all__``, of its module (PEP 562); Python asks only for what is not there yet."""
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        globals()[name] = found
        return found
