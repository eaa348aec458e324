"""The GraphDef form of the Inception ensemble, built tiny and served by a real Triton beside the ONNX form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.model_repos.test_inception_graphdef import FOLDERS, NAME, ONNX
from tests.models.folders import places_in
from tests.tritonstack_local.container.conftest import QUIET, SageMaker
from tritonstack.models.build import build_models
from tritonstack.models.manifest import Manifest
from tritonstack.models.programs import REPOSITORY
from tritonstack.models.source import BuildChoice
from tritonstack.paths import environment_python
from tritonstack.unpacking import unpack
from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data

MISSING = [name for name in ("dali", "tensorflow", "torch") if not environment_python(name).exists()]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(MISSING), reason=f"no environment {' and '.join(MISSING)}: python3 scripts/setup.py {' '.join(MISSING)}"
    ),
]


@dataclass(frozen=True)
class Built:
    """A built archive: its manifest, its unpacked folder, and what its source framework answers to the sample."""

    manifest: Manifest
    folder: Path
    answer: np.ndarray


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Both forms, tiny and with random weights, built from the repository's folders without any cache."""
    root = tmp_path_factory.mktemp("forms")
    (root / "model_repos").symlink_to(REPOSITORY / "model_repos")
    places = places_in(root)
    found = {}
    for item in build_models([NAME, ONNX], choice=BuildChoice(size="tiny", weights="random"), places=places).built:
        unpack(places.archive(item.name), root / item.manifest.name)
        [output] = item.manifest.sample.answer["outputs"]
        found[item.manifest.name] = Built(item.manifest, root / item.manifest.name, np.array(output["data"]))
    return found


@pytest.fixture(scope="module")
def container(archives: dict[str, Built], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMaker]:
    """A multi-model container with both forms loaded."""
    settings = ContainerSettings(environment=QUIET, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=tmp_path_factory.mktemp("multi-model")) as running:
        running.wait_ready(60)
        sagemaker = SageMaker(running)
        for name, built in archives.items():
            load(sagemaker, name, built)
        yield sagemaker


def load(sagemaker: SageMaker, name: str, built: Built) -> None:
    """Load an archive as SageMaker does."""
    folder = sagemaker.container.model_folder(name)
    shutil.copytree(built.folder, folder)
    prepare_model_data(folder)
    body = {"model_name": name, "url": sagemaker.container.model_url(name)}
    reply = sagemaker.call("POST", "/models", body, f"{name}.tar.gz")
    assert reply.status == 200, reply.text


def sample() -> np.ndarray:
    """The sample's file, [1, bytes]."""
    return np.frombuffer((FOLDERS[NAME] / "sample/image.jpg").read_bytes(), np.uint8)[None]


def test_the_archive_holds_the_graphdef_and_nothing_that_was_handed_over(archives: dict[str, Built]) -> None:
    folder = archives[NAME].folder
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "inception-dali/1/model.dali",
        "inception-dali/config.pbtxt",
        "inception-ensemble-graphdef/config.pbtxt",
        "inception-graphdef/1/model.graphdef",
        "inception-graphdef/config.pbtxt",
        "inception-graphdef/labels.txt",
    ]
    assert archives[NAME].manifest.backends == ("dali", "ensemble", "tensorflow")


def test_the_manifest_carries_the_proof_and_who_stood_in(archives: dict[str, Built]) -> None:
    manifest = archives[NAME].manifest
    assert manifest.figures["largest_difference"] <= 1e-4
    assert manifest.figures["sample_difference"] <= 1e-4
    assert manifest.figures["decoder_difference"] < 1
    assert manifest.tools["tensorflow-cpu"] == "2.17.1"
    assert {"dali", "torch", "tritonserver"} <= manifest.tools.keys()
    words = "backend tensorflow runs model.graphdef with TensorFlow 2.17.1 on the CPU"
    assert any(words in line for line in manifest.stand_ins)


def test_pytorch_answers_the_sample_alike_for_both_forms(archives: dict[str, Built]) -> None:
    np.testing.assert_array_equal(archives[NAME].answer, archives[ONNX].answer)


def test_both_forms_answer_the_sample_alike(container: SageMaker, archives: dict[str, Built]) -> None:
    answers = [container.invoke_binary(name, {"INPUT": sample()})["OUTPUT"][0] for name in (NAME, ONNX)]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)
    np.testing.assert_allclose(answers[0], archives[NAME].answer, atol=1e-5)
    assert answers[0].shape == (1001,)
    assert answers[0].sum() == pytest.approx(1, abs=1e-5)
    assert answers[0].max() - answers[0].min() > 1e-3  # the weights make a difference between classes


def test_triton_names_the_best_classes(container: SageMaker, archives: dict[str, Built]) -> None:
    labels = (FOLDERS[NAME] / "inception-graphdef/labels.txt").read_text().splitlines()
    picture = sample()
    body = {
        "inputs": [{"name": "INPUT", "datatype": "UINT8", "shape": [*picture.shape], "data": picture[0].tolist()}],
        "outputs": [{"name": "OUTPUT", "parameters": {"classification": 3}}],
    }
    reply = container.call("POST", f"/models/{NAME}/invoke", body, f"{NAME}.tar.gz")
    [output] = json.loads(reply.text)["outputs"]
    best = np.argsort(-archives[NAME].answer)[:3]
    assert [one.split(":")[1:] for one in output["data"]] == [[str(place), labels[place]] for place in best]


def test_an_unload_ends_the_processes_that_hold_the_memory(archives: dict[str, Built], tmp_path: Path) -> None:
    settings = ContainerSettings(environment=QUIET, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=tmp_path / "container") as running:
        running.wait_ready(60)
        sagemaker, server = SageMaker(running), psutil.Process(running.pid)
        load(sagemaker, NAME, archives[NAME])
        stubs = server.children(recursive=True)
        assert len(stubs) == 2  # DALI's and TensorFlow's
        assert sagemaker.unload(NAME).status == 200
        assert psutil.wait_procs(stubs, timeout=20)[1] == []
