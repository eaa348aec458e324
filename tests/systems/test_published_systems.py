"""Every archive of the published systems answers its sample request as its source framework does."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pytest

from tests.client.examples import commands, run_python
from tests.e2e.project import Project
from tests.systems.conftest import CACHE, COPIES, INCEPTIONS, RESNETS
from tests.systems.samples import difference_of_sample, manifest_of, sample_arrays
from tritonstack.client import ModelClient
from tritonstack.local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]

VARIANTS = tuple(f"bert-large-{form}{way}" for form in ("pytorch", "tensorrt") for way in ("", "-db", "-ig", "-db-ig"))
ANSWERS = [
    *(("images", name) for name in RESNETS),
    *(("images", name) for name in INCEPTIONS),
    ("texts", "roberta-large-onnx"),
    ("texts", "t5-python"),
    *(("texts", name) for name in VARIANTS),
]


@pytest.fixture(scope="module")
def client(systems_aws: LocalAws) -> ModelClient:
    return ModelClient(environment="local", session=systems_aws.session())


@pytest.mark.parametrize(("endpoint", "name"), ANSWERS)
def test_the_sample_is_answered_within_the_recipes_tolerance(
    systems: Project, client: ModelClient, endpoint: str, name: str
) -> None:
    assert difference_of_sample(systems, client, endpoint=endpoint, name=name) >= 0.0


def test_the_ensemble_answers_alone_on_a_single_model_endpoint_too(systems: Project, single_aws: LocalAws) -> None:
    client = ModelClient(environment="single", session=single_aws.session())
    assert difference_of_sample(systems, client, endpoint="ensemble", name="inception-ensemble") >= 0.0


def test_the_three_formats_of_resnet_answer_alike(systems: Project, client: ModelClient) -> None:
    answers = []
    for name in RESNETS:
        [output] = client.invoke(f"images/{name}", sample_arrays(systems, name)).outputs.values()
        answers.append(output)
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-4)
    np.testing.assert_allclose(answers[2], answers[0], atol=1e-4)


def test_the_two_formats_of_inception_answer_alike(systems: Project, client: ModelClient) -> None:
    onnx, graphdef = (
        client.invoke(f"images/{name}", sample_arrays(systems, name)).outputs["OUTPUT"] for name in INCEPTIONS
    )
    np.testing.assert_allclose(graphdef, onnx, atol=1e-4)


def test_ten_copies_of_bert_churn_through_a_cache_of_three_with_every_answer_right(
    systems: Project, systems_aws: LocalAws, client: ModelClient
) -> None:
    dice = random.Random(20240923)
    names = [f"bert-tensorrt-{number}" for number in range(COPIES)]
    plan = [*names, *(dice.choice(names) for _ in range(10))]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: difference_of_sample(systems, client, endpoint="copies", name=name), plan))
    fleet = fleet_of(systems_aws, "local-copies")
    assert len(fleet["models"]) <= CACHE
    assert fleet["unloads"] >= COPIES - CACHE
    assert fleet["errors"] == 0


def test_the_copies_are_the_same_model_under_names_of_their_own(systems: Project) -> None:
    manifests = [manifest_of(systems, f"bert-tensorrt-{number}")[0] for number in range(COPIES)]
    assert len({manifest.digest for manifest in manifests}) == COPIES
    assert len({manifest.archive.tar_sha256 for manifest in manifests}) == COPIES
    assert [manifest.model.name for manifest in manifests] == [manifest.name for manifest in manifests]
    assert len({str(manifest.sample.answer) for manifest in manifests}) == 1


def fleet_of(aws: LocalAws, endpoint: str) -> dict[str, Any]:
    """The one fleet of an endpoint, as the runtime describes it."""
    found = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == endpoint)
    [fleet] = found["fleets"]
    return dict(fleet)


def test_the_pooled_output_alone_is_a_thousandth_of_the_answer(systems: Project, client: ModelClient) -> None:
    name = "texts/bert-large-tensorrt"
    inputs = sample_arrays(systems, "bert-large-tensorrt")
    both = client.invoke(name, inputs)
    pooled = client.invoke(name, inputs, ["pooled_output"])
    assert {key: array.shape for key, array in both.outputs.items()} == {
        "output": (1, 512, 1024),
        "pooled_output": (1, 1024),
    }
    assert {key: array.shape for key, array in pooled.outputs.items()} == {"pooled_output": (1, 1024)}
    np.testing.assert_array_equal(pooled.outputs["pooled_output"], both.outputs["pooled_output"])


def test_requests_of_a_batch_are_translated_together_and_each_as_it_is_alone(
    systems: Project, client: ModelClient
) -> None:
    alone = sample_arrays(systems, "t5-python")
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


def test_the_page_for_clients_runs_as_it_stands(systems: Project, client: ModelClient, tmp_path: Path) -> None:
    copyfile(systems.root / "model_repos" / "resnet50-onnx" / "sample" / "image.jpg", tmp_path / "dog.jpg")
    printed = run_python(client, folder=tmp_path)
    assert printed["ResNet50: image → top-5"].count("\n") == 15
    for words in commands():
        assert words[0] == "tritonstack"
        files = [str(tmp_path / word) if word == "dog.jpg" else word for word in words[1:]]
        assert systems.run(*files, "--environment", "local").stdout


def test_what_stands_in_is_said_in_status(systems: Project, systems_aws: LocalAws) -> None:
    shown = systems.run("status").stdout
    for word in ("tensorrt", "dali", "tensorflow", "execution environment"):
        assert word in shown
