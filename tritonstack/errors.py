"""Errors that end a command: wrong input (exit code 2) or failed work (exit code 1)."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


def visible(text: str, *, keep: str = "\n\t") -> str:
    """``text`` with every character that a terminal does not show, or acts on, as its escape (``\\u200b``).

    Those are control, zero-width and bidirectional characters, and blanks other than the plain one.
    """
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


def alike(name: str, names: Iterable[str], *, most: int = 3) -> list[str]:
    """The names that are most like ``name``, the most alike first, at most ``most``; empty where none is."""
    spelt = {each.lower(): each for each in names}
    return [spelt[each] for each in difflib.get_close_matches(name.lower(), spelt, n=most)]


def nearest(name: str, names: Iterable[str], *, most: int = 3) -> str:
    """A sentence that names the most alike of ``names``, or nothing."""
    near = alike(name, names, most=most)
    return f"Did you mean {' or '.join(near)}?" if near else ""


LISTED = 10
"""Names that a message lists; of more it gives the number."""


def listing(names: Iterable[str], *, none: str = "none") -> str:
    """Names for a message, shortened: ``a, b, c, …, and 14 more``. ``none``: the text where there is no name."""
    every = list(names)
    rest = len(every) - LISTED
    return f"{', '.join(every[:LISTED])}, …, and {rest} more" if rest > 1 else ", ".join(every) or none


def workflow_command(kind: str, message: str, place: Mapping[str, object]) -> str:
    """A workflow command of GitHub Actions, which shows a message at a ``place``: file, line, title.

    ``kind``: error, warning or notice. What is empty of the place is left out. Source:
    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands.
    """

    def escaped(text: object, more: str = "") -> str:
        return "".join(f"%{ord(sign):02X}" if sign in f"%\r\n{more}" else sign for sign in str(text))

    given = ",".join(f"{name}={escaped(value, ':,')}" for name, value in place.items() if value)
    return f"::{kind} {given}::{escaped(message)}"


Location = tuple[str | int, ...]
"""Path of keys and indices in a YAML file: ``("endpoints", 0, "release")``."""


def field_of(location: Location) -> str:
    """The path of a field as messages show it: ``endpoints[0].instance_type``."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(steps).removeprefix(".")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong with an input, and how to fix it."""

    # the file as the user named it, with its line where that is known; None where the input is no file
    file: str | None = None
    # the path of the field (``endpoints[0].instance_type``) or a line (``line 12``); empty for the whole file
    field: str = ""
    found: str  # what is there
    allowed: str  # what may be there
    advice: str = ""  # what to do, where that does not follow from ``allowed``
    # the field of a YAML file, from which ``field`` follows
    location: Location = dataclasses.field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.location:
            object.__setattr__(self, "field", field_of(self.location))

    def __str__(self) -> str:
        return self.text()

    def text(self, *, allowed: str = "") -> str:
        """The message; ``allowed``: what is there in place of a list that an earlier message has."""
        place = ": ".join(visible(part, keep="") for part in (self.file, self.field) if part)
        lines = [place] if place else []
        lines += [f"  found:   {self.found}", f"  allowed: {allowed or self.allowed}"]
        if self.advice:
            lines.append(f"  do:      {self.advice}")
        return visible("\n".join(lines))


class TritonstackError(Exception):
    """Base of every error that a command prints without a traceback before it ends with ``exit_code``."""

    exit_code = 1

    def __str__(self) -> str:
        return visible(super().__str__())


LONG = 80
"""Characters of an ``allowed`` that several problems share, from which on the first alone shows it."""
AS_ABOVE = "as above"


class InputError(TritonstackError):
    """Wrong input: every problem at once. Commands end with exit code 2."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Takes at least one problem; equal ones count once."""
        self.problems = tuple(dict.fromkeys(problems))
        texts, lists = [], set[str]()
        for problem in self.problems:
            texts.append(problem.text(allowed=AS_ABOVE if problem.allowed in lists else ""))
            lists |= {problem.allowed} if len(problem.allowed) > LONG else set()
        super().__init__("\n".join(texts))


@contextlib.contextmanager
def collecting(problems: list[Problem]) -> Iterator[None]:
    """Leave the block at an :class:`InputError`, and add its problems to ``problems``."""
    try:
        yield
    except InputError as error:
        problems += error.problems


def refuse(problems: Sequence[Problem]) -> None:
    """Raise :class:`InputError` where there are problems."""
    if problems:
        raise InputError(problems)


class WorkFailedError(TritonstackError):
    """The input is right, but the work failed. Commands end with exit code 1."""


class DeclinedError(TritonstackError):
    """The answer to a question is no. Commands end with exit code 1."""

    def __init__(self) -> None:
        """Its message is always the same."""
        super().__init__("nothing was done")
