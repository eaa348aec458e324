"""Names in a message."""

from __future__ import annotations

from collections.abc import Iterable

NAMES_SHOWN = 10


def shown(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = len(listed) - NAMES_SHOWN
    return ", ".join(listed[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
