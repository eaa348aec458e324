"""Markdown as GitHub shows it: tables, and the anchors of headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

COMMAND = "make docs"


def head(title: str, *, source: str) -> str:
    """A generated page's title, and the line that says what it is made from and how it is made again."""
    return f"# {title}\n\nGenerated from {source} by `{COMMAND}`; do not edit.\n"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells may hold any text of one line."""
    lines = [titles, ["---"] * len(titles), *([cell(each) for each in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(text: str) -> str:
    """Text that ends no cell and no row."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def code(text: str) -> str:
    """Text as it is typed; a backtick in it is kept."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, spaces to hyphens, other signs left out."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def link(text: str, heading: str) -> str:
    """A link to a heading of the same page."""
    return f"[{text}](#{anchor(heading)})"
