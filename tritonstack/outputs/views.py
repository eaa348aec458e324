"""The document as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tritonstack.outputs.contract import OutputsDocument


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


def table(document: OutputsDocument) -> Table:
    """Every value, and why it is missing where it is."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    made.add_column("field", no_wrap=True)
    made.add_column("value", overflow="fold")
    for path, value in fields(document):
        made.add_row(".".join(path), value if value is not None else f"- ({document.absent['/' + '/'.join(path)]})")
    return made
