"""Model folders → recipe → export → proof → lint → pack → publish.

This package's namespace stays light: synthesis imports it. What builds, packs and publishes lies in its modules.
"""

from tritonstack.archives.contents import ArchiveContents, contents_of
from tritonstack.archives.digest import check_model_folders, model_digest, release_set
from tritonstack.archives.recipe import Recipe, read_recipe
from tritonstack.archives.resolving import choice_of, resolved_models, sources_of
from tritonstack.archives.source import ArchiveSource, BuildChoice

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
