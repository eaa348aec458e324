"""Rules about a Python model: its program, read and never run, its parameters and its execution environment."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from tritonstack.lint.completion import complete, python_program
from tritonstack.lint.python.auto_complete import FUNCTION, PYTHON_CLASS
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.model_files.file_formats import mismatch
from tritonstack.models.model_config import EXECUTION_ENV_PATH, Node
from tritonstack.models.model_view import ModelView
from tritonstack.models.python_calls import INFERS, LOADS, calls_of, programs_of
from tritonstack.untrusted.folder_files import is_fit_file
from tritonstack.untrusted.foreign_text import parse_program
from tritonstack.untrusted.tar_reading import first_match

# Source: python_backend src/pb_stub.cc (Stub::StubSetup), src/stub_launcher.cc (Launch).


_PLAIN_NAME = re.compile(r"[\w.+@%=:,~#^!?{}\[\]-]+", re.ASCII)
"""What a shell passes on unquoted: the backend gives it the model's path so, and reads it as ASCII."""

_MODULE_NAME = re.compile(r"[^.]+\.py")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_program(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a Python model's program."""
    if model.backend != "python":
        return
    if not _PLAIN_NAME.fullmatch(model.name):
        yield Finding(file=model.directory, rule="directory-name", found=f"a model called {model.name}")
    file = model.model_file
    if ".." in file.split("/") or not _MODULE_NAME.fullmatch(file.rsplit("/", 1)[-1]):
        yield at_field(model, "default_model_filename", "python-file-name", f"default_model_filename {file}")
    for version in model.served_versions:
        path = python_program(model, version)
        if path is not None:
            yield from _program(path)
        if path is not None and (done := complete(view, model, version)).refusal:
            yield Finding(file=path, line=done.line, rule="python-auto-complete", found=done.refusal)


def _program(path: Path) -> Iterator[Finding]:
    try:
        tree = parse_program(path.read_bytes(), compiles=True)
    except SyntaxError as error:
        found = f"{type(error).__name__}: {getattr(error, 'msg', error)}"
        line = getattr(error, "lineno", 0) or 0
        yield Finding(file=path, line=line, rule="python-syntax", found=found, allowed="a Python program")
        return
    deleted = [target for node in tree.body if isinstance(node, ast.Delete) for target in node.targets]
    bound = _bound(_at_module_level(tree.body)) - {each.id for each in deleted if isinstance(each, ast.Name)}
    bound |= {name for module in _star_imports(tree) for name in _names_of(path, module)}
    if PYTHON_CLASS not in bound and "*" not in bound | _bound(ast.walk(tree)):
        allowed = f"class {PYTHON_CLASS} with execute(self, requests)"
        yield Finding(file=path, rule="python-class", found=f"no class {PYTHON_CLASS}", allowed=allowed)
    owner = _owner(tree)
    if owner is not None and not _can_execute(owner):
        found = f"{PYTHON_CLASS} without execute"
        yield Finding(file=path, line=owner.lineno, rule="python-execute", found=found)
    if owner is not None:
        yield from _signatures(path, _methods(owner, tree))


def _owner(tree: ast.Module) -> ast.ClassDef | None:
    """The class that Triton takes: of several the last, or the one that its name is given to; None for another's."""
    classes, found = dict[str, ast.ClassDef](), None
    for node in tree.body:
        match node:
            case ast.ClassDef():
                classes[node.name] = node
                found = node if node.name == PYTHON_CLASS else found
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=given)) if name == PYTHON_CLASS:
                found = classes.get(given)
    return found


def _methods(owner: ast.ClassDef, tree: ast.Module, *, below: frozenset[str] = frozenset()) -> dict[str, _Function]:
    """The functions of a class by their names, with those that it inherits from classes of its program.

    ``below``: the classes that are looked at already.
    """
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef) and node is not owner}
    found: dict[str, _Function] = {}
    for base in reversed(owner.bases):
        if isinstance(base, ast.Name) and base.id in classes and base.id not in below:
            found |= _methods(classes[base.id], tree, below=below | {base.id})
    for node in owner.body:
        for name in _bound([node, *ast.iter_child_nodes(node)]):
            found.pop(name, None)
        if isinstance(node, _Function):
            found[node.name] = node
    return found


_CALLED: Mapping[str, tuple[str, ...]] = {
    "__init__": (), FUNCTION: ("config",), "initialize": ("args",), "execute": ("requests",),
}  # fmt: skip
"""Methods of the class → the arguments that Triton gives them."""


def _signatures(path: Path, methods: Mapping[str, _Function]) -> Iterator[Finding]:
    """Methods that cannot be called as Triton calls them; those with decorators of others may be anything."""
    for name, given in _CALLED.items():
        method = methods.get(name)
        decorators = [each.id if isinstance(each, ast.Name) else "" for each in method.decorator_list] if method else []
        if method is None or not set(decorators) <= {"staticmethod", "classmethod"}:
            continue
        # Triton calls auto_complete_config on the class, the others on an object of it.
        is_bound = "classmethod" in decorators or ("staticmethod" not in decorators and name != FUNCTION)
        if not _takes(method.args, len(given) + is_bound):
            first = ("cls",) if "classmethod" in decorators else ("self",) if is_bound else ()
            marked = "@staticmethod " if name == FUNCTION and not first else ""
            yield Finding(
                file=path,
                line=method.lineno,
                rule="python-execute-signature" if name == "execute" else "python-signature",
                found=f"{name}({ast.unparse(method.args)})",
                allowed=f"{marked}{name}({', '.join((*first, *given))})",
            )


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Whether a function can be called with ``count`` positional arguments."""
    places = len(arguments.posonlyargs) + len(arguments.args)
    is_enough = places - len(arguments.defaults) <= count
    return is_enough and (count <= places or arguments.vararg is not None) and None not in arguments.kw_defaults


def check_calls(view: RepositoryView) -> Iterator[Finding]:
    """Check a program that sends requests to other models of its archive (BLS) for models that its endpoint lacks."""
    if not view.called:
        return
    for model in view.models.values():
        paths = programs_of(model.directory) if model.backend == "python" else ()
        calls, named = calls_of(paths), ", ".join(name for name in view.called if name != model.name)
        if INFERS not in calls:
            continue
        if view.target.multi_model:
            yield Finding(
                file=model.directory,
                rule="bls-multi-model",
                found=f"{model.name} calls {named} by name, and an instance may hold two releases of the archive",
            )
        elif view.target.multi_model is False and LOADS in calls_of(paths, inside="initialize"):
            yield Finding(
                file=model.directory,
                rule="bls-loads-at-start",
                found=f"{model.name} calls pb_utils.load_model in initialize",
            )


def _at_module_level(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that are run when a module is loaded: all but those inside of functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue  # an annotation alone binds nothing
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _at_module_level(ast.iter_child_nodes(node))


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that nodes bind; ``*`` where they bind unknown ones. Names of ``import *`` are none of them."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias) and node.name != "*":
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.Global):
            found.add("*")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "globals"):
            found.add("*")  # only running it shows what it binds
    return found


def _star_imports(tree: ast.Module) -> Iterator[str]:
    """Modules of ``from module import *``; empty for a relative import of the package itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield "" if node.level else node.module or ""


def _names_of(program: Path, module: str) -> set[str]:
    """The names that ``from module import *`` binds in a program; ``*`` unless a file in its folder shows them all."""
    beside = program.with_name(f"{module}.py")
    if not module or not is_fit_file(beside, program.parent):
        return {"*"}
    try:
        tree = parse_program(beside.read_bytes())
    except SyntaxError:
        return {"*"}
    is_unknown = "*" in _bound(ast.walk(tree)) or list(_star_imports(tree)) != []
    return _bound(_at_module_level(tree.body)) | ({"*"} if is_unknown else set())


def _can_execute(node: ast.ClassDef) -> bool:
    """Whether the class has ``execute`` or may inherit it."""
    return bool(node.bases) or "execute" in _bound(ast.walk(ast.Module(node.body, [])))


# Source: python_backend src/python_be.cc (ModelState::ModelState), src/stub_launcher.cc (StubLauncher::Initialize);
# core src/model_config_utils.cc (LocalizePythonBackendExecutionEnvironmentPath).


_CPU_ONLY = "FORCE_CPU_ONLY_INPUT_TENSORS"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
_MAGIC = (b"\x1f\x8b", b"PK", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"\x04\x22\x4d\x18")
_TAR_MARK = (257, b"ustar")
_CHECKED = {b"\x1f\x8b": "tar-gzip", b"PK": "zip"}
"""Beginnings of archives → the format in which they are read as far as their end."""


def check_execution(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a Python model's parameters."""
    if model.backend != "python":
        return
    parameters = model.config.node.entries("parameters")
    cpu_only, environment = parameters.get(_CPU_ONLY), parameters.get(EXECUTION_ENV_PATH)
    forced = cpu_only.text("string_value") if isinstance(cpu_only, Node) else cpu_only
    if forced is not None and forced not in ("yes", "no"):
        line = cpu_only.line if isinstance(cpu_only, Node) else model.config.node.line_of("parameters")
        yield at_line(model, line, "python-parameter", f'{_CPU_ONLY} "{forced}"', '"yes" or "no"')
    if isinstance(environment, Node):
        yield from _environment(view, model, environment)


def environment_file(model: ModelView) -> str | None:
    """The file or folder of the model's directory that is its execution environment; None for none, or outside."""
    entry = model.config.node.entries("parameters").get(EXECUTION_ENV_PATH)
    path = entry.text("string_value") if isinstance(entry, Node) else ""
    inside = PurePosixPath(path.removeprefix(_MODEL_DIRECTORY).lstrip("/"))
    return None if not path.startswith(_MODEL_DIRECTORY) or ".." in inside.parts else inside.as_posix()


def _environment(view: RepositoryView, model: ModelView, entry: Node) -> Iterator[Finding]:
    path = entry.text("string_value")
    if not path:
        return
    inside = environment_file(model)
    made = view.recipe.environments if view.recipe else ()
    packed_by_build = f"{model.name}/{inside}" in {each.file(view.addressed or "") for each in made}
    if inside is None:
        yield from _outside(model, path, entry)
    elif inside in model.files:
        packed = model.on_disk(inside)
        if packed is not None and (wrong := _wrong_archive(packed)):
            found, allowed = f"{EXECUTION_ENV_PATH} {path}, which {wrong[0]}", "a .tar.gz as conda-pack makes it"
            yield at_line(model, entry.line, "execution-environment", found, allowed, wrong[1])
    elif packed_by_build:
        return
    elif not any(file.startswith(f"{inside}/") for file in model.files):
        found = f"{EXECUTION_ENV_PATH} {path}, which is not in the archive"
        yield at_line(model, entry.line, "execution-environment", found, "a file or folder of the model's directory")
    elif f"{inside}/bin/activate" not in model.files:
        found, allowed = f"{EXECUTION_ENV_PATH} {path} without bin/activate", "an environment as conda-pack packs it"
        yield at_line(model, entry.line, "execution-environment", found, allowed)


def _outside(model: ModelView, path: str, entry: Node) -> Iterator[Finding]:
    """An environment that is not below the model: another one of the archive's, or a fixed place in the image."""
    found = f"{EXECUTION_ENV_PATH} {path}"
    allowed = f"a path below {_MODEL_DIRECTORY}: nothing else of the archive's is at a known place"
    beside = Path(os.path.normpath(model.directory / path.removeprefix(_MODEL_DIRECTORY).lstrip("/")))
    if not path.startswith(_MODEL_DIRECTORY):
        rule = "execution-environment-outside" if path.startswith("/") else "execution-environment"
        yield at_line(model, entry.line, rule, found, allowed)
    elif (beside / "bin" / "activate").is_file() or (beside.is_file() and not _wrong_archive(beside)):
        yield at_line(model, entry.line, "execution-environment-beside", found, allowed)
    else:
        wrong = _wrong_archive(beside) if beside.is_file() else None
        what = wrong[0] if wrong else "has no bin/activate" if beside.is_dir() else "is not there"
        yield at_line(model, entry.line, "execution-environment", f"{found}, which {what}", allowed)


def _wrong_archive(path: Path) -> tuple[str, str] | None:
    """Why a file is none of the archives that the backend's libarchive reads, compressed or not, and what to do."""
    with path.open("rb") as stream:
        head = stream.read(_TAR_MARK[0] + len(_TAR_MARK[1]))
    name = next((name for magic, name in _CHECKED.items() if head.startswith(magic)), "")
    if wrong := mismatch(path, name):
        return f"is {wrong.found}", wrong.advice
    is_archive = head.startswith(_MAGIC) or head[_TAR_MARK[0] :] == _TAR_MARK[1]
    return None if is_archive else ("is no archive", "")


_FOLDER = re.compile(r"(?:^|/)lib/python(3\.[0-9]+)(?:/|$)")


def python_in_archive(path: Path) -> str | None:
    """The minor version (``3.10``) of the Python in a packed environment; None where it does not show."""
    return first_match(path, _FOLDER)  # conda-pack puts it near the beginning


def python_in_names(names: Iterable[str], *, below: str) -> str | None:
    """The same of an unpacked environment, by the names of its files."""
    for name in sorted(names):
        found = _FOLDER.search(name)
        if found and name.startswith(f"{below}/"):
            return found[1]
    return None
