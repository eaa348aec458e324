"""Triton's response cache, switched on as an endpoint's settings render it, and what it does to requests."""

from __future__ import annotations

import contextlib
import http.client
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tritonstack_local.container.conftest import SageMaker
from tritonstack.config.container import ContainerSettings as Settings
from tritonstack_local.container import ContainerSettings, TritonContainer

METRICS_PORT = 8002
CACHED = "response_cache { enable: true }\n"
COUNTER = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.runs = 0

    def execute(self, requests):
        self.runs += len(requests)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("n", np.array([self.runs], np.int32))]) for _ in requests]
"""
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [1] } ]
output [ { name: "n" data_type: TYPE_INT32 dims: [1] } ]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [1] } ]
output [ { name: "n" data_type: TYPE_INT32 dims: [1] } ]
ensemble_scheduling { step [ { model_name: "counter" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "n" value: "n" } } ] }
"""


@contextlib.contextmanager
def started(folder: Path, **settings: Any) -> Iterator[SageMaker]:
    """A multi-model container with the variables that these settings of an endpoint give it."""
    rendered = Settings(allow_metrics=True, **settings).rendered(multi_model=True, release="24.09")
    container = ContainerSettings(environment=rendered, multi_model=True, release="24.09")
    with TritonContainer.start(container, folder=folder) as running:
        running.wait_ready(60)
        yield SageMaker(running)


@pytest.fixture(scope="module")
def caching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMaker]:
    with started(tmp_path_factory.mktemp("caching"), response_cache_bytes=2**20) as made:
        yield made


def counter(*, config: str = "", ensemble: str | None = None) -> dict[str, str | Path]:
    """A model that returns the number of its runs; ``ensemble``: the configuration of an ensemble around it."""
    files: dict[str, str | Path] = {"counter/config.pbtxt": CONFIG + config, "counter/1/model.py": COUNTER}
    if ensemble is not None:
        files |= {"whole/config.pbtxt": ENSEMBLE + ensemble, "whole/1/.keep": ""}
    return files


def runs(server: SageMaker, name: str, *values: float) -> list[int]:
    """Responses to requests with these values, one after another."""
    return [server.invoke(name, x=("FP32", [1], [value])).outputs["n"][0] for value in values]


def hits(server: SageMaker, name: str) -> tuple[int, int]:
    """What Triton counted of a model: hits and misses."""
    connection = http.client.HTTPConnection("container")
    connection.sock = server.container._enclosure.connect(METRICS_PORT)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    counted = dict(
        re.findall(rf'^nv_cache_num_(hits|misses)_per_model{{model="{name}[^}}]*}} (\d+)', text, re.MULTILINE)
    )
    return int(counted["hits"]), int(counted["misses"])


@pytest.mark.parametrize(
    "make",
    [lambda: counter(config=CACHED), lambda: counter(ensemble=CACHED)],
    ids=["a model", "an ensemble, whose step does not run"],
)
def test_a_repeated_request_is_served_from_the_cache(
    caching: SageMaker, request: pytest.FixtureRequest, make: Callable[[], Any]
) -> None:
    name = re.sub(r"\W", "", request.node.callspec.id)
    assert caching.load(name, make()).status == 200
    assert runs(caching, name, 1.0, 1.0, 2.0, 1.0, 2.0) == [1, 1, 2, 1, 2]
    assert hits(caching, name) == (3, 2)


def test_a_model_that_does_not_enable_the_cache_runs_each_time(caching: SageMaker) -> None:
    assert caching.load("plain", counter()).status == 200
    assert runs(caching, "plain", 1.0, 1.0) == [1, 2]


def test_a_model_that_enables_a_cache_which_the_container_lacks_is_served_without_a_word(tmp_path: Path) -> None:
    """What the lint rule response-cache-off is about."""
    with started(tmp_path) as server:
        assert server.load("alone", counter(config=CACHED)).status == 200
        assert runs(server, "alone", 1.0, 1.0) == [1, 2]


def test_an_ensembles_cache_passes_over_the_state_of_a_step_and_refuses_a_decoupled_one(caching: SageMaker) -> None:
    """The first is what the lint rule response-cache-ensemble warns of, the second what response-cache reports."""
    sequences = counter(config="sequence_batching { direct { } }\n", ensemble=CACHED)
    assert caching.load("sequences", sequences).status == 200
    body = {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}],
        "parameters": {"sequence_id": 5, "sequence_start": True},
    }
    responses = [caching.call("POST", "/models/sequences/invoke", body, "sequences.tar.gz") for _ in range(2)]
    assert [response.outputs["n"] for response in responses] == [[1], [1]], "the step ran once"
    decoupled = counter(config="model_transaction_policy { decoupled: true }\n", ensemble=CACHED)
    assert "Response Cache does not currently support model" in caching.load("decoupled", decoupled).text


def test_responses_outlive_an_unloaded_model(caching: SageMaker) -> None:
    assert caching.load("evicted", counter(config=CACHED)).status == 200
    assert runs(caching, "evicted", 1.0, 2.0) == [1, 2]
    assert caching.unload("evicted").status == 200
    assert caching.load("evicted", counter(config=CACHED)).status == 200
    assert runs(caching, "evicted", 2.0, 3.0) == [2, 1]
