"""What becomes of each block of code: run by a named test, run on the local AWS, or only checked, with the reason."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tests.docs.pages import CodeBlock, code_blocks, pages
from tests.e2e.project import REPOSITORY

DATA = Path(__file__).with_name("blocks.yaml")


class Entry(BaseModel):
    """What becomes of the blocks that ``begins``, ``heading`` and ``language`` name; exactly one of the three ways.

    ``test``: file::function of the test that runs them. ``run``: they run on the local AWS, in the page's order, with
    what the blocks before them left. ``checked``: the reason why they cannot run here; their commands, options and
    syntax are checked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    begins: str | None = None
    heading: str | None = None
    language: str | None = None
    test: str | None = None
    run: Literal[True] | None = None
    checked: Annotated[str, Field(min_length=10)] | None = None
    before: str = ""
    """Shell lines before the block: what stands in for something that a reader has."""
    replace: dict[str, str] = {}
    """Placeholders of the block, and what they are here."""
    until_interrupted: tuple[str, ...] = ()
    """Lines that go on until Ctrl-C, which they get after some seconds."""
    prints: tuple[str, ...] = ()
    """What must be among what the block prints."""
    recorded: str | None = None
    """A recording of the block's first command, whose lines the block prints, whatever their figures."""

    @model_validator(mode="after")
    def _one_way(self) -> Entry:
        if sum(way is not None for way in (self.test, self.run, self.checked)) != 1:
            raise ValueError("exactly one of test, run and checked")
        return self

    def matches(self, block: CodeBlock) -> bool:
        """Whether the entry is about this block."""
        wanted = ((self.begins, block.begins), (self.heading, block.heading), (self.language, block.language))
        return all(expected is None or expected == found for expected, found in wanted)


@functools.cache
def entries() -> dict[str, tuple[Entry, ...]]:
    """Page → its entries."""
    read = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return {page: tuple(Entry.model_validate(each) for each in listed) for page, listed in read.items()}


def entries_of(block: CodeBlock) -> list[Entry]:
    """Every entry about a block; exactly one where all is well."""
    return [entry for entry in entries().get(block.page, ()) if entry.matches(block)]


def every_block() -> list[CodeBlock]:
    """The blocks of all pages."""
    return [block for page in pages() for block in code_blocks(page)]


def blocks_that(*, way: str) -> list[tuple[CodeBlock, Entry]]:
    """Blocks with their entries, of one way (``run``, ``checked``, ``test``)."""
    pairs = [(block, entry) for block in every_block() for entry in entries_of(block)]
    return [(block, entry) for block, entry in pairs if getattr(entry, way) is not None]


def is_a_test(name: str) -> bool:
    """Whether ``file::function`` is a test of the repository."""
    file, _, function = name.partition("::")
    path = REPOSITORY / file
    if not path.is_file() or not function.startswith("test_"):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in ast.walk(_parsed(path)))


def reads(name: str, page: str) -> bool:
    """Whether the file of a test, or a module of ours that it imports, names the page: what does not cannot run it."""
    path = REPOSITORY / name.partition("::")[0]
    imported = {
        source
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.ImportFrom) and node.module
        if (source := REPOSITORY / f"{node.module.replace('.', '/')}.py").is_file()
    }
    wanted = re.compile(rf"(?<![\w-]){re.escape(Path(page).name)}")
    folder = Path(page).parent.name
    texts = [each.read_text(encoding="utf-8") for each in (path, *imported)]
    return any(wanted.search(text) and folder in text for text in texts)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
