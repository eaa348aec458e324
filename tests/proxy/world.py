"""A proxy that listens, in front of the fakes of the client's tests: InvokeEndpoint over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.client.fakes import FakeEndpoint, FakeTime, document, serving_outputs
from tests.fake_aws import ARTIFACTS, FakeAws
from tritonstack.aws.sagemaker_rules import MAX_PAYLOAD_BYTES
from tritonstack.proxy.server import Proxy, make_server

DIGEST = "0123456789abcdef"
RECORDS = ("digits/digits-onnx", "digits/pixels", "digits/both", "other/both", "lone/alone")
CONFIG = """
name: "digits-onnx" platform: "onnxruntime_onnx" max_batch_size: 8
input [ { name: "pixels" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "pixels" data_type: TYPE_FP32 dims: [ 4 ] } ]
dynamic_batching { }
"""
ENSEMBLE = """
name: "pixels" platform: "ensemble" max_batch_size: 8
input [ { name: "image" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "pixels" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [ { model_name: "decode" model_version: -1
  input_map { key: "image" value: "image" } output_map { key: "out" value: "pixels" } } ] }
"""
DECODE = """
name: "decode" backend: "python" max_batch_size: 8
input [ { name: "image" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "out" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""


def tensor(name: str, datatype: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape), "optional": False}


MANIFESTS: dict[str, dict[str, Any]] = {
    "digits-onnx": {
        "model": {
            "name": "digits-onnx",
            "max_batch_size": 8,
            "inputs": [tensor("pixels", "FP32", -1, 4)],
            "outputs": [tensor("pixels", "FP32", -1, 4)],
        },
        "configs": {"digits-onnx": CONFIG},
    },
    "pixels": {
        "model": {
            "name": "pixels",
            "max_batch_size": 8,
            "inputs": [tensor("image", "BYTES", -1, 1)],
            "outputs": [tensor("pixels", "FP32", -1, 4)],
        },
        "configs": {"pixels": ENSEMBLE, "decode": DECODE},
    },
}


@dataclass
class ProxyAccount(FakeAws):
    """An account with endpoints.

    Attributes:
        states: endpoint → its status; InService of all others.
    """

    states: dict[str, str] = field(default_factory=dict)

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        return {"EndpointName": EndpointName, "EndpointStatus": self.states.get(EndpointName, "InService")}


@dataclass
class World:
    """Account, endpoint and clock of a proxy of environment ``dev``, and the proxy's address."""

    endpoint: FakeEndpoint
    aws: ProxyAccount = field(init=False)
    time: FakeTime = field(default_factory=FakeTime)
    port: int = 0

    def __post_init__(self) -> None:
        records = {f"/tritonstack/dev/{name}": DIGEST for name in RECORDS}
        outputs = {
            f"/tritonstack/dev/_outputs/serving-{name}": serving_outputs() for name in ("digits", "other", "lone")
        }
        bucket = {"/tritonstack/dev/_artifacts/bucket-name": ARTIFACTS}
        self.aws = ProxyAccount(parameters=records | outputs | bucket, urls={"sagemaker-runtime": self.endpoint.url})
        for name, manifest in MANIFESTS.items():
            self.aws.artifacts[f"manifests/digits/24.09-t4/{name}.{DIGEST}.json"] = document(manifest)

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def proxy(self, *, concurrency: int = 4) -> Proxy:
        return Proxy(environment="dev", session=self.aws, concurrency=concurrency, clock=self.time.clock())

    @contextmanager
    def serving(self, *, concurrency: int = 4, limit: int = 1_000_000) -> Iterator[None]:
        proxy = self.proxy(concurrency=concurrency)
        with listening(proxy, limit=limit) as self.port:
            yield


@contextmanager
def listening(proxy: Proxy, *, limit: int = MAX_PAYLOAD_BYTES) -> Iterator[int]:
    """Serve a proxy from a thread of its own while the block runs; yields the port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = make_server(proxy, max_payload_bytes=limit)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(port=0), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(seconds=5), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
