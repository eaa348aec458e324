"""``python -m scripts.documentation``: writes the generated pages of docs/."""

from __future__ import annotations

from collections.abc import Callable

from scripts.documentation.api_members_page import api_members_page
from scripts.documentation.architecture_page import architecture_page
from scripts.documentation.commands_page import commands_page
from scripts.documentation.constructs_page import constructs_page
from scripts.documentation.cost_blocks import prices_page, review_page
from scripts.documentation.engines_page import engines_page
from scripts.documentation.settings_page import recipes_page, settings_page
from scripts.documentation.terminal_picture import PAGE, PICTURE, getting_started, terminal_picture
from scripts.documentation.triton_releases_page import triton_releases_page
from tritonstack.paths import repository_path, write_text

MAKERS: dict[str, Callable[[], str]] = {
    "docs/reference/settings.md": settings_page,
    "docs/reference/recipes.md": recipes_page,
    "docs/reference/api-members.md": api_members_page,
    "docs/reference/releases.md": triton_releases_page,
    "docs/reference/commands.md": commands_page,
    "docs/reference/constructs.md": constructs_page,
    "docs/prices.md": prices_page,
    "docs/review.md": review_page,
    "docs/architecture.md": architecture_page,
    "docs/engines.md": engines_page,
    PICTURE: terminal_picture,
    PAGE: getting_started,
}
"""Path in the repository → the function that returns the file's text; the same for the same code."""


def main() -> None:
    """Write what is not current, and print which."""
    for name, maker in MAKERS.items():
        path, text = repository_path(name), maker()
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        if not current:
            write_text(path, text)
        print(f"{name}: {'unchanged' if current else 'written'}")


if __name__ == "__main__":
    main()
