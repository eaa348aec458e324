"""The example that streams: lints, deploys with its sample verified, and its words arrive one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.project import Project
from tests.e2e.running import running
from tests.examples.copied import EXAMPLES, copied_project
from tritonstack.client import ModelClient, ModelFailedError
from tritonstack.client.body import Array
from tritonstack.errors import InputError
from tritonstack_local.aws import LocalAws

EXAMPLE = EXAMPLES / "streaming"
SAMPLE = EXAMPLE / "model_repos" / "writer" / "sample"
[WORDS] = (each["data"] for each in json.loads((SAMPLE / "answer.json").read_text())["outputs"])
pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the example's files."""
    return copied_project("streaming", tmp_path_factory.mktemp("streaming"))


@pytest.fixture(scope="module")
def aws(project: Project) -> Iterator[LocalAws]:
    """The local AWS with the example deployed: its sample request was verified by the deployment."""
    with running(project) as aws:
        project.run("local", "deploy", "-e", "streaming", timeout=800)
        yield aws


@pytest.fixture
def client(aws: LocalAws, tmp_path: Path) -> ModelClient:
    """A client of the environment."""
    return ModelClient(environment="streaming", session=aws.session(), cache_folder=tmp_path)


def inputs(**more: int) -> dict[str, Array]:
    """The sample's request."""
    given: dict[str, Array] = {
        "MAX_TOKENS": np.array([more.get("most", 12)], np.int32),
        "SEED": np.array([7], np.int64),
    }
    return {"PROMPT": np.array([b"The model"], dtype=object), **given}


def test_it_lints_without_an_error(project: Project) -> None:
    assert ", errors: 0," in project.run("lint", "-e", "streaming").stderr


def test_words_arrive_one_by_one_before_the_last_is_made(client: ModelClient) -> None:
    events = list(client.stream("texts/writer", inputs()))
    assert [event.outputs["TOKEN"] for event in events] == WORDS
    times = [event.milliseconds for event in events]
    assert times == sorted(times)
    assert times[-1] - times[0] > 11 * 0.02 * 1000 / 2, "a word takes 20 ms: they did not come together"


def test_an_error_of_the_model_is_raised_and_another_kind_of_request_refused(client: ModelClient) -> None:
    with pytest.raises(ModelFailedError, match="MAX_TOKENS is 1000; allowed: 1 to 200"):
        list(client.stream("texts/writer", inputs(most=1000)))
    with pytest.raises(InputError, match=r"ModelClient\.stream"):
        client.invoke("texts/writer", inputs())


def test_the_commands_stream_and_verify(project: Project, aws: LocalAws) -> None:
    def errors() -> int:
        [fleet] = [each for one in aws.runtime_status()["endpoints"] for each in one["fleets"] if each["serving"]]
        return int(fleet["errors"])

    before = errors()  # those of the tests before
    here = ("-e", "streaming", "--local")
    printed = project.run("invoke", "texts/writer", *here, "--stream", "--text", "The model").stdout
    assert "30 events: the first after" in printed
    project.run("verify", *here)
    load = ("--users", "2", "--seconds", "2", "--rounds", "1", "--max-rounds", "1")
    measured = project.run("capacity", "bench", "texts/writer", *here, *load, "--json", timeout=300).stdout
    [point] = json.loads(measured)["results"][0]["points"]
    assert (point["stream"]["events"], point["all"]["failed"]) == (len(WORDS), 0)
    assert point["stream"]["first_ms"]["50"] < point["all"]["percentiles_ms"]["50"] / 2
    assert errors() == before
