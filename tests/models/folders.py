"""Small model folders for tests, in a project of their own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tritonstack.adapters import Adapters
from tritonstack.archives.execution_environment import PackedEnvironment
from tritonstack.config import EndpointSettings, Environment
from tritonstack.models.manifest import ArchiveEntry, EngineEntry, Manifest, ModelEntry, Places, SampleEntry
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


EXPORT_HEAD = """\
import argparse, json, pathlib
parser = argparse.ArgumentParser()
for name in ("--target", "--options", "--report", "--sample"):
    parser.add_argument(name)
given = parser.parse_args()
told = json.loads(given.options)
options, target = told["options"], pathlib.Path(given.target)
def write(name, text):
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    (target / name).write_text(text)
def report(figures={}, tools={}, inputs={}):
    pathlib.Path(given.report).write_text(json.dumps({"figures": figures, "tools": tools, "inputs": inputs}))
"""
"""The first lines of an export script: what it is told, and two functions for what it leaves."""

T4 = Platform(release="24.09", gpu="t4")
PACKED = gzip.compress(bytes(1024), mtime=0)
"""A packed environment without a file: an empty .tar.gz."""


@dataclass(frozen=True)
class _StandInEndpoint:
    name: str
    models: tuple[str, ...]
    platform: Platform

    @property
    def platform_settings(self) -> tuple[_StandInEndpoint, ...]:
        return (self,)

    @property
    def model_places(self) -> tuple[tuple[str, int], ...]:
        return tuple(("models", number) for number in range(len(self.models)))


@dataclass(frozen=True)
class _Builds(BuildChoice):
    on_deploy: bool | None = None


@dataclass(frozen=True)
class _Environment:
    environment: str
    endpoints: tuple[EndpointSettings, ...]
    builds: _Builds


def make_endpoint(name: str, models: tuple[str, ...], platform: Platform = T4) -> EndpointSettings:
    """An endpoint with what archives depend on."""
    return cast("EndpointSettings", _StandInEndpoint(name, models, platform))


def make_environment(*endpoints: EndpointSettings, on_deploy: bool | None = None) -> Environment:
    """An environment ``dev`` with what archives depend on."""
    return cast("Environment", _Environment("dev", endpoints, _Builds(on_deploy=on_deploy)))


def make_manifest(**fields: Any) -> Manifest:
    """A manifest of ``double`` with these fields instead."""
    return Manifest(
        name="double",
        digest="0" * 16,
        description="Doubles a number.",
        dependency="none",
        archive=ArchiveEntry(file="a", bytes=1, sha256="0" * 64, tar_bytes=1, tar_sha256="0" * 64),
        model=ModelEntry(name="double", max_batch_size=8, inputs=(), outputs=()),
        backends=("python",),
        configs={},
        adapters=Adapters(),
        sample=SampleEntry(file="s.json", answer={}, tolerance=0),
        figures={},
        tools={},
    ).model_copy(update=fields)


def make_engine(**fields: Any) -> EngineEntry:
    """A manifest's entry of a plan for a T4 with these fields instead."""
    return EngineEntry(
        plan="double/1/model.plan",
        bytes=4,
        sha256="0" * 64,
        stand_in=False,
        release="24.09",
        tensorrt="10.4.0",
        driver="550.127.05",
        gpu="Tesla T4",
        compute_capability="7.5",
        options=(),
        inputs=(),
        outputs=(),
        durations={"build_seconds": 1.0},
        difference=0,
        tolerance=0,
        proof="random",
    ).model_copy(update=fields)


def make_environment_file(path: Path, python: str) -> PackedEnvironment:
    """A packed execution environment without a file."""
    path.write_bytes(PACKED)
    return PackedEnvironment(path=path, python=python, packages={"numpy": "1.26.4"})


def tensor(name: str, value: float) -> dict[str, object]:
    """An FP32 tensor of shape [1, 1] in KServe's JSON form."""
    return {"name": name, "datatype": "FP32", "shape": [1, 1], "data": [value]}


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Lay files out below an existing or new folder; a path that ends with a slash is an empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


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
    (source,) = archives_of(folder)
    return source


def places_in(root: Path) -> Places:
    """The folders of a project in ``root``."""
    return Places(repositories=root / "model_repos", archives=root / "archives", exports=root / "exports")
