"""ModelClient against a fake runtime: arrays, images and texts in, arrays and meanings out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.client.fakes import (
    FakeEndpoint,
    FakeTime,
    Reply,
    Request,
    client_account,
    document,
    echo,
    error_reply,
    serving_outputs,
)
from tests.client.systems import DIGEST, ENDPOINTS, ENVIRONMENT, Systems, running_systems
from tests.fake_aws import ARTIFACTS
from tritonstack.client import (
    EndpointUnavailableError,
    ModelClient,
    ModelFailedError,
    RequestRefusedError,
)
from tritonstack.client.invocation import Wait
from tritonstack.errors import InputError

ONE, TWO = "0123456789abcdef", "fedcba9876543210"
OUTPUTS = "/tritonstack/dev/_outputs/serving-text"
X = {"x": np.arange(3, dtype=np.float32)}
NOT_READY = error_reply("ModelNotReadyException", 429)


class Bench:
    """A client with its account, endpoint and clock."""

    def __init__(self, endpoint: FakeEndpoint, *, mode: str = "multi-model") -> None:
        self.endpoint = endpoint
        self.time = FakeTime()
        self.aws = client_account(
            endpoint,
            {
                "/tritonstack/dev/text/bert": ONE,
                "/tritonstack/dev/_artifacts/bucket-name": ARTIFACTS,
                OUTPUTS: serving_outputs(mode),
            },
        )
        self.waits: list[Wait] = []
        self.client = ModelClient(
            environment="dev",
            session=self.aws,
            clock=self.time.clock(),
            on_wait=self.waits.append,
        )

    @property
    def targets(self) -> list[str | None]:
        return [request.target_model for request in self.endpoint.requests]


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint().running() as served:
        yield served


@pytest.fixture
def bench(endpoint: FakeEndpoint) -> Bench:
    return Bench(endpoint)


def test_a_response_names_its_endpoint_model_and_variant(bench: Bench) -> None:
    response = bench.client.invoke("bert", X)
    assert response.outputs["x"].tolist() == [0, 1, 2]
    assert response.target_model == response.model_name == f"bert.{ONE}.tar.gz"
    assert (response.endpoint_name, response.variant, response.attempts) == ("dev-text", "g4dn-xlarge", 1)
    (request,) = bench.endpoint.requests
    assert request.endpoint_name == "dev-text"
    assert response.bytes_sent == len(request.content)
    assert response.bytes_received > 12
    assert response.content_type == request.content_type == "application/json"


def test_a_loading_model_is_waited_for(bench: Bench) -> None:
    bench.endpoint.replies(NOT_READY, NOT_READY, NOT_READY)
    response = bench.client.invoke("bert", X)
    assert response.attempts == 4
    assert bench.time.slept == [0.125, 0.25, 0.5]
    assert response.total_milliseconds == pytest.approx(875)
    assert response.milliseconds == 0, "the pauses are not part of the answered try"
    assert [wait.attempt for wait in bench.waits] == [1, 2, 3]
    assert all("ModelNotReadyException" in wait.message for wait in bench.waits)


@pytest.mark.parametrize("reply", [error_reply("ServiceUnavailable", 503), (503, {}, b"<html>"), (0, {}, b"")])
def test_an_endpoint_that_stays_unavailable_is_tried_nine_times_and_botocore_adds_none(
    bench: Bench, reply: Reply
) -> None:
    bench.endpoint.always(reply)
    with pytest.raises(EndpointUnavailableError, match="9 attempts"):
        bench.client.invoke("bert", X)
    assert len(bench.endpoint.requests) == 9


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (501, 1), (0, 4), (500, 4), (404, 9), (503, 9), (507, 9)])
def test_a_container_s_error_is_retried_by_its_own_status(bench: Bench, status: int, tries: int) -> None:
    bench.endpoint.always(
        error_reply(
            "ModelError", 424, OriginalStatusCode=status, OriginalMessage='{"error":"no"}', LogStreamArn="arn:log"
        )
    )
    with pytest.raises(ModelFailedError) as caught:
        bench.client.invoke("bert", X, ["x"])
    assert len(bench.endpoint.requests) == tries
    assert (caught.value.status, caught.value.container_message) == (status, '{"error":"no"}')
    assert caught.value.log_stream_arn == "arn:log"
    assert f"bert.{ONE}.tar.gz" in str(caught.value)


AB = {"current": "current-g4dn-xlarge", "b": "b-g4dn-xlarge"}


@pytest.mark.parametrize(("written", "sent"), [("b", AB["b"]), (AB["b"], AB["b"]), ("current", AB["current"])])
def test_a_variant_is_named_as_in_the_settings_or_as_at_sagemaker(
    endpoint: FakeEndpoint, written: str, sent: str
) -> None:
    bench = Bench(endpoint, mode="single-model")
    bench.aws.parameters[OUTPUTS] = serving_outputs("single-model", variants=AB)
    assert bench.client.invoke("bert", X, variant=written).variant == sent
    assert bench.client.invoke("bert", X).variant == "g4dn-xlarge"
    assert [(request.variant, request.target_model) for request in endpoint.requests] == [(sent, None), (None, None)]
    assert bench.aws.parameter_reads.count(OUTPUTS) == 1, "mode and variants are read together"


@pytest.mark.parametrize(("variants", "wanted", "allowed"), [(AB, "currant", "current, b"), (None, "a", "g4dn-xlarge")])
def test_a_variant_that_the_endpoint_lacks_is_refused_before_anything_is_sent(
    endpoint: FakeEndpoint, variants: dict[str, str] | None, wanted: str, allowed: str
) -> None:
    bench = Bench(endpoint, mode="single-model")
    bench.aws.parameters[OUTPUTS] = serving_outputs("single-model", variants=variants)
    with pytest.raises(
        InputError, match=f"{wanted}', which endpoint text of environment 'dev' does not have"
    ) as caught:
        bench.client.invoke("bert", X, variant=wanted)
    [problem] = caught.value.problems
    assert (problem.field, problem.allowed) == ("variant", allowed)
    assert ("Did you mean current" in (problem.advice or "")) == (variants is not None)
    assert endpoint.requests == []


def test_a_variant_of_another_type_since_the_last_look_is_read_again(endpoint: FakeEndpoint) -> None:
    bench = Bench(endpoint, mode="single-model")
    bench.aws.parameters[OUTPUTS] = serving_outputs("single-model", variants=AB)
    bench.client.invoke("bert", X, variant="b")
    bench.time.seconds += 1
    bench.aws.parameters[OUTPUTS] = serving_outputs("single-model", variants={**AB, "b": "b-g5-xlarge"})
    endpoint.reply = lambda received: (
        error_reply("ValidationError", 400) if received.variant == AB["b"] else echo(received)
    )
    assert bench.client.invoke("bert", X, variant="b").variant == "b-g5-xlarge"


def gone(archive: str) -> Any:
    """An endpoint that has every archive but one."""

    def reply(request: Request) -> Reply:
        return error_reply("ValidationError", 400) if request.target_model == archive else echo(request)

    return reply


def test_when_the_archive_is_gone_the_record_is_read_again(bench: Bench) -> None:
    bench.client.invoke("bert", X)
    bench.time.seconds += 1
    bench.aws.parameters["/tritonstack/dev/text/bert"] = TWO
    bench.endpoint.reply = gone(f"bert.{ONE}.tar.gz")
    assert bench.client.invoke("bert", X).target_model == f"bert.{TWO}.tar.gz"
    assert bench.targets == [f"bert.{ONE}.tar.gz"] * 2 + [f"bert.{TWO}.tar.gz"]


@pytest.mark.parametrize("name", ["bert", f"text/bert.{ONE}.tar.gz"])
def test_a_refusal_with_an_unchanged_record_is_reported_after_one_look(bench: Bench, name: str) -> None:
    bench.endpoint.reply = gone(f"bert.{ONE}.tar.gz")
    with pytest.raises(RequestRefusedError, match="ValidationError") as caught:
        bench.client.invoke(name, X)
    assert caught.value.code == "ValidationError"
    assert len(bench.endpoint.requests) == 1
    assert bench.time.slept == []
    if name != "bert":
        assert bench.aws.services == ["sagemaker-runtime"], "an archive needs no permission but to invoke"


def test_many_threads_share_one_client_and_each_gets_its_own_response(bench: Bench) -> None:
    start = threading.Barrier(8)
    replies = iter(range(10_000))

    def sometimes(request: Request) -> Reply:
        return error_reply("ServiceUnavailable", 503) if next(replies) % 5 == 0 else echo(request)

    bench.endpoint.reply = sometimes

    def caller(number: int) -> None:
        start.wait(20)
        for turn in range(10):
            value = np.array([number, turn], dtype=np.int64)
            assert bench.client.invoke("bert", {"x": value}).outputs["x"].tolist() == [number, turn]

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(caller, number) for number in range(8)]:
            future.result(60)
    assert bench.aws.parameter_reads == ["/tritonstack/dev/", OUTPUTS], "one read of each serves all threads"
    assert sorted(bench.aws.services) == ["sagemaker-runtime", "ssm"]
    assert len(bench.waits) == len(bench.endpoint.requests) - 80 > 0


def test_aws_settings_that_boto3_cannot_use_are_errors_of_the_user_s_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(InputError, match="region"):
        ModelClient(environment="dev").invoke("text/bert", X)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(InputError, match="nobody"):
        ModelClient(environment="dev")


@pytest.fixture
def systems(tmp_path: Path) -> Iterator[Systems]:
    with running_systems(tmp_path) as running:
        yield running


@pytest.fixture
def client(systems: Systems, tmp_path: Path) -> ModelClient:
    """A client with a cache of its own."""
    return ModelClient(environment=ENVIRONMENT, session=systems.aws, cache_folder=tmp_path / "cache")


def test_an_impossible_request_is_reported_before_anything_is_sent(
    client: ModelClient, systems: Systems, tmp_path: Path
) -> None:
    (tmp_path / "a.jpg").write_bytes(b"no image")
    with pytest.raises(InputError, match="not an image that can be read"):
        client.ask("resnet50-onnx", image=tmp_path / "a.jpg")
    with pytest.raises(InputError, match="not an image that can be read") as caught:
        client.ask("resnet50-onnx", image=b"no image")
    assert [problem.field for problem in caught.value.problems] == ["image"]
    with pytest.raises(InputError, match=r"image=… or text=…"):
        client.ask("resnet50-onnx")
    with pytest.raises(InputError, match="for which the model has no input: input FP32") as caught:
        client.ask("resnet50-onnx", text="house")
    assert [problem.field for problem in caught.value.problems] == ["text"]
    assert systems.endpoint.requests == []


@cases("change")
def test_a_manifest_that_is_none_is_as_good_as_missing(
    client: ModelClient, systems: Systems, change: dict[str, Any] | None
) -> None:
    if change is None:
        systems.aws.artifacts.clear()
    else:
        key = f"manifests/{ENDPOINTS['t5-python']}/24.09-t4/t5-python.{DIGEST}.json"
        systems.aws.artifacts[key] = document(json.loads(systems.aws.artifacts[key]) | change)
    assert client.tensor_table("t5-python") is None
    with pytest.raises(InputError, match="manifest cannot be read"):
        client.ask("t5-python", text="house")
