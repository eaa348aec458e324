"""Rules about shared libraries that Triton's core loads for a model: its backend's, and one of a batching strategy.

Source: core src/backend_model.cc (TritonModel::Create, GetBackendLibraryProperties, FindBackendLibraryPath);
CMakeLists.txt of pytorch_backend, branches r23.12 and r24.01.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tritonstack.lint.backends.backend import LIBRARY_PREFIX
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.model_files.file_formats import stand_in
from tritonstack.models.model_config import Node
from tritonstack.models.model_view import ModelView

_PROGRAM = "model.py"
_NOT_WRITTEN_IN_PYTHON = (
    *("python", "onnxruntime", "tensorrt", "tensorflow", "openvino", "dali", "fil", "fastertransformer"),
    *("identity", "repeat", "square"),
)
"""Backends that are a library and have no ``model.py`` beside it."""
PYTORCH_PROGRAM_FROM = "24.01"
"""The first release whose PyTorch backend has one."""

_STRATEGY = "batchstrategy.so"
_STRATEGY_PATH = "TRITON_BATCH_STRATEGY_PATH"
_MAGIC = b"\x7fELF"


def check_libraries(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check the libraries of a model, and the fields that name them."""
    if model.is_ensemble or not model.is_readable:
        return
    yield from _runtime(view, model)
    has_sequences = model.config.node.has("sequence_batching")
    strategy = model.config.node.entries("parameters").get(_STRATEGY_PATH)
    if strategy is not None:
        yield from _strategy(model, strategy, has_sequences=has_sequences)
    runtime = model.config.node.text("runtime")
    library = f"{LIBRARY_PREFIX}{'python' if runtime == _PROGRAM else model.backend}.so"
    loaded = [library if runtime in ("", _PROGRAM) else runtime]
    loaded += [] if has_sequences or strategy is not None else [_STRATEGY]
    for version in model.served_versions:
        for name in loaded:
            yield from _content(model, version, name)


def _runtime(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """``runtime``: the backend's library, or ``model.py`` of a backend that is written in Python."""
    runtime = model.config.node.text("runtime")
    if not runtime:
        return
    library, release = f"{LIBRARY_PREFIX}{model.backend}.so", view.target.release
    lacks_program = model.backend in _NOT_WRITTEN_IN_PYTHON or (
        model.backend == "pytorch" and release is not None and not release.at_least(PYTORCH_PROGRAM_FROM)
    )
    if runtime == _PROGRAM:  # looked for in the backend's own folder alone, whatever the archive has
        is_found = not lacks_program
    else:
        own = posixpath.normpath(posixpath.join(model.backend, runtime)) == f"{model.backend}/{library}"
        is_found = own or any(_place(model, version, runtime) for version in model.served_versions)
    if not is_found:
        own_name = library if lacks_program else f"{library} or {_PROGRAM}"
        allowed = f"none, {own_name}, or a library in the model's directory or its version"
        yield at_field(model, "runtime", "runtime", f"runtime {runtime}", allowed)


def _place(model: ModelView, version: str, name: str) -> str:
    """The file that Triton takes of a version's folder, or else of the model's; empty for neither.

    One that is found in another folder, by way of ``..``, it refuses.
    """
    for folder in (f"{version}/", ""):
        place = posixpath.normpath(f"{folder}{name}")
        if place in model.files:
            return place if place.startswith(folder) else ""
    return ""


def _strategy(model: ModelView, strategy: Node | str, *, has_sequences: bool) -> Iterator[Finding]:
    """The parameter that names a library of a batching strategy of one's own."""
    path = strategy.text("string_value") if isinstance(strategy, Node) else ""
    line = strategy.line if isinstance(strategy, Node) else model.config.node.line_of("parameters")
    allowed = f"{_STRATEGY} in the model's directory or its version, and no parameter"
    if has_sequences:
        found, allowed = f"{_STRATEGY_PATH} with sequence_batching", "one of the two"
        yield at_line(model, line, "batching-strategy", found, allowed)
    elif not path:
        yield at_line(model, line, "batching-strategy", f"{_STRATEGY_PATH} without a path", allowed)
    else:
        yield at_line(model, line, "batching-strategy-outside", f"{_STRATEGY_PATH} {path}", allowed)


def _content(model: ModelView, version: str, name: str) -> Iterator[Finding]:
    """A file of the model's that Triton loads as a library, and that is none."""
    place = _place(model, version, name)
    path = model.on_disk(place) if place else None
    if path is None:
        return
    with path.open("rb") as stream:
        is_library = stream.read(len(_MAGIC)) == _MAGIC
    if not is_library:
        wrong = stand_in(path)
        found = f"{place}, which is {wrong.found if wrong else 'no shared library'}"
        allowed = "a shared library of Linux, or no file of that name"
        advice = wrong.advice if wrong else ""
        yield Finding(file=path, rule="library-content", found=found, allowed=allowed, advice=advice)
