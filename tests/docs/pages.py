"""Every Markdown page that people read, its code blocks, headings and links, as CommonMark sees them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.e2e.project import REPOSITORY
from tritonstack.cli.docs import heading_anchor

INDENTED = "indented"
"""The language of a block that is indented and has no fence."""
SHELL = ("console", "sh", "bash", INDENTED)


@dataclass(frozen=True, kw_only=True)
class CodeBlock:
    """One block of code."""

    page: str  # the page's path in the repository
    heading: str  # the heading above it
    line: int  # where its text begins
    language: str  # the first word behind the fence; ``indented`` without a fence, "" where nothing is behind it
    file: str  # the second word behind the fence: the file whose content the block is, or ""
    text: str  # the block

    @property
    def commands(self) -> str:
        """The shell lines of it: those behind ``$`` with what continues them, or all where no line has one."""
        lines, inside = [], False
        for line in self.text.splitlines():
            if line.startswith("$ ") or inside:
                lines.append(line.removeprefix("$ "))
                inside = line.endswith("\\")
        return "\n".join(lines) if any(line.startswith("$ ") for line in self.text.splitlines()) else self.text

    @property
    def begins(self) -> str:
        """Its first line, without prompt and comment."""
        first = (self.commands if self.language in SHELL else self.text).strip().splitlines()[0]
        return first.partition("  #")[0].strip()

    def __str__(self) -> str:
        return f"{self.page}:{self.line} «{self.begins}»"


def pages() -> tuple[str, ...]:
    """README.md, everything below docs/, and each example's README, by their paths in the repository."""
    folders = ("docs/**/*.md", "examples/*/README.md", "tritonstack_*/*.md")
    found = [
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        *(path for folder in folders for path in REPOSITORY.glob(folder)),
    ]
    return tuple(sorted(path.relative_to(REPOSITORY).as_posix() for path in found))


@functools.cache
def tokens(page: str) -> tuple[Token, ...]:
    """The page as CommonMark and GitHub's tables read it."""
    return tuple(MarkdownIt("commonmark").enable("table").parse((REPOSITORY / page).read_text(encoding="utf-8")))


def code_blocks(page: str) -> Iterator[CodeBlock]:
    """Every block of code of a page, fenced or indented, in its order."""
    heading, listed = "", tokens(page)
    for number, token in enumerate(listed):
        if token.type == "heading_open":
            heading = listed[number + 1].content
        if token.type in ("fence", "code_block"):
            fenced = token.type == "fence"
            words = token.info.split() if fenced else [INDENTED]
            yield CodeBlock(
                page=page,
                heading=heading,
                line=(token.map or [0])[0] + 1 + fenced,
                language=words[0] if words else "",
                file=words[1] if len(words) > 1 else "",
                text=token.content.rstrip("\n"),
            )


def anchors(page: str) -> set[str]:
    """Every anchor that a link may name; GitHub numbers headings that come again."""
    found: set[str] = set()
    listed = tokens(page)
    for number, token in enumerate(listed):
        if token.type == "heading_open":
            name = heading_anchor(re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", listed[number + 1].content))
            again = (f"{name}-{count}" for count in range(1, 1000))
            found.add(name if name not in found else next(each for each in again if each not in found))
    return found


def links(page: str) -> Iterator[str]:
    """Where the page's links and pictures lead."""
    for token in tokens(page):
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                yield str(child.attrs.get("href") or child.attrs.get("src"))


def file_of(page: str, target: str) -> Path:
    """The file that a relative link of a page leads to."""
    return ((REPOSITORY / page).parent / target).resolve() if target else REPOSITORY / page
