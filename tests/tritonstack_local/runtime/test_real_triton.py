"""The runtime over the real Triton: what neither the fake container nor tests/e2e/local shows."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.runtime.fakes import FakeObjects, Stage, asynchronous, config, stage, until

CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { count: 1 kind: KIND_GPU } ]
"""
MODEL = """
import os
import time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        INITIALIZE

    def execute(self, requests):
        answers = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given + np.float32(ADDED))]))
        return answers
"""
GENERATING = """
backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "WORDS" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "WORD" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_GPU } ]
"""
GENERATOR = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            words = pb_utils.get_input_tensor_by_name(request, "WORDS").as_numpy()[0].decode().split()
            for word in words:
                error = pb_utils.TritonError("no such word") if word == "fail" else None
                tensors = [] if error else [pb_utils.Tensor("WORD", np.array([word], dtype=object))]
                sender.send(pb_utils.InferenceResponse(tensors, error=error))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
REQUEST = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}).encode()


def adding(added: int, *, initialize: str = "pass") -> bytes:
    """An archive whose model adds a number."""
    source = MODEL.replace("INITIALIZE", initialize).replace("ADDED", str(added))
    return archived("adder", config=CONFIG, source=source)


def archived(name: str, *, config: str, source: str) -> bytes:
    """An archive with one Python model."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for path, text in ((f"{name}/config.pbtxt", config), (f"{name}/1/model.py", source)):
            member = tarfile.TarInfo(path)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def models(**contents: bytes) -> FakeObjects:
    """A bucket with these archives."""
    objects = FakeObjects()
    objects.contents = {f"{name}.tar.gz": data for name, data in contents.items()}
    return objects


async def invoke(at: Stage, target: str | None, *, variant: str | None = None) -> list[float]:
    """What a model makes of [1, 2]."""
    [output] = json.loads((await at.call(target, body=REQUEST, variant=variant)).body)["outputs"]
    return list(output["data"])


@asynchronous
async def test_each_variant_responds_from_its_own_archive(tmp_path: Path) -> None:
    bucket = models(one=adding(1), two=adding(2))
    variants = [config(multi_model=False, variant=name, key=f"{name}.tar.gz") for name in ("one", "two")]
    async with stage(tmp_path, *variants, objects=bucket, real=True, weights=(3.0, 1.0)) as at:
        found = [await invoke(at, None) for _ in range(8)]
        assert sorted(found) == [[2, 3]] * 6 + [[3, 4]] * 2
        assert await invoke(at, None, variant="two") == [3, 4]


@asynchronous
async def test_a_loaded_model_responds_all_the_while_another_one_loads(tmp_path: Path) -> None:
    goes = tmp_path / "goes", tmp_path / "goes-too"
    slow, slower = (f"while not os.path.exists({str(each)!r}): time.sleep(0.01)" for each in goes)
    bucket = models(one=adding(1), slow=adding(2, initialize=slow), slower=adding(3, initialize=slower))
    async with stage(tmp_path, config(), objects=bucket, real=True, invoke_seconds=60.0) as at:
        await invoke(at, "one.tar.gz")
        for target, go, expected in (("slow.tar.gz", goes[0], [3, 4]), ("slower.tar.gz", goes[1], [4, 5])):
            loading = asyncio.create_task(invoke(at, target))
            await until(lambda: bool(at.fleet().models._in_load_call))
            for _ in range(20):  # 160 calls, eight at a time
                assert await asyncio.gather(*(invoke(at, "one.tar.gz") for _ in range(8))) == [[2, 3]] * 8
            assert not loading.done()
            go.touch()
            assert await loading == expected


@asynchronous
async def test_a_decoupled_model_streams_its_responses_and_its_errors_are_events(tmp_path: Path) -> None:
    bucket = models(words=archived("writer", config=GENERATING, source=GENERATOR))
    generates = {"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream"}
    deployed = config(multi_model=False, key="words.tar.gz", release="25.09", environment=generates)
    async with stage(tmp_path, deployed, objects=bucket, real=True) as at:

        def stream(body: dict[str, Any]) -> list[dict[str, str]]:
            response = at.client.invoke_endpoint_with_response_stream(EndpointName="e", Body=json.dumps(body).encode())
            text = b"".join(event["PayloadPart"]["Bytes"] for event in response["Body"]).decode()
            return [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n") if event]

        words = await asyncio.to_thread(stream, {"WORDS": "tokens as they come"})
        assert words == [{"model_name": "writer", "model_version": "1", "WORD": each} for each in words_of(words)]
        assert words_of(words) == ["tokens", "as", "they", "come"]
        failed = await asyncio.to_thread(stream, {"WORDS": "one fail"})
        assert (failed[0]["WORD"], failed[1]) == ("one", {"error": "no such word"})
        with pytest.raises(ClientError) as caught:
            await asyncio.to_thread(stream, {"WORDS": []})
        assert caught.value.response["Error"]["Code"] == "ModelError"


def words_of(events: list[dict[str, str]]) -> list[str]:
    """What the events say."""
    return [event["WORD"] for event in events]
