"""A proxy that listens, in front of the fakes of the client's tests: InvokeEndpoint over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.client.fakes import FakeEndpoint, FakeS3, FakeSession, FakeSsm, FakeTime, serving_outputs
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


class FakeRecords(FakeSsm):
    """Release records that a test may forbid to list."""

    listing_failure: Exception | None = None

    def paginate(self, *, Path: str, Recursive: bool) -> Iterator[dict[str, Any]]:  # noqa: N803
        if self.listing_failure is not None:
            raise self.listing_failure
        return super().paginate(Path=Path, Recursive=Recursive)


class FakeStates:
    """Endpoints with a state each; InService where a test says nothing else."""

    def __init__(self) -> None:
        self.looks = 0
        self.states: dict[str, str] = {}
        self.failure: Exception | None = None

    def describe_endpoint(self, *, EndpointName: str) -> dict[str, Any]:  # noqa: N803  (boto3's own spelling)
        if self.failure is not None:
            raise self.failure
        self.looks += 1
        return {"EndpointName": EndpointName, "EndpointStatus": self.states.get(EndpointName, "InService")}


@dataclass
class World:
    """What stands behind a proxy of environment ``dev``, and the proxy's own address."""

    endpoint: FakeEndpoint
    ssm: FakeRecords = field(init=False)
    s3: FakeS3 = field(init=False)
    sagemaker: FakeStates = field(default_factory=FakeStates)
    time: FakeTime = field(default_factory=FakeTime)
    port: int = 0

    def __post_init__(self) -> None:
        records = {f"/tritonstack/dev/{name}": DIGEST for name in RECORDS}
        self.ssm = FakeRecords({**records, "/tritonstack/dev/_artifacts/bucket-name": "bucket"})
        for name in ("digits", "other", "lone"):
            self.ssm.parameters[f"/tritonstack/dev/_outputs/serving-{name}"] = serving_outputs()
        self.s3 = FakeS3(
            {f"manifests/digits/24.09-t4/{name}.{DIGEST}.json": manifest for name, manifest in MANIFESTS.items()}
        )

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def proxy(self, *, concurrency: int = 4) -> Proxy:
        session = FakeSession(self.endpoint.url, ssm=self.ssm, s3=self.s3, sagemaker=self.sagemaker)
        return Proxy(environment="dev", session=session, concurrency=concurrency, clock=self.time.clock())

    @contextmanager
    def serving(self, *, concurrency: int = 4, limit: int = 1_000_000) -> Iterator[None]:
        proxy = self.proxy(concurrency=concurrency)
        with listening(proxy, limit=limit) as self.port:
            yield


@contextmanager
def listening(proxy: Proxy, *, limit: int = MAX_PAYLOAD_BYTES) -> Iterator[int]:
    """Serve a proxy from a thread of its own while the block runs; gives the port."""
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
