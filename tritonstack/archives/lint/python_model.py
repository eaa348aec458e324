"""Rules about the program of a Python model, read and never run.

Source: python_backend src/pb_stub.cc (Stub::StubSetup), src/stub_launcher.cc (StubLauncher::Launch).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tritonstack.archives.lint.fetches import fetches
from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.view import ModelView, RepositoryView

_CLASS = "TritonPythonModel"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+-]+")


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with a Python model's program."""
    if model.config.backend != "python":
        return
    if not _PLAIN_NAME.fullmatch(model.name):
        allowed = "letters without accents, digits, '_', '.', '-' and '+'"
        yield Finding(
            file=model.directory, rule="directory-name", found=f"a model called {model.name}", allowed=allowed
        )
    for version in model.served_versions:
        path = model.on_disk(f"{version}/{model.config.model_file}")
        if path is not None:
            yield from _program(path)
        for name in sorted(model.files):
            beside = model.on_disk(name)
            if name.startswith(f"{version}/") and name.endswith(".py") and beside is not None:
                yield from _fetched(beside)


def _program(path: Path) -> Iterator[Finding]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        line = (error.lineno if isinstance(error, SyntaxError) else 0) or 0
        yield Finding(
            file=path,
            line=line,
            rule="python-syntax",
            found=f"{type(error).__name__}: {getattr(error, 'msg', error)}",
            allowed="a Python program",
        )
        return
    bound = _bound(tree)
    if _CLASS not in bound and "*" not in bound:
        allowed = f"class {_CLASS} with execute(self, requests)"
        yield Finding(file=path, rule="python-class", found=f"no class {_CLASS}", allowed=allowed)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == _CLASS and not _can_execute(node):
            found, allowed = f"{_CLASS} without execute", "def execute(self, requests)"
            yield Finding(file=path, line=node.lineno, rule="python-execute", found=found, allowed=allowed)


def _bound(tree: ast.AST) -> set[str]:
    """The names that a program binds anywhere; ``*`` where it takes every name of another module."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "globals"):
            found.add("*")
    return found


def _can_execute(node: ast.ClassDef) -> bool:
    """Whether the class has ``execute`` or may inherit it."""
    return bool(node.bases) or "execute" in _bound(ast.Module(node.body, []))


def _fetched(path: Path) -> Iterator[Finding]:
    """Calls that fetch something from elsewhere when the model is loaded."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # another rule's matter where the program is the model's, and of no effect where it is not
    for fetch in fetches(tree):
        yield Finding(
            file=path,
            line=fetch.line,
            column=fetch.column,
            rule="weights-fetched",
            found=fetch.call,
            allowed="files of the archive: os.path.join(args['model_repository'], args['model_version'], …)",
            advice="put the weights into the archive: an export may fetch them",
        )
