"""One module a command of the group; each defines ``command``."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def table_console(width: int, **options: Any) -> Console:
    """As wide as the terminal; ``width`` characters where the output is none."""
    console = Console(**options)
    return console if console.is_terminal else Console(width=width, **options)
