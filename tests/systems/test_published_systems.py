"""Every archive of the published systems returns its source framework's response to the sample request."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

from tests.client.examples import commands, run_python
from tests.e2e.project import Project
from tests.systems.answers import (
    PROPERTY,
    EngineBuilds,
    Row,
    engine_builds,
    fleet_of,
    invoked,
    row_of,
    sample_arrays,
)
from tests.systems.conftest import CACHE, COPIES, INCEPTIONS, ORT_TENSORRT, RESNETS, TUNED
from tritonstack.client import ModelClient
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]

VARIANTS = tuple(f"bert-large-{form}{way}" for form in ("pytorch", "tensorrt") for way in ("", "-db", "-ig", "-db-ig"))
COPY_NAMES = tuple(f"engines/bert-tensorrt-{number}" for number in range(COPIES))
NAMES = [
    *(f"images/{name}" for name in (*RESNETS, TUNED)),
    f"ort/{ORT_TENSORRT}",
    *INCEPTIONS,
    "images/inception-ensemble-graphdef",
    "texts/roberta-large-onnx",
    "texts/t5-python",
    *(f"bert-large/{name}" for name in VARIANTS),
    *COPY_NAMES,
]


@pytest.fixture(scope="module")
def client(systems: Project, systems_aws: LocalAws) -> ModelClient:
    folder = systems.root / ".local" / "client-files"
    return ModelClient(environment="local", session=systems_aws.session(), cache_folder=folder)


@pytest.fixture(scope="module")
def builds(systems_aws: LocalAws) -> EngineBuilds:
    return engine_builds(systems_aws)


@pytest.fixture
def invoke_twice(
    systems_aws: LocalAws,
    client: ModelClient,
    builds: EngineBuilds,
    record_property: Callable[[str, object], None],
) -> Callable[[str], Row]:
    """Send an archive its sample request twice; record the row of the table."""

    def row(name: str) -> Row:
        found = row_of(systems_aws, client, name, builds=builds, variant=INCEPTIONS.get(name))
        record_property(PROPERTY, found.document)
        return found

    return row


def test_no_folder_and_no_endpoint_has_an_error(systems: Project) -> None:
    assert ", errors: 0," in systems.run("lint", "--environment", "local").stderr


def test_each_engine_is_built_once_on_the_gpu_that_serves_it(builds: EngineBuilds) -> None:
    assert {key: [(run.service, run.status) for run in runs] for key, runs in builds.items()} == {
        ("A10G", "bert-tensorrt"): [("CodeBuild", "SUCCEEDED")],
        ("T4", "resnet50-tensorrt"): [("Processing", "Completed")],
        ("T4", "bert-large"): [("Processing", "Completed")],
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_response_to_the_sample_is_within_the_recipes_tolerance(
    invoke_twice: Callable[[str], Row], name: str
) -> None:
    row = invoke_twice(name)
    assert row.difference <= row.tolerance
    assert "not found" not in row.engine
    assert row.stand_ins, "no backend of these systems runs here without a stand-in"


def test_the_three_formats_of_resnet_agree(client: ModelClient) -> None:
    responses = []
    for name in (f"images/{name}" for name in RESNETS):
        [output] = client.invoke(name, sample_arrays(client, name)).outputs.values()
        responses.append(output)
    np.testing.assert_allclose(responses[1], responses[0], atol=1e-4)
    np.testing.assert_allclose(responses[2], responses[0], atol=1e-4)


def test_the_tuned_resnets_agree_with_the_plain_one_and_say_what_is_for_a_gpu(
    systems: Project, client: ModelClient
) -> None:
    names = ("images/resnet50-onnx", f"images/{TUNED}", f"ort/{ORT_TENSORRT}")
    plain, *others = (client.invoke(name, sample_arrays(client, name)).outputs["output"] for name in names)
    for output in others:
        np.testing.assert_allclose(output, plain, atol=1e-4)
    log = systems.run("local", "logs", "local-ort", "-n", "2000").stdout
    assert "gpu_execution_accelerator tensorrt is for a GPU and is ignored on the CPU" in log


def test_the_two_formats_of_inception_agree(client: ModelClient) -> None:
    onnx, graphdef = (
        client.invoke(name, sample_arrays(client, name), variant=variant).outputs["OUTPUT"]
        for name, variant in INCEPTIONS.items()
    )
    np.testing.assert_allclose(graphdef, onnx, atol=1e-4)


def test_the_ab_test_of_environment_dev_splits_requests_by_its_weights(client: ModelClient) -> None:
    name = next(iter(INCEPTIONS))
    image = sample_arrays(client, name)
    assert Counter(client.invoke(name, image).variant for _ in range(20)) == {
        "graphdef-g4dn-xlarge": 18,
        "onnx-g4dn-xlarge": 2,
    }


def test_ten_copies_of_bert_in_a_cache_of_three_all_respond_correctly(
    systems_aws: LocalAws, client: ModelClient
) -> None:
    before = fleet_of(systems_aws, "engines")
    names = random.Random(20240923).sample(COPY_NAMES, COPIES)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: invoked(client, name), names))
    fleet = fleet_of(systems_aws, "engines")
    assert len(fleet["models"]) <= CACHE
    assert fleet["unloads"] - before["unloads"] >= COPIES - CACHE
    assert fleet["errors"] == 0


def test_the_pooled_output_can_be_requested_alone(client: ModelClient) -> None:
    name = COPY_NAMES[0]
    inputs = sample_arrays(client, name)
    both = client.invoke(name, inputs)
    pooled = client.invoke(name, inputs, ["pooled_output"])
    assert {key: array.shape for key, array in both.outputs.items()} == {
        "output": (1, 128, 768),
        "pooled_output": (1, 768),
    }
    assert {key: array.shape for key, array in pooled.outputs.items()} == {"pooled_output": (1, 768)}
    np.testing.assert_array_equal(pooled.outputs["pooled_output"], both.outputs["pooled_output"])


def test_requests_of_a_batch_are_translated_together_and_each_as_it_is_alone(client: ModelClient) -> None:
    alone = sample_arrays(client, "texts/t5-python")
    shorter = {key: array[:, : max(1, array.shape[1] // 2)] for key, array in alone.items()}
    expected = [client.invoke("texts/t5-python", inputs).outputs["output"] for inputs in (alone, shorter)]
    with ThreadPoolExecutor(4) as pool:
        got = list(
            pool.map(
                lambda inputs: client.invoke("texts/t5-python", inputs).outputs["output"],
                [alone, shorter, alone, shorter],
            )
        )
    for index, output in enumerate(got):
        np.testing.assert_array_equal(output, expected[index % 2])


def test_the_page_for_clients_runs_unchanged(systems: Project, client: ModelClient, tmp_path: Path) -> None:
    copyfile(systems.root / "model_repos" / "resnet50-onnx" / "sample" / "image.jpg", tmp_path / "dog.jpg")
    printed = run_python(client, folder=tmp_path)
    assert printed["ResNet50: image → top-5"].count("\n") == 15
    for words in commands():
        assert words[0] == "tritonstack"
        files = [str(tmp_path / word) if word == "dog.jpg" else word for word in words[1:]]
        assert systems.run(*files, "--environment", "local").stdout


def test_stand_ins_are_reported_in_status(systems: Project, systems_aws: LocalAws) -> None:
    shown = systems.run("local", "status").stdout
    for word in ("tensorrt", "dali", "tensorflow", "execution environment"):
        assert word in shown
