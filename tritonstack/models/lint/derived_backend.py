"""The backend that Triton derives where a configuration names none: from a file's name, else the model's own name.

Source: core src/model_config_utils.cc (AutoCompleteBackendFields), src/constants.h (the files' names).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from tritonstack.models.model_config import Node

_FILES: tuple[tuple[str, str, Literal["file", "folder", "either"]], ...] = (
    ("model.savedmodel", "tensorflow", "folder"),
    ("model.graphdef", "tensorflow", "file"),
    ("model.plan", "tensorrt", "file"),
    ("model.onnx", "onnxruntime", "either"),
    ("model.xml", "openvino", "either"),
    ("model.pt", "pytorch", "file"),
    ("model.py", "python", "either"),
)
"""File or folder of the first version folder → backend, in the order in which Triton looks for them."""


@dataclass(frozen=True, kw_only=True)
class DerivedBackend:
    """A backend that no field names; all empty where Triton finds none.

    Attributes:
        backend: its name.
        file: what it loads from a version folder.
        from_name: whether it is the part of the model's name behind the first dot (``scorer.identity``). A multi-model
            endpoint loads the model that requests reach under the archive's name, so there it is not the folder's.
    """

    backend: str = ""
    file: str = ""
    from_name: bool = False


def derive_backend(node: Node, *, name: str, folders: Collection[str], files: Collection[str]) -> DerivedBackend:
    """The backend of a model directory. ``folders`` and ``files``: what lies below it."""
    if node.text("backend") or node.text("platform"):
        return DerivedBackend()
    given = node.text("default_model_filename")
    first = min(folders, default="")
    for file, backend, kind in _FILES:
        if given == file or (not given and first and _is_there(f"{first}/{file}", kind, files)):
            return DerivedBackend(backend=backend, file=file)
    _, dot, suffix = name.partition(".")
    if given or not dot:
        return DerivedBackend()
    return DerivedBackend(backend=suffix, file=f"model.{suffix}", from_name=True)


def _is_there(place: str, kind: str, files: Collection[str]) -> bool:
    is_file, is_folder = place in files, any(name.startswith(f"{place}/") for name in files)
    return (is_file and kind != "folder") or (is_folder and kind != "file")
