"""Rules about the program of a Python model, read and never run.

Source: python_backend src/pb_stub.cc (Stub::StubSetup, AutoCompleteModelConfig), src/stub_launcher.cc (Launch).
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from tritonstack.models.lint.auto_complete import completed_by_program
from tritonstack.models.lint.completion import PYTHON_CLASS, python_program
from tritonstack.models.lint.fetches import fetches
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field
from tritonstack.models.lint.view import ModelView, RepositoryView

_PLAIN_NAME = re.compile(r"[\w.+@%=:,~#^!?{}\[\]-]+", re.ASCII)
"""What a shell passes on unquoted: the backend gives it the model's path so, and reads it as ASCII."""

_MODULE_NAME = re.compile(r"[^.]+\.py")


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with a Python model's program."""
    if model.backend != "python":
        return
    if not _PLAIN_NAME.fullmatch(model.name):
        allowed = "letters without accents, digits, and signs that a shell does not interpret, such as '_', '.' and '-'"
        yield Finding(
            file=model.directory, rule="directory-name", found=f"a model called {model.name}", allowed=allowed
        )
    file = model.model_file
    if ".." in file.split("/") or not _MODULE_NAME.fullmatch(file.rsplit("/", 1)[-1]):
        found, allowed = (
            f"default_model_filename {file}",
            "a name with one dot, that of .py: it is imported as a module",
        )
        yield at_field(model, "default_model_filename", "python-file-name", found, allowed)
    for version in model.served_versions:
        path = python_program(model, version)
        if path is not None:
            yield from _program(model, path)
        for name in sorted(model.files):
            beside = model.on_disk(name)
            if name.startswith(f"{version}/") and name.endswith(".py") and beside is not None:
                yield from _fetched(beside)


def _program(model: ModelView, path: Path) -> Iterator[Finding]:
    try:
        tree = _compiled(path)
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
    bound = _bound(_at_module_level(tree.body)) - _deleted(tree.body)
    if PYTHON_CLASS not in bound and "*" not in bound | _bound(ast.walk(tree)):
        allowed = f"class {PYTHON_CLASS} with execute(self, requests)"
        yield Finding(file=path, rule="python-class", found=f"no class {PYTHON_CLASS}", allowed=allowed)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == PYTHON_CLASS and not _can_execute(node):
            found, allowed = f"{PYTHON_CLASS} without execute", "def execute(self, requests)"
            yield Finding(file=path, line=node.lineno, rule="python-execute", found=found, allowed=allowed)
    done = completed_by_program(tree, model.config, class_name=PYTHON_CLASS)
    if done.refusal:
        allowed = "what pb_utils.ModelConfig takes, in agreement with config.pbtxt"
        yield Finding(file=path, line=done.line, rule="python-auto-complete", found=done.refusal, allowed=allowed)


def _compiled(path: Path) -> ast.Module:
    """The program, once it has been compiled: what stands at a wrong place shows only then. Nothing of it is run.

    Raises SyntaxError, or ValueError, as the interpreter would that loads it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(path.read_bytes())
        compile(tree, str(path), "exec", dont_inherit=True)
    return tree


def _at_module_level(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that are run when a module is loaded: all but those inside of functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue  # an annotation alone binds nothing
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _at_module_level(ast.iter_child_nodes(node))


def _deleted(body: Iterable[ast.stmt]) -> set[str]:
    """The names that a module certainly deletes again."""
    targets = [target for node in body if isinstance(node, ast.Delete) for target in node.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that nodes bind; ``*`` where they take every name of another module, or unknown ones."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.Global) or _binds_unknown(node):
            found.add("*")
    return found


def _binds_unknown(node: ast.AST) -> bool:
    """Whether a call may bind names that only running it shows."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "globals")


def _can_execute(node: ast.ClassDef) -> bool:
    """Whether the class has ``execute`` or may inherit it."""
    return bool(node.bases) or "execute" in _bound(ast.walk(ast.Module(node.body, [])))


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
