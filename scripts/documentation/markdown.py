"""Markdown as GitHub shows it: tables, and the anchors of headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from tritonstack.cli.docs import heading_anchor
from tritonstack.paths import repository_path

COMMAND = "make docs"
MARK = re.compile(rf"(<!-- (\w+): {COMMAND} -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def head(title: str, *, source: str) -> str:
    """A generated page's title, and the line that names its source and the command that regenerates it."""
    return f"# {title}\n\nGenerated from {source} by `{COMMAND}`; do not edit.\n"


def filled(path: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """A page that people write, with its generated blocks made anew. ``blocks``: name of a mark → what is there.

    Raises ValueError: one of the blocks has no place on the page, or a mark has no block.
    """
    text = repository_path(path).read_text(encoding="utf-8")
    found = {each[2] for each in MARK.finditer(text)}
    if found != set(blocks):
        raise ValueError(f"{path} has marks of {sorted(found)}, not of {sorted(blocks)}: <!-- NAME: {COMMAND} -->")
    return MARK.sub(lambda each: f"{each[1]}{blocks[each[2]]()}{each[3]}", text)


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


def link(text: str, heading: str) -> str:
    """A link to a heading of the same page."""
    return f"[{text}](#{heading_anchor(heading)})"
