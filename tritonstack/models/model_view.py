"""One Triton model as its directory shows it: configuration, files, versions, and the backend that Triton derives."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from tritonstack.models.model_config import MODEL_FILES, ModelConfig, Node, read_config
from tritonstack.models.source_files import CONFIG, is_junk, listed_below
from tritonstack.untrusted.folder_files import is_fit_file, text_inside

# Source: core src/model_config_utils.cc (AutoCompleteBackendFields), src/constants.h (the files' names).
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
    """A backend that no field names; all empty where Triton finds none."""

    backend: str = ""  # its name
    file: str = ""  # what it loads from a version folder
    # whether it is the part of the model's name behind the first dot (``decode.dali``). A multi-model endpoint loads
    # the model that requests reach under the archive's name, so there it is not the directory's
    from_name: bool = False


def derive_backend(node: Node, *, name: str, folders: Collection[str], files: Collection[str]) -> DerivedBackend:
    """Backend that Triton derives where no field names one.

    ``name``: the model directory's; ``folders`` and ``files``: what is below it.
    """
    if node.text("backend") or node.text("platform"):
        return DerivedBackend()
    given = node.text("default_model_filename")
    first = min(folders, default="")
    for file, backend, kind in _FILES:
        if given == file or (not given and first and _is_there(f"{first}/{file}", kind, files)):
            return DerivedBackend(backend=backend, file=file)
    _, _, suffix = name.partition(".")
    if given or not suffix:
        return DerivedBackend()
    return DerivedBackend(backend=suffix, file=f"model.{suffix}", from_name=True)


def _is_there(place: str, kind: str, files: Collection[str]) -> bool:
    is_file, is_folder = place in files, any(name.startswith(f"{place}/") for name in files)
    return (is_file and kind != "folder") or (is_folder and kind != "file")


_LARGEST_VERSION = 2**63 - 1
_NO_VERSIONS = ("warmup", "initial_state", "configs")
"""Folders of a model that Triton never takes for versions: core src/constants.h."""

_SEES_ENSEMBLE = re.compile(r'platform:\s*"ensemble"')
"""How SageMaker's front end finds an ensemble: server src/sagemaker_server.h (platform_ensemble_regex_)."""


@dataclass(frozen=True, kw_only=True)
class ModelView:
    """One Triton model: a directory, with a ``config.pbtxt`` or without one (then ``text`` is empty).

    ``files`` are names below the directory, those included that an export makes; ``folders`` its sub-directories.
    """

    name: str
    file: Path
    text: str
    config: ModelConfig
    files: frozenset[str]
    folders: frozenset[str]
    root: Path  # nothing outside of it is read

    @property
    def directory(self) -> Path:
        """The model's directory."""
        return self.file.parent

    @property
    def is_readable(self) -> bool:
        """Whether the configuration could be read at all; of one that could not, nothing more is reported."""
        node = self.config.node
        return bool(node.scalars or node.messages or not self.config.complaints)

    @functools.cached_property
    def derived(self) -> DerivedBackend:
        """The backend that Triton derives where neither ``backend`` nor ``platform`` names one."""
        return derive_backend(self.config.node, name=self.name, folders=self.folders, files=self.files)

    @property
    def backend(self) -> str:
        """The backend that serves the model, named or derived; empty where there is none."""
        return self.config.backend or self.derived.backend

    @property
    def model_file(self) -> str:
        """The file in a version folder that the backend loads; empty where that is the backend's affair."""
        has_own = self.derived.from_name and self.backend not in MODEL_FILES  # such as identity, which loads no file
        return self.config.model_file or ("" if has_own else self.derived.file)

    @property
    def versions(self) -> tuple[str, ...]:
        """The version folders that Triton reads, the newest last: whole numbers without a leading zero.

        Source: core src/model_repository_manager/model_lifecycle.cc (VersionsToLoad).
        """
        return tuple(sorted((name for name in self.folders if _is_version(name)), key=int))

    @property
    def served_versions(self) -> tuple[str, ...]:
        """The versions that the version policy serves, the newest last; without a policy the newest one alone."""
        policy = self.config.node.node("version_policy")
        if policy is None:
            return self.versions[-1:]
        specific, latest = policy.node("specific"), policy.node("latest")
        if specific is not None:
            named = specific.integers("versions")
            return tuple(name for name in self.versions if int(name) in named)
        if latest is not None:
            count = latest.integer("num_versions")
            return self.versions[-count:] if count else ()
        return self.versions

    @property
    def sagemaker_sees_ensemble(self) -> bool:
        """Whether SageMaker's front end takes the model for an ensemble: it searches the text of the file."""
        return _SEES_ENSEMBLE.search(self.text) is not None

    @property
    def is_ensemble(self) -> bool:
        """Whether Triton takes it for one."""
        return self.config.is_ensemble

    @property
    def is_batched(self) -> bool:
        """Whether requests have a batch dimension."""
        return self.config.max_batch_size > 0

    def on_disk(self, name: str) -> Path | None:
        """The path of a file of the directory, or None where it is not there (yet), or is no file inside the root."""
        path = self.directory / name
        return path if is_fit_file(path, self.root) else None


def view_model(directory: Path, produced: Iterable[str], *, root: Path | None = None) -> ModelView:
    """One model's directory; ``produced``: files that an export makes below it.

    ``root``: the folder outside of which nothing is read, else the one that the directory is in.
    """
    root = root or directory.parent
    files = {name for name, _, _ in listed_below(directory, within=root)} | set(produced)
    there = {path.name for path in directory.iterdir() if path.is_dir() and not is_junk(path.name)}
    file = directory / CONFIG
    text = text_inside(file, root) if is_fit_file(file, root) else ""
    return ModelView(
        name=directory.name,
        file=file,
        text=text,
        config=read_config(text),
        files=frozenset(files),
        folders=frozenset(there | {PurePosixPath(name).parts[0] for name in files if "/" in name}),
        root=root,
    )


def _is_version(name: str) -> bool:
    if name in _NO_VERSIONS or (len(name) > 1 and name.startswith("0")):
        return False
    return name.isascii() and name.isdecimal() and int(name) <= _LARGEST_VERSION
