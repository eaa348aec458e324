"""One module a command of the group; each defines ``command``."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def text_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, left: Container[int] = (0,)
) -> Table:
    """A table of a terminal. ``left``: the columns of text; the others are numbers, to the right.

    In a narrow terminal heads and the last column are wrapped first.
    """
    from rich import box  # noqa: PLC0415 - for --help nothing is drawn
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for place, name in enumerate(columns):
        name_only = place in left and place < len(columns) - 1
        table.add_column(name, overflow="fold", justify="left" if place in left else "right", no_wrap=name_only)
    for row in rows:
        table.add_row(*row)
    return table
