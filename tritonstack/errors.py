"""Errors that end a command: wrong input (exit code 2) or failed work (exit code 1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass


def visible(text: str, *, keep: str = "\n\t") -> str:
    """``text`` with every character that a terminal does not show, or acts on, as its escape (``\\u200b``).

    Those are control, zero-width and bidirectional characters, and blanks other than the plain one.
    """
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


Location = tuple[str | int, ...]
"""Path of keys and indices in a YAML file: ``("endpoints", 0, "release")``."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong with an input, and how to mend it."""

    # the file as the user named it, with its line where that is known; None where the input is no file
    file: str | None = None
    # the path of the field (``endpoints[0].instance_type``) or a line (``line 12``); empty for the whole file
    field: str = ""
    found: str  # what stands there
    allowed: str  # what may stand there
    advice: str = ""  # what to do, where that does not follow from ``allowed``
    # the field of a YAML file, from which ``field`` follows
    location: Location = dataclasses.field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.location:
            steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.location)
            object.__setattr__(self, "field", "".join(steps).removeprefix("."))

    def __str__(self) -> str:
        place = ": ".join(visible(part, keep="") for part in (self.file, self.field) if part)
        lines = [place] if place else []
        lines += [f"  found:   {self.found}", f"  allowed: {self.allowed}"]
        if self.advice:
            lines.append(f"  do:      {self.advice}")
        return visible("\n".join(lines))


class TritonstackError(Exception):
    """Base of every error that a command prints without a traceback before it ends with ``exit_code``."""

    exit_code = 1

    def __str__(self) -> str:
        return visible(super().__str__())


class InputError(TritonstackError):
    """Wrong input: every problem at once. Commands end with exit code 2."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Takes at least one problem."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class WorkFailedError(TritonstackError):
    """The input is right, but the work failed. Commands end with exit code 1."""
