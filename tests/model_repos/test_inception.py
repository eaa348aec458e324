"""The DALI and Inception V3 ensemble, built tiny and served by a real Triton in both modes."""

from __future__ import annotations

import http.client
import io
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PIL import Image

from tests.config.environment_file import write_environment
from tests.environments import needs
from tests.models.folders import places_in
from tests.tritonstack_local.container.conftest import QUIET, SageMaker
from tritonstack.archives.build import build_models
from tritonstack.catalogue import model_formats
from tritonstack.config import load_environment
from tritonstack.models.contents import contents_of
from tritonstack.models.manifest import Manifest
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.paths import REPOSITORY
from tritonstack.served_checks import check_archives, with_default_models
from tritonstack.untrusted.unpacking import unpack
from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data
from tritonstack_local.processes import await_end, is_alive

pytestmark = [pytest.mark.long, needs("dali", "torch")]
NAME = "inception-ensemble"
FOLDER = REPOSITORY / "model_repos" / NAME
PICTURE = FOLDER / "sample" / "image.jpg"
RELEASES_MEMORY = "--backend-config=dali,release_after_unload=true"
GROWTH_MIB = 16
"""How much the server itself may grow over several loads: its own caches, well below one pipeline's memory."""


@dataclass(frozen=True)
class Archive:
    """The built archive: its manifest, its unpacked folder, and the sample's answer."""

    manifest: Manifest
    folder: Path
    answer: np.ndarray


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Built from the repository's folder without any cache."""
    root = tmp_path_factory.mktemp("inception")
    (root / "model_repos").symlink_to(REPOSITORY / "model_repos")
    places = places_in(root)
    summary = build_models([NAME], choice=BuildChoice(size="tiny", weights="random"), places=places)
    [built] = summary.built
    unpack(places.archive(built.name), root / "unpacked")
    answer = json.loads(next(places.exports.glob("*/files/sample/answer.json")).read_text())
    return Archive(built.manifest, root / "unpacked", np.array(answer["outputs"][0]["data"], np.float32))


@pytest.fixture(scope="module")
def multi_model(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMaker]:
    """A multi-model container with the settings that an endpoint of the archive needs; the archive is loaded."""
    folder = tmp_path_factory.mktemp("multi-model")
    variables = endpoint_variables(folder, f"container: {{additional_args: ['{RELEASES_MEMORY}']}}")
    settings = ContainerSettings(environment={**variables, **QUIET}, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=folder) as container:
        container.wait_ready(60)
        sagemaker = SageMaker(container)
        load(sagemaker, archive)
        yield sagemaker


def endpoint_variables(folder: Path, endpoint: str) -> dict[str, str]:
    """The container's variables of an endpoint that serves the archive; the settings are without a problem."""
    contents = {NAME: contents_of(ArchiveSource(name=NAME, folder=FOLDER))}
    settings = load_environment(write_environment(folder, endpoint=f"models: [{NAME}]\n{endpoint}"))
    assert check_archives(settings, contents) == []
    return dict(with_default_models(settings, contents).endpoints[0].container_environment())


def load(sagemaker: SageMaker, archive: Archive) -> None:
    folder = sagemaker.container.model_folder(NAME)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(archive.folder, folder)
    prepare_model_data(folder)
    body = {"model_name": NAME, "url": sagemaker.container.model_url(NAME)}
    reply = sagemaker.call("POST", "/models", body, f"{NAME}.tar.gz")
    assert reply.status == 200, reply.text


def jpeg(width: int, height: int, *colour: int) -> np.ndarray:
    """A picture of one colour, as the bytes of its file [n]."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, "JPEG", quality=90)
    return np.frombuffer(file.getvalue(), np.uint8)


def sample() -> np.ndarray:
    return np.frombuffer(PICTURE.read_bytes(), np.uint8)


def classify(sagemaker: SageMaker, picture: np.ndarray) -> np.ndarray:
    """The probabilities of one request with one picture."""
    answers = sagemaker.invoke_binary(NAME, {"INPUT": picture[None]})["OUTPUT"]
    return np.asarray(answers[0])


def test_the_archive_holds_both_steps_and_an_ensemble_with_an_empty_version(archive: Archive) -> None:
    names = sorted(path.relative_to(archive.folder).as_posix() for path in archive.folder.rglob("*") if path.is_file())
    assert names == [
        "inception-dali/1/model.dali",
        "inception-dali/config.pbtxt",
        "inception-ensemble/config.pbtxt",
        "inception-v3/1/model.onnx",
        "inception-v3/config.pbtxt",
        "inception-v3/labels.txt",
    ]
    assert list((archive.folder / "inception-ensemble" / "1").iterdir()) == []
    model = archive.manifest.model
    assert [(one.name, one.datatype, one.shape) for one in model.inputs] == [("INPUT", "UINT8", (-1, -1))]
    assert [(one.name, one.datatype, one.shape) for one in model.outputs] == [("OUTPUT", "FP32", (-1, 1001))]
    assert archive.manifest.backends == ("dali", "ensemble", "onnxruntime")


def test_the_pipeline_decodes_on_the_gpu_and_names_no_place_of_this_machine(archive: Archive) -> None:
    pipeline = (archive.folder / "inception-dali/1/model.dali").read_bytes()
    assert b"mixed" in pipeline
    assert b"gpu" in pipeline
    for word in (b"/", b".py", b"_origin_stack"):
        assert word not in pipeline
    assert model_formats.beyond_dali(pipeline) == ()


def test_the_sample_is_answered_as_pytorch_does(multi_model: SageMaker, archive: Archive) -> None:
    probabilities = classify(multi_model, sample())
    np.testing.assert_allclose(probabilities, archive.answer, atol=1e-5)
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)


def test_a_batch_of_one_request_is_padded_with_zeros(multi_model: SageMaker) -> None:
    pictures = [jpeg(40, 30, 200, 10, 10), sample()]
    batch = np.zeros((2, max(map(len, pictures))), np.uint8)
    for row, picture in zip(batch, pictures, strict=True):
        row[: len(picture)] = picture
    answers = multi_model.invoke_binary(NAME, {"INPUT": batch})["OUTPUT"]
    np.testing.assert_allclose(answers, [classify(multi_model, picture) for picture in pictures], atol=1e-5)


def test_a_broken_picture_is_an_error_of_its_own_request_only(multi_model: SageMaker, archive: Archive) -> None:
    def call(picture: np.ndarray) -> Any:
        return multi_model.invoke(NAME, INPUT=("UINT8", [1, len(picture)], picture.tolist()))

    with ThreadPoolExecutor(6) as callers:
        good, bad = callers.submit(call, sample()), callers.submit(call, sample()[:3000])
        others = [callers.submit(call, sample()) for _ in range(4)]
    assert bad.result().status == 400
    message = json.loads(bad.result().text)["error"]
    assert "inception-dali: DALI: Error in CPU operator" in message
    assert message.endswith("the input is no image that DALI decodes, or not all of one")
    for reply in (good, *others):
        np.testing.assert_allclose(reply.result().outputs["OUTPUT"], archive.answer, atol=1e-5)


def test_each_unload_ends_the_processes_that_hold_dalis_memory(archive: Archive, tmp_path: Path) -> None:
    variables = endpoint_variables(tmp_path, f"container: {{additional_args: ['{RELEASES_MEMORY}']}}")
    settings = ContainerSettings(environment={**variables, **QUIET}, multi_model=True, release="24.09")
    sizes = []
    with TritonContainer.start(settings, folder=tmp_path / "container") as container:
        container.wait_ready(60)
        sagemaker, server = SageMaker(container), psutil.Process(container.pid)
        for _ in range(3):
            load(sagemaker, archive)
            np.testing.assert_allclose(classify(sagemaker, sample()), archive.answer, atol=1e-5)
            stubs = server.children(recursive=True)
            assert len(stubs) == 2  # DALI's and ONNX Runtime's
            assert max(stub.memory_info().rss for stub in stubs) > 64 * 2**20
            assert sagemaker.unload(NAME).status == 200
            await_end(stubs, 20)
            assert not [stub for stub in stubs if is_alive(stub)]
            sizes.append(server.memory_info().rss)
        assert server.children(recursive=True) == []
    assert sizes[-1] - sizes[0] < GROWTH_MIB * 2**20


def test_a_single_model_endpoint_serves_the_ensemble_by_the_default_models_name(
    archive: Archive, tmp_path: Path
) -> None:
    variables = endpoint_variables(tmp_path, "mode: single-model")
    assert variables["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == NAME
    shutil.copytree(archive.folder, tmp_path / "model")
    prepare_model_data(tmp_path / "model")
    settings = ContainerSettings(
        environment={**variables, **QUIET}, multi_model=False, release="24.09", model_data=tmp_path / "model"
    )
    picture = sample()
    body = {"inputs": [{"name": "INPUT", "datatype": "UINT8", "shape": [1, len(picture)], "data": picture.tolist()}]}
    with TritonContainer.start(settings, folder=tmp_path / "container") as container:
        container.wait_ready(60)
        connection = http.client.HTTPConnection("container", timeout=60)
        connection.sock = container.connect()
        connection.request("POST", "/invocations", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = json.loads(response.read())
        connection.close()
    assert response.status == 200, content
    np.testing.assert_allclose(content["outputs"][0]["data"], archive.answer, atol=1e-5)
