"""What a test tells while it runs."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Where a test's words go."""

    def note(self, line: str, /) -> None:
        """A line that stays."""

    def say(self, text: str, /) -> None:
        """What is done now, until something else is."""
