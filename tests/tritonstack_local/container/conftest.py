"""A real container for the whole session, graphs to load into it, and SageMaker's calls to it."""

from __future__ import annotations

import http.client
import json
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonstack.paths import environment_python
from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data

QUIET = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}


@dataclass(frozen=True)
class Reply:
    """A reply of the container: its status and its body."""

    status: int
    text: str

    @property
    def outputs(self) -> dict[str, list[Any]]:
        """The outputs of an inference: name → flat list."""
        assert self.status == 200, self.text
        return {one["name"]: one["data"] for one in json.loads(self.text)["outputs"]}


class SageMaker:
    """What SageMaker does with a container: unpack, load, invoke, unload."""

    def __init__(self, container: TritonContainer) -> None:
        self.container = container

    def call(self, method: str, path: str, body: object = None, target: str | None = None) -> Reply:
        """One HTTP call on a connection of its own."""
        connection = http.client.HTTPConnection("container", timeout=60)
        connection.sock = self.container.connect()
        connection.sock.settimeout(60)
        headers = {"Content-Type": "application/json"}
        if target:
            headers["X-Amzn-SageMaker-Target-Model"] = target
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        reply = Reply(response.status, response.read().decode())
        connection.close()
        return reply

    def load(self, name: str, archive: Mapping[str, str | Path]) -> Reply:
        """Unpack ``path → text, or a file or folder to copy`` as archive ``<name>.tar.gz``, and load it."""
        folder = self.container.model_folder(name)
        shutil.rmtree(folder, ignore_errors=True)
        write_files(folder, archive)
        prepare_model_data(folder)
        body = {"model_name": name, "url": self.container.model_url(name)}
        return self.call("POST", "/models", body, f"{name}.tar.gz")

    def invoke(self, name: str, **inputs: tuple[str, list[int], list[Any]]) -> Reply:
        """Invoke with inputs ``name=(datatype, shape, flat data)``."""
        return self.call("POST", f"/models/{name}/invoke", request_body(inputs), f"{name}.tar.gz")

    def invoke_binary(self, name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Invoke with arrays in the binary format, which half precision needs. Text is an array of ``bytes``."""
        body, size = binary_body(arrays)
        prefix = "application/vnd.sagemaker-triton.binary+json;json-header-size="
        connection = http.client.HTTPConnection("container", timeout=60)
        connection.sock = self.container.connect()
        headers = {"Content-Type": f"{prefix}{size}", "X-Amzn-SageMaker-Target-Model": f"{name}.tar.gz"}
        connection.request("POST", f"/models/{name}/invoke", body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.status == 200, content
        return parse_binary(content, int(str(response.getheader("Content-Type")).removeprefix(prefix)))

    def unload(self, name: str) -> Reply:
        """Unload the archive."""
        return self.call("DELETE", f"/models/{name}", None, f"{name}.tar.gz")


def write_files(folder: Path, archive: Mapping[str, str | Path]) -> None:
    """Lay out a model folder."""
    for path, content in archive.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.write_text(content)
        elif content.is_dir():
            shutil.copytree(content, target)
        else:
            shutil.copyfile(content, target)


def request_body(inputs: Mapping[str, tuple[str, list[int], list[Any]]]) -> dict[str, Any]:
    """A KServe v2 request in JSON."""
    return {
        "inputs": [
            {"name": name, "datatype": kind, "shape": shape, "data": data}
            for name, (kind, shape, data) in inputs.items()
        ]
    }


KINDS = {"float16": "FP16", "float32": "FP32", "int64": "INT64", "uint8": "UINT8", "bool": "BOOL", "object": "BYTES"}


def binary_body(arrays: Mapping[str, np.ndarray]) -> tuple[bytes, int]:
    """A request in the binary format, and the size of its JSON header."""
    parts = [
        b"".join(struct.pack("<I", len(one)) + one for one in array.ravel())
        if array.dtype == object
        else array.tobytes()
        for array in arrays.values()
    ]
    inputs = [
        {
            "name": name,
            "datatype": KINDS[str(array.dtype)],
            "shape": array.shape,
            "parameters": {"binary_data_size": len(part)},
        }
        for (name, array), part in zip(arrays.items(), parts, strict=True)
    ]
    header = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    return header + b"".join(parts), len(header)


def parse_binary(content: bytes, header_size: int) -> dict[str, np.ndarray]:
    """The outputs of a reply in the binary format."""
    outputs, at = {}, header_size
    for one in json.loads(content[:header_size])["outputs"]:
        part = content[at : at + one["parameters"]["binary_data_size"]]
        at += len(part)
        kind = next(dtype for dtype, spelled in KINDS.items() if spelled == one["datatype"])
        flat = np.array(list(split_text(part)), object) if kind == "object" else np.frombuffer(part, kind)
        outputs[one["name"]] = flat.reshape(one["shape"])
    return outputs


def split_text(part: bytes) -> Iterator[bytes]:
    """The elements of a BYTES tensor."""
    at = 0
    while at < len(part):
        (length,) = struct.unpack_from("<I", part, at)
        yield part[at + 4 : at + 4 + length]
        at += 4 + length


@pytest.fixture(scope="session")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of ONNX graphs, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("graphs")
    program = Path(__file__).with_name("onnx_models.py")
    subprocess.run([environment_python("exporters"), program, folder], check=True)
    return folder


@pytest.fixture(scope="session")
def sagemaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMaker]:
    """A multi-model container that answers; tests share it and use names of their own."""
    settings = ContainerSettings(environment=QUIET, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=tmp_path_factory.mktemp("container")) as container:
        container.wait_ready(60)
        yield SageMaker(container)


@pytest.fixture
def make_sagemaker() -> type[SageMaker]:
    """For containers of a test's own."""
    return SageMaker


PYTHON_MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        {initialize}

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("x", request.inputs()[0].as_numpy() + np.float32(1))])
            for request in requests
        ]
"""

PLUS_ONE_CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "raw" data_type: TYPE_FP32 dims: [3] } ]
output [ { name: "x" data_type: TYPE_FP32 dims: [3] } ]
instance_group [ { kind: KIND_GPU } ]
"""


@pytest.fixture
def python_model() -> Any:
    """Files of a Python model that adds one; ``initialize`` is a statement."""

    def files(initialize: str = "pass", folder: str = "plus-one") -> dict[str, str | Path]:
        return {
            f"{folder}/config.pbtxt": PLUS_ONE_CONFIG,
            f"{folder}/1/model.py": PYTHON_MODEL.format(initialize=initialize),
        }

    return files
