"""Small model folders for tests, in a project of their own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tritonstack.config import Endpoint, Environment
from tritonstack.models.manifest import Places
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.naming import Platform

RECIPE = """\
description: Doubles a number.
kind: python
sample: {request: sample/request.json, answer: sample/answer.json, tolerance: 1.0e-6}
"""
CONFIG = """\
name: "double"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = """\
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        x = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("y", 2 * item)]) for item in x]
"""


T4 = Platform(release="24.09", gpu="t4")


@dataclass(frozen=True)
class _Endpoint:
    name: str
    models: tuple[str, ...]
    platform: Platform


@dataclass(frozen=True)
class _Builds(BuildChoice):
    on_deploy: bool | None = None


@dataclass(frozen=True)
class _Environment:
    environment: str
    endpoints: tuple[Endpoint, ...]
    builds: _Builds


def make_endpoint(name: str, models: tuple[str, ...], platform: Platform = T4) -> Endpoint:
    """What archives need to know of an endpoint."""
    return cast("Endpoint", _Endpoint(name, models, platform))


def make_environment(*endpoints: Endpoint, on_deploy: bool | None = None) -> Environment:
    """What archives need to know of an environment, ``dev``."""
    return cast("Environment", _Environment("dev", endpoints, _Builds(on_deploy=on_deploy)))


def tensor(name: str, value: float) -> dict[str, object]:
    """An FP32 tensor of shape [1, 1] in KServe's JSON form."""
    return {"name": name, "datatype": "FP32", "shape": [1, 1], "data": [value]}


def write(folder: Path, files: dict[str, str]) -> None:
    """Write text files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def write_double(root: Path, name: str = "double") -> Path:
    """A model folder ``model_repos/<name>`` that can be built without an export; returns it."""
    folder = root / "model_repos" / name
    write(
        folder,
        {
            "recipe.yaml": RECIPE,
            f"{name}/config.pbtxt": CONFIG.replace('"double"', f'"{name}"'),
            f"{name}/1/model.py": MODEL,
            "sample/request.json": json.dumps({"inputs": [tensor("x", 2.5)]}),
            "sample/answer.json": json.dumps({"outputs": [tensor("y", 5.0)]}),
        },
    )
    write(root, {"requirements/exporters.txt": "numpy==2.4.6\n"})
    return folder


def source_of(folder: Path) -> ArchiveSource:
    """The only archive of a model folder."""
    (source,) = archives_of(folder)
    return source


def places_in(root: Path) -> Places:
    """The folders of a project in ``root``."""
    return Places(repositories=root / "model_repos", archives=root / "archives", exports=root / "exports")
