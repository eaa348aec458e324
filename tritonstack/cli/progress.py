"""Steps that show what runs and for how long; signals that end a command in order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tritonstack.cli.safe_console import SafeConsole

SHOWN = 100
"""Characters of a detail: a line of a terminal, with the step's name before it."""
LOG_SECONDS = 10.0
"""How often at most a running step adds a line to a log, where there is no live line."""


@dataclass
class ShownStep:
    """One step that is running."""

    name: str  # what it does
    started: float = field(default_factory=time.monotonic)  # when it began, in monotonic seconds
    detail: str = ""  # what it is at, shown next to its name
    final: bool = False  # the detail is the step's outcome, and stays

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self.started

    def say(self, text: str) -> None:
        """Show what the step is at; an empty line changes nothing."""
        if text:
            self.detail = text[:SHOWN]

    def end_with(self, outcome: str) -> None:
        """Set what stays of the step when it has ended."""
        self.detail, self.final = outcome, True

    def __rich__(self) -> Text:
        """The live line."""
        line = Text.assemble(("… ", "yellow"), self.name, (f"  {self.elapsed:.0f} s", "dim"))
        if self.detail:
            line.append(f"  {self.detail}", style="dim")
        line.no_wrap = True
        line.overflow = "ellipsis"
        return line


class Steps:
    """Prints steps one after the other: a live line while a step runs, a line with its time when it has ended."""

    def __init__(self, console: Console | None = None) -> None:
        """Steps go to standard error, so that a command's own output stays clean."""
        self.console = console or SafeConsole(stderr=True, highlight=False)

    @contextmanager
    def step(self, name: str) -> Iterator[ShownStep]:
        """Show ``name`` as running while the block runs, then its outcome and its time in seconds."""
        step = ShownStep(name)
        live = Live(step, console=self.console, transient=True, refresh_per_second=8)
        try:
            with live if self.console.is_terminal else self._logged(step):
                yield step
        except BaseException:
            self._print(("✗ ", "red"), name, (f"  {step.elapsed:.1f} s", "dim"))
            raise
        outcome = f"  {step.detail}" if step.final and step.detail else ""
        self._print(("✓ ", "green"), name, (f"  {step.elapsed:.1f} s{outcome}", "dim"))

    @contextmanager
    def _logged(self, step: ShownStep) -> Iterator[None]:
        """A line when the step begins, and while it runs what it is at, wherever that is something new."""
        ended = threading.Event()

        def follow() -> None:
            printed = ""
            while not ended.wait(LOG_SECONDS):
                if not step.final and step.detail != printed:
                    printed = step.detail
                    self._print(f"  {step.name}  {step.elapsed:.0f} s  {printed}")

        self._print(f"… {step.name}")
        follower = threading.Thread(target=follow, name="progress", daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()

    def note(self, text: str) -> None:
        """A line that stays, above the step that runs."""
        self._print(text)

    def _print(self, *parts: str | tuple[str, str]) -> None:
        """Print one line; in a log it is not wrapped."""
        self.console.print(Text.assemble(*parts), soft_wrap=not self.console.is_terminal)


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread at the first of the signals; further ones do not disturb its end."""

    def end(_number: int, _frame: Any) -> None:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
