"""Calls in the program of a Python model, found by reading it: nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from tritonstack.errors import InputError
from tritonstack.untrusted.folder_files import is_fit_file, read_inside
from tritonstack.untrusted.foreign_text import parse_program

UTILS = "triton_python_backend_utils"
INFERS = f"{UTILS}.InferenceRequest"
"""A program that calls this sends requests to other models: business logic scripting (BLS)."""
LOADS = f"{UTILS}.load_model"
"""From release 23.07 a program loads a model of its repository by it, in a server that is ready."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Name in a program → full name of what was imported under it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}" if node.module else alias.name
    return found


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Full name of a name or a chain of attributes: ``pb_utils.Tensor`` → ``triton_python_backend_utils.Tensor``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(names.get(node.id, node.id))
    return ".".join(reversed(parts))


def calls_of(paths: Iterable[Path], *, inside: str | None = None) -> frozenset[str]:
    """Full names of what Python files call, in functions called ``inside`` or anywhere; of unreadable ones none."""
    found: set[str] = set()
    for path in paths:
        try:
            content = read_inside(path, path.parent)
            tree = parse_program(content) if UTILS.encode() in content else None
        except (OSError, SyntaxError, InputError):
            continue  # the linter reports it
        if tree is None:
            continue
        names = imported_names(tree)
        functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        roots = [tree] if inside is None else [each for each in functions if each.name == inside]
        nodes = (node for root in roots for node in ast.walk(root))
        found |= {full_name(node.func, names) for node in nodes if isinstance(node, ast.Call)}
    return frozenset(found)


def programs_of(directory: Path) -> tuple[Path, ...]:
    """The Python files of the newest version of a Python model."""
    versions = [path for path in directory.glob("*") if path.is_dir() and path.name.isdigit()]
    if not versions:
        return ()
    found = max(versions, key=lambda path: int(path.name)).glob("**/*.py")
    return tuple(sorted(path for path in found if is_fit_file(path, directory)))
