"""The example of nine instances on one GPU: lints, builds tiny, and both models respond from one local Triton."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.project import Project
from tests.e2e.running import running
from tests.examples.copied import EXAMPLES, copied_project
from tests.systems.answers import sample_arrays
from tritonstack.client import ModelClient
from tritonstack.models.model_config import read_config
from tritonstack_local.aws import LocalAws

EXAMPLE = EXAMPLES / "one-gpu"
INSTANCES = {"distilgpt2": 2, "bert": 7}
pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the example's files, whose builds are tiny."""
    project = copied_project("one-gpu", tmp_path_factory.mktemp("one-gpu"))
    file = project.root / "environments/one-gpu.yaml"
    text, tiny = file.read_text(), "builds: {size: tiny, weights: random, on_deploy: true}"
    assert "builds: {on_deploy: true}" in text
    file.write_text(text.replace("builds: {on_deploy: true}", tiny))
    return project


@pytest.fixture(scope="module")
def aws(project: Project) -> Iterator[LocalAws]:
    with running(project) as aws:
        project.run("local", "deploy", "-e", "one-gpu", timeout=800)
        yield aws


def test_it_lints_without_an_error(project: Project) -> None:
    assert ", errors: 0," in project.run("lint", "-e", "one-gpu").stderr


@pytest.mark.parametrize(("model", "count"), INSTANCES.items())
def test_its_instances_are_on_the_first_gpu(model: str, count: int) -> None:
    [group] = read_config((EXAMPLE / "model_repos" / model / model / "config.pbtxt").read_text()).node.nodes(
        "instance_group"
    )
    assert (group.integer("count"), group.integers("gpus")) == (count, (0,))


def test_both_models_respond_from_one_container(project: Project, aws: LocalAws, tmp_path: Path) -> None:
    client = ModelClient(environment="one-gpu", session=aws.session(), cache_folder=tmp_path)
    outputs = {model: client.invoke(f"texts/{model}", sample_arrays(client, f"texts/{model}")) for model in INSTANCES}
    shapes = {model: response.outputs for model, response in outputs.items()}
    assert shapes["bert"]["pooled_output"].shape == (1, 768)
    assert shapes["distilgpt2"]["logits"].shape == (1, 50257)
    longer = np.array([[464, 2156, 318, 7932, 13]] * 2, dtype=np.int64)
    assert client.invoke("texts/distilgpt2", {"input_ids": longer}).outputs["logits"].shape == (2, 50257)
    [fleet] = [each for one in aws.runtime_status()["endpoints"] for each in one["fleets"] if each["serving"]]
    assert len(fleet["models"]) == len(INSTANCES), "one container has both"
