"""The generated pages: which file is made by what. Each maker is imported when its page is made."""

from __future__ import annotations

import importlib

MAKERS: dict[str, tuple[str, str]] = {
    "docs/reference/settings.md": ("scripts.documentation.settings_page", "settings_page"),
    "docs/reference/recipes.md": ("scripts.documentation.settings_page", "recipes_page"),
    "docs/reference/releases.md": ("scripts.documentation.releases_page", "releases_page"),
    "docs/reference/commands.md": ("scripts.documentation.commands_page", "commands_page"),
    "docs/reference/constructs.md": ("scripts.documentation.constructs_page", "constructs_page"),
    "README.md": ("scripts.documentation.cost_blocks", "readme"),
    "docs/review.md": ("scripts.documentation.cost_blocks", "review_page"),
    "docs/architecture.md": ("scripts.documentation.architecture_page", "architecture_page"),
    "docs/clients.md": ("scripts.documentation.payloads", "clients_page"),
    "docs/engines.md": ("scripts.documentation.engines_page", "engines_page"),
}
"""Path in the repository → (module, function that returns the file's text)."""


def page_text(path: str) -> str:
    """The text of a generated file, made anew; the same for the same code."""
    module, function = MAKERS[path]
    text = getattr(importlib.import_module(module), function)()
    return str(text)
