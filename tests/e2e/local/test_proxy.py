"""``tritonstack proxy`` on the local AWS with the real Triton, called by Triton's own clients as they come."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http.aio
from tritonclient.http import InferenceServerClient, InferenceServerException, InferInput, InferRequestedOutput

from tests.e2e.calls import target_model
from tests.e2e.project import PROGRAM, REPOSITORY, Project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(700)]
MODELS = REPOSITORY / "model_repos"


@pytest.fixture(scope="module")
def proxy(project: Project, deployed: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A proxy for environment ``local``; its address. At the end Ctrl-C must end it cleanly."""
    errors = tmp_path_factory.mktemp("proxy") / "stderr"
    with (
        errors.open("w") as stream,
        subprocess.Popen(
            [str(PROGRAM), "proxy", "-e", "local", "--port", "0", "--concurrency", "8"],
            cwd=project.root,
            env=project.variables,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("KServe v2 at http://"), line + errors.read_text()
            yield line.removeprefix("KServe v2 at http://").split()[0]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
    assert "Traceback" not in errors.read_text()


@pytest.fixture
def client(proxy: str) -> InferenceServerClient:
    """Triton's own client, told nothing but the address."""
    return InferenceServerClient(proxy)


def sample(model: str) -> tuple[Any, list[int]]:
    """The pixels of a model's sample request, and the labels of its answer."""
    folder = MODELS / model / "sample"
    request = json.loads((folder / "request.json").read_text())
    return np.array(request["inputs"][0]["data"], np.float32).reshape(request["inputs"][0]["shape"]), labels(folder)


def labels(folder: Path) -> list[int]:
    answer = json.loads((folder / "answer.json").read_text())
    return next(output["data"] for output in answer["outputs"] if output["datatype"] == "INT64")


def pixels(array: Any) -> list[InferInput]:
    """The classifier's one input."""
    given = InferInput("pixels", list(array.shape), "FP32")
    given.set_data_from_numpy(array)
    return [given]


def image() -> list[InferInput]:
    """The ensemble's one input: a PNG as it is."""
    content = (MODELS / "digits-ensemble" / "sample" / "digit.png").read_bytes()
    given = InferInput("image", [1, 1], "BYTES")
    given.set_data_from_numpy(np.array([[content]], dtype=object))
    return [given]


@pytest.mark.parametrize("endpoint", ["digits", "single"])
def test_tritonclient_reaches_a_model_by_name_in_both_modes(client: InferenceServerClient, endpoint: str) -> None:
    array, expected = sample("digits-onnx")
    name = f"{endpoint}/digits-onnx"
    assert client.is_model_ready(name)
    answer = client.infer(name, pixels(array), request_id="42")
    assert answer.as_numpy("label").ravel().tolist() == expected
    assert answer.as_numpy("probabilities").shape == (len(array), 10)
    assert {key: answer.get_response()[key] for key in ("id", "model_name", "model_version")} == {
        "id": "42",
        "model_name": name,
        "model_version": "1",
    }


def test_chosen_outputs_classification_and_json_come_from_triton(client: InferenceServerClient) -> None:
    array, expected = sample("digits-onnx")
    wanted = [InferRequestedOutput("label", binary_data=False), InferRequestedOutput("probabilities", class_count=1)]
    answer = client.infer("digits/digits-onnx", pixels(array), outputs=wanted)
    assert answer.as_numpy("label").ravel().tolist() == expected
    best = answer.as_numpy("probabilities").ravel()[0]
    assert int(best.split(b":")[1]) == expected[0]


def test_the_asynchronous_client_calls_the_ensemble_and_the_classifier_at_once(proxy: str) -> None:
    array, expected = sample("digits-onnx")

    async def calls() -> list[Any]:
        async with tritonclient.http.aio.InferenceServerClient(proxy) as client:
            asked = [client.infer("digits-ensemble", image()) for _ in range(10)]
            asked += [client.infer("digits/digits-onnx", pixels(array)) for _ in range(10)]
            return [answer.as_numpy("label").ravel().tolist() for answer in await asyncio.gather(*asked)]

    found = asyncio.run(calls())
    assert found[:10] == [labels(MODELS / "digits-ensemble" / "sample")] * 10
    assert found[10:] == [expected] * 10


def test_what_is_described_is_what_triton_takes(client: InferenceServerClient) -> None:
    """Every model is called with zeros of the shape and type that its metadata tells."""
    assert client.is_server_live()
    assert client.is_server_ready()
    for name in ("digits/digits-onnx", "fits", "adds-00"):
        config = client.get_model_config(name)
        (described,) = client.get_model_metadata(name)["inputs"]
        assert config["input"][0]["dims"] == described["shape"][1:]
        array = np.zeros([1, *described["shape"][1:]], np.float32)
        given = InferInput(described["name"], list(array.shape), described["datatype"])
        given.set_data_from_numpy(array)
        answered = client.infer(name, [given]).get_response()["outputs"]
        outputs = client.get_model_metadata(name)["outputs"]
        assert {(one["name"], one["datatype"]) for one in answered} == {(o["name"], o["datatype"]) for o in outputs}
    steps = client.get_model_config("digits-ensemble")["ensemble_scheduling"]["step"]
    assert [client.get_model_config(step["model_name"])["max_batch_size"] for step in steps] == [64, 64]


def refused(call: Any) -> tuple[str, str]:
    """Status and words of the error that a call ends with."""
    with pytest.raises(InferenceServerException) as raised:
        call()
    return raised.value.status(), raised.value.message()


def test_errors_reach_tritonclient_as_its_own(client: InferenceServerClient, deployed: LocalAws) -> None:
    array, _ = sample("digits-onnx")
    status, words = refused(lambda: client.infer("digits/digits-onnx", pixels(array[:, :5])))
    assert status == "400"
    assert target_model(deployed, endpoint="digits", model="digits-onnx") in words, "Triton's own sentence"
    status, words = refused(lambda: client.infer("digits-onnx", pixels(array)))
    assert (status, "digits/digits-onnx, single/digits-onnx" in words) == ("400", True)
    status, words = refused(lambda: client.infer("digits-ensembel", image()))
    assert (status, "digits-ensemble" in words) == ("404", True)
    assert refused(lambda: client.infer("digits/digits-onnx", pixels(array), model_version="7"))[0] == "404"
    assert refused(lambda: client.get_inference_statistics("digits/digits-onnx"))[0] == "501"
    large = np.zeros((7_000_000, 1), np.float32)
    given = InferInput("x", list(large.shape), "FP32")
    given.set_data_from_numpy(large)
    assert refused(lambda: client.infer("fits", [given]))[0] == "413", "28 MB, and this InvokeEndpoint takes 25"
