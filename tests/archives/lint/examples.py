"""The examples of the rules' pages, laid out as the folders that they show."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.archives.lint.onnx_files import write_graph
from tritonstack.archives.lint.example import Example, ExampleFile
from tritonstack.archives.lint.target import Target
from tritonstack.settings import Endpoint

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
    else:
        path.write_text(file.text, encoding="utf-8")
