"""A real container for the tests of a file, graphs to load into it, and SageMaker's calls to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonstack.client.body import decode, encode
from tritonstack.paths import environment_python
from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data

QUIET = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}


@dataclass(frozen=True)
class Reply:
    """A reply of the container: its status, body and content type."""

    status: int
    content: bytes
    kind: str

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode()

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
        """One HTTP call with a body of JSON."""
        content = None if body is None else json.dumps(body).encode()
        return self._send(method, path, content, "application/json", target)

    def _send(self, method: str, path: str, body: bytes | None, kind: str, target: str | None) -> Reply:
        """One HTTP call on a connection of its own."""
        connection = http.client.HTTPConnection("container", timeout=60)
        connection.sock = self.container.connect()
        connection.sock.settimeout(60)
        headers = {"Content-Type": kind}
        if target:
            headers["X-Amzn-SageMaker-Target-Model"] = target
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Reply(response.status, response.read(), str(response.getheader("Content-Type")))

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
        described = [
            {"name": each, "datatype": kind, "shape": shape, "data": data}
            for each, (kind, shape, data) in inputs.items()
        ]
        return self.call("POST", f"/models/{name}/invoke", {"inputs": described}, f"{name}.tar.gz")

    def invoke_binary(self, name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Invoke with arrays in the binary format, which half precision needs. Text is an array of ``bytes``."""
        body = encode(arrays, payload_format="binary")
        reply = self._send("POST", f"/models/{name}/invoke", body.content, body.content_type, f"{name}.tar.gz")
        assert reply.status == 200, reply.text
        return decode(reply.content, reply.kind).outputs

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


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of ONNX graphs, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("graphs")
    program = Path(__file__).with_name("onnx_models.py")
    subprocess.run([environment_python("exporters"), program, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def sagemaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMaker]:
    """A running multi-model container; the tests of a file share it, each with model names of its own.

    What is loaded stays loaded, up to 400 MB a model: unloading takes 2 s, the end of the container as long.
    """
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
