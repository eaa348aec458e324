"""The document as variables of a shell, and as a table for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tritonstack.errors import InputError, Problem
from tritonstack.outputs.contract import OutputsDocument

PREFIX = "TRITONSTACK"
_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z0-9_./:=@%+,-]*")


def fields(document: OutputsDocument) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Every single value with its path; a list is joined with commas. Reasons are left out."""
    yield from _fields(document.model_dump(exclude={"absent"}), ())


def _fields(value: Any, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _fields(each, (*at, name))
    elif isinstance(value, list | tuple):
        yield at, ",".join(map(str, value))
    else:
        yield at, None if value is None else str(value)


def variables(document: OutputsDocument) -> str:
    """Lines ``TRITONSTACK_ENDPOINTS__DIGITS__NAME=…``, as a shell, ``docker --env-file`` and ``$GITHUB_ENV`` read them.

    Two underscores stand between the parts of a path, one stands for a hyphen. What is null is empty.

    Raises:
        InputError: two fields would have one name, or a value would need quotes, which not all of these readers know.
    """
    lines: dict[str, str] = {}
    problems: list[Problem] = []
    for path, value in fields(document):
        name = f"{PREFIX}_{'__'.join(path)}".replace("-", "_").upper()
        place = ".".join(path)
        if name in lines:
            problems.append(
                Problem(
                    field=place, found=f"a second value for {name}", allowed="one field a variable", advice="--json"
                )
            )
        if not _NEEDS_NO_QUOTES.fullmatch(value or ""):
            allowed = "letters, digits and _./:=@%+,-"
            problems.append(Problem(field=place, found=repr(value), allowed=allowed, advice="--json"))
        lines[name] = value or ""
    if problems:
        raise InputError(problems)
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def table(document: OutputsDocument) -> Table:
    """Every value, and why it is missing where it is."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    made.add_column("field", no_wrap=True)
    made.add_column("value", overflow="fold")
    for path, value in fields(document):
        made.add_row(".".join(path), value if value is not None else f"- ({document.absent['/' + '/'.join(path)]})")
    return made
