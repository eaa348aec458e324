"""The examples of the rules' pages, laid out as the folders that they show."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.models.lint.onnx_files import part, write_graph
from tritonstack.config import Endpoint
from tritonstack.models.lint.registry import Example, ExampleFile
from tritonstack.models.lint.view import Target

FOLDER = "double"
"""The name of the folder that an example is laid out in: the one that the examples with a recipe expect."""


def lay_out(example: Example, project: Path) -> Path:
    """Write an example below ``project/model_repos`` and return its folder."""
    folder = project / "model_repos" / FOLDER
    folder.mkdir(parents=True)
    for name in example.folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, file in example.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, file)
    return folder


def target_of(fields: Mapping[str, Any]) -> Target | None:
    """The endpoint that an example is linted for, or None."""
    if not fields:
        return None
    endpoint = Endpoint.model_validate({"name": "example", "models": [FOLDER], **fields})
    return Target.of_endpoint(endpoint, "examples")


def _write(path: Path, file: ExampleFile) -> None:
    if file.language == "size":
        with path.open("wb") as stream:
            stream.truncate(int(file.text.replace("_", "")))
    elif file.language == "tar.gz":
        with tarfile.open(path, "w:gz") as archive:
            for name in file.text.split():
                archive.addfile(tarfile.TarInfo(name))
    elif file.language == "link":
        path.symlink_to(file.text.strip())
    elif file.language == "onnx-graph":
        write_graph(path, yaml.safe_load(file.text))
    elif file.language == "torchscript":
        write_torchscript(path, **yaml.safe_load(file.text))
    elif file.language == "dali-pipeline":
        path.write_bytes(pipeline(yaml.safe_load(file.text)))
    else:
        path.write_text(file.text, encoding="utf-8")


def write_torchscript(path: Path, *, version: int, code: str) -> None:
    """A TorchScript file whose ``forward`` gives an expression of ``x``; without weights, which no rule reads."""
    head = "class Net(Module):\n  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/code/__torch__.py", f"{head}    return {code}\n")
        archive.writestr("model/version", f"{version}\n")


def pipeline(operators: Sequence[Mapping[str, Any]]) -> bytes:
    """A serialised DALI pipeline of operators: the names of each and of its arguments, without values."""
    bodies = (
        part(1, each["name"].encode()) + b"".join(part(4, part(1, one.encode())) for one in each["arguments"])
        for each in operators
    )
    return b"".join(part(5, body) for body in bodies)
