"""Rules about the Python backend's parameters and the execution environment of a Python model.

Source: python_backend src/python_be.cc (ModelState::ModelState), src/stub_launcher.cc (StubLauncher::Initialize);
core src/model_config_utils.cc (LocalizePythonBackendExecutionEnvironmentPath).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node

ENVIRONMENT = "EXECUTION_ENV_PATH"
_CPU_ONLY = "FORCE_CPU_ONLY_INPUT_TENSORS"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
_MAGIC = (b"\x1f\x8b", b"PK", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"\x04\x22\x4d\x18")
_TAR_MARK = (257, b"ustar")


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with a Python model's parameters."""
    if model.backend != "python":
        return
    parameters = model.config.node.entries("parameters")
    cpu_only, environment = parameters.get(_CPU_ONLY), parameters.get(ENVIRONMENT)
    forced = cpu_only.text("string_value") if isinstance(cpu_only, Node) else cpu_only
    if forced is not None and forced not in ("yes", "no"):
        line = cpu_only.line if isinstance(cpu_only, Node) else model.config.node.line_of("parameters")
        yield at_line(model, line, "python-parameter", f'{_CPU_ONLY} "{forced}"', '"yes" or "no"')
    if isinstance(environment, Node):
        yield from _environment(view, model, environment)


def environment_file(model: ModelView) -> str | None:
    """The file or folder of the model's directory that is its execution environment; None for none, or outside."""
    entry = model.config.node.entries("parameters").get(ENVIRONMENT)
    path = entry.text("string_value") if isinstance(entry, Node) else ""
    inside = PurePosixPath(path.removeprefix(_MODEL_DIRECTORY).lstrip("/"))
    return None if not path.startswith(_MODEL_DIRECTORY) or ".." in inside.parts else inside.as_posix()


def _environment(view: RepositoryView, model: ModelView, entry: Node) -> Iterator[Finding]:
    path = entry.text("string_value")
    if not path:
        return
    inside = environment_file(model)
    if inside is None:
        yield from _outside(model, path, entry)
    elif inside in model.files:
        packed = model.on_disk(inside)
        if packed is not None and not _is_archive(packed):
            found, allowed = f"{ENVIRONMENT} {path}, which is no archive", "a .tar.gz as conda-pack makes it"
            yield at_line(model, entry.line, "execution-environment", found, allowed)
    elif _is_packed_by_build(view, model, inside):
        return
    elif not any(file.startswith(f"{inside}/") for file in model.files):
        found = f"{ENVIRONMENT} {path}, which is not in the archive"
        yield at_line(model, entry.line, "execution-environment", found, "a file or folder of the model's directory")
    elif f"{inside}/bin/activate" not in model.files:
        found, allowed = f"{ENVIRONMENT} {path} without bin/activate", "an environment as conda-pack packs it"
        yield at_line(model, entry.line, "execution-environment", found, allowed)


def _outside(model: ModelView, path: str, entry: Node) -> Iterator[Finding]:
    """An environment that is not below the model: another one of the archive's, or a fixed place in the image."""
    found = f"{ENVIRONMENT} {path}"
    allowed = f"a path below {_MODEL_DIRECTORY}: nothing else of the archive's is at a known place"
    beside = Path(os.path.normpath(model.directory / path.removeprefix(_MODEL_DIRECTORY).lstrip("/")))
    if not path.startswith(_MODEL_DIRECTORY):
        rule = "execution-environment-outside" if path.startswith("/") else "execution-environment"
        yield at_line(model, entry.line, rule, found, allowed)
    elif (beside / "bin" / "activate").is_file() or (beside.is_file() and _is_archive(beside)):
        yield at_line(model, entry.line, "execution-environment-beside", found, allowed)
    else:
        what = "is no archive" if beside.is_file() else "has no bin/activate" if beside.is_dir() else "is not there"
        yield at_line(model, entry.line, "execution-environment", f"{found}, which {what}", allowed)


def _is_archive(path: Path) -> bool:
    """Whether a file begins as the archives do that the backend's libarchive reads, compressed or not."""
    with path.open("rb") as stream:
        head = stream.read(_TAR_MARK[0] + len(_TAR_MARK[1]))
    return head.startswith(_MAGIC) or head[_TAR_MARK[0] :] == _TAR_MARK[1]


def _is_packed_by_build(view: RepositoryView, model: ModelView, inside: str) -> bool:
    """Whether the recipe's execution environment is what the file will be."""
    packed = view.recipe.execution_environment if view.recipe else None
    return packed is not None and model.name == view.addressed and packed.packed_as == inside
