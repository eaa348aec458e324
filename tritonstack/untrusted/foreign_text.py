"""Untrusted JSON and Python programs: every fault in them is one kind of error."""

from __future__ import annotations

import ast
import json
import warnings
from typing import Any

MOST_LEVELS = 300
LARGEST_PROGRAM = 2 << 20
"""Bytes: the syntax tree takes a hundred times as much memory."""


def parse_json(text: str | bytes) -> Any:
    """A JSON document. Raises ValueError for invalid JSON, and for a document nested too deeply or too large."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    except MemoryError:
        raise ValueError("JSON that is larger than the memory") from None


def parse_program(content: bytes | str, *, compiles: bool = False) -> ast.Module:
    """The syntax tree of a Python program, of which nothing is run.

    ``compiles``: compile it too, which shows what is at a wrong place. Raises SyntaxError for what is none, and
    for one that is too large or nested too deeply.
    """
    if len(content) > LARGEST_PROGRAM:
        raise SyntaxError(f"a program of {len(content):,} bytes, at most {LARGEST_PROGRAM:,} are read")
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(content)
            if compiles:
                compile(tree, "<program>", "exec", dont_inherit=True)
    except (RecursionError, MemoryError):  # the parser reports too many levels as either
        raise SyntaxError("a program that is nested too deeply") from None
    except ValueError as error:  # a NUL byte, an unknown encoding
        raise SyntaxError(str(error)) from None
    level: list[ast.AST] = [tree]
    for _ in range(MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise SyntaxError(f"a program that is nested more than {MOST_LEVELS} deep")


def code_of(node: ast.AST) -> str:
    """A node as a program's text; ``…`` for one that is nested too deeply to be written."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "…"
