"""The console of every command: what a terminal would act on, or not show, is printed as its escape.

Names, tags, messages, logs and responses are untrusted. Rich's own colours and cursor movements are no text and pass.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tritonstack.errors import visible


class SafeConsole(Console):
    """A console whose texts are all made visible, in tables, live lines and sentences alike."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As Console's, each text without characters that a terminal acts on."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)
