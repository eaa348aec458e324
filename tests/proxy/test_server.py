"""The proxy over HTTP: paths of KServe v2, responses, threads, refusals."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import NoCredentialsError
from tritonclient.http import InferenceServerClient, InferenceServerException, InferInput, InferRequestedOutput

from tests.cases import cases
from tests.client.fakes import FakeEndpoint, Reply, Request, echo, error_reply, serving_outputs
from tests.proxy.world import DIGEST, World
from tritonstack.proxy.errors import HttpError
from tritonstack.proxy.server import Route, read_route


@cases("method, path, route")
def test_a_path_is_read_as_its_route(method: str, path: str, route: Route) -> None:
    assert read_route(method.encode(), path.encode()) == route


@cases("method, path, status, words")
def test_any_other_path_is_refused_with_the_reason(method: str, path: str, status: int, words: str) -> None:
    with pytest.raises(HttpError, match=words) as raised:
        read_route(method.encode(), path.encode())
    assert raised.value.status == status


ARRAY = np.array([[0.5, 1, 2, 3]], np.float32)


@pytest.fixture
def world() -> Iterator[World]:
    with FakeEndpoint().running() as endpoint:
        world = World(endpoint)
        with world.serving():
            yield world


@pytest.fixture
def client(world: World) -> InferenceServerClient:
    """Triton's own client, given the address alone."""
    return InferenceServerClient(world.url)


def pixels(array: Any = ARRAY, *, binary: bool = True) -> list[InferInput]:
    given = InferInput("pixels", list(array.shape), "FP32")
    given.set_data_from_numpy(array, binary_data=binary)
    return [given]


def request(
    world: World, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, Any, http.client.HTTPMessage]:
    """A request of a client that is none of Triton's: status, JSON (None without a body), headers."""
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None, response.headers
    finally:
        connection.close()


@pytest.mark.parametrize(("binary", "wanted"), [(True, None), (True, False), (False, True), (False, None)])
def test_arrays_go_and_come_in_both_formats(
    world: World, client: InferenceServerClient, *, binary: bool, wanted: bool | None
) -> None:
    outputs = None if wanted is None else [InferRequestedOutput("pixels", binary_data=wanted)]
    response = client.infer("digits-onnx", pixels(binary=binary), outputs=outputs)
    np.testing.assert_array_equal(response.as_numpy("pixels"), ARRAY)
    assert response.get_response()["model_name"] == "digits-onnx"
    (incoming,) = world.endpoint.requests
    assert (incoming.endpoint_name, incoming.target_model) == ("dev-digits", f"digits-onnx.{DIGEST}.tar.gz")
    assert incoming.content_type.startswith("application/vnd.sagemaker-triton") is binary


def test_live_ready_and_metadata_of_the_server(world: World, client: InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    metadata = client.get_server_metadata()
    assert metadata["name"] == "tritonstack-proxy"
    assert "binary_tensor_data" in metadata["extensions"]
    assert "statistics" not in metadata["extensions"], "perf_analyzer would ask for figures that nobody has"
    with pytest.raises(InferenceServerException, match="makes none up"):
        client.get_inference_statistics("digits-onnx")
    world.aws.refused["ssm"] = NoCredentialsError()
    assert client.is_server_ready(), "records that were read before are good for a minute"


def test_without_credentials_the_server_is_live_and_not_ready(world: World, client: InferenceServerClient) -> None:
    world.aws.refused["ssm"] = NoCredentialsError()
    assert client.is_server_live()
    assert not client.is_server_ready()
    with pytest.raises(InferenceServerException, match="renew the AWS credentials") as raised:
        client.infer("digits-onnx", pixels())
    assert raised.value.status() == "503"
    world.aws.refused = {"GetParametersByPath": "AccessDeniedException"}
    assert client.is_server_ready(), "whoever may not list reaches models by endpoint"
    assert client.infer("digits/digits-onnx", pixels()).as_numpy("pixels") is not None
    with pytest.raises(InferenceServerException, match="name the endpoint too"):
        client.infer("digits-onnx", pixels())


def test_a_model_is_ready_where_its_endpoint_responds(world: World, client: InferenceServerClient) -> None:
    world.aws.states = {"dev-digits": "Updating", "dev-lone": "Creating"}
    assert client.is_model_ready("digits-onnx")
    assert not client.is_model_ready("alone")
    assert not client.is_model_ready("nothing")
    status, response, _ = request(world, "GET", "/v2/models/alone/ready")
    assert (status, response) == (503, {"error": "endpoint dev-lone is Creating"})


def test_an_ensemble_s_steps_have_addresses_for_their_configurations_alone(client: InferenceServerClient) -> None:
    config = client.get_model_config("digits/pixels")
    assert config["platform"] == "ensemble"
    (step,) = config["ensemble_scheduling"]["step"]
    assert step["model_name"] == "digits/pixels.decode"
    assert client.get_model_config(step["model_name"])["backend"] == "python"
    assert client.get_model_metadata("pixels.decode") == {
        "name": "pixels.decode",
        "versions": [],
        "platform": "python",
        "inputs": [{"name": "image", "datatype": "BYTES", "shape": [-1, 1]}],
        "outputs": [{"name": "out", "datatype": "FP32", "shape": [-1, 4]}],
    }
    with pytest.raises(InferenceServerException, match="has no step 'other'; it has decode, pixels"):
        client.get_model_config("pixels.other")
    with pytest.raises(InferenceServerException, match=r"there can be no model 'pixels\.decode'"):
        client.infer("pixels.decode", pixels())


def test_an_ambiguous_name_and_a_version_that_did_not_respond_are_refused(client: InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException, match="digits/both, other/both") as raised:
        client.infer("both", pixels())
    assert raised.value.status() == "400"
    assert client.infer("other/both", pixels()).get_response()["model_name"] == "other/both"
    assert client.infer("digits-onnx", pixels(), model_version="1").get_response()["model_version"] == "1"
    with pytest.raises(InferenceServerException, match=r"cannot choose one, and .* chooses 1"):
        client.infer("digits-onnx", pixels(), model_version="2")
    with pytest.raises(InferenceServerException, match="'two' is no number"):
        client.get_model_config("digits-onnx", model_version="two")


def test_an_unknown_name_is_404_with_near_ones(client: InferenceServerClient) -> None:
    calls: list[Callable[[str], Any]] = [lambda name: client.infer(name, pixels()), client.get_model_config]
    for call in calls:
        with pytest.raises(InferenceServerException, match=r"Did you mean digits-onnx\?") as raised:
            call("digits-onix")
        assert raised.value.status() == "404"
    with pytest.raises(InferenceServerException, match="there can be no model 'No_Name'") as raised:
        client.get_model_metadata("No_Name")
    assert raised.value.status() == "404"


def test_a_single_model_endpoint_is_invoked_without_a_target_model(world: World, client: InferenceServerClient) -> None:
    world.aws.parameters["/tritonstack/dev/_outputs/serving-lone"] = serving_outputs("single-model")

    def single(incoming: Request) -> Reply:
        return error_reply("ValidationError", 400) if incoming.target_model else echo(incoming)

    world.endpoint.reply = single
    np.testing.assert_array_equal(client.infer("alone", pixels()).as_numpy("pixels"), ARRAY)
    client.infer("alone", pixels())
    assert [incoming.target_model is None for incoming in world.endpoint.requests] == [True, True]


def test_a_model_that_streams_is_refused_before_anything_is_sent(world: World, client: InferenceServerClient) -> None:
    world.aws.parameters["/tritonstack/dev/_outputs/serving-lone"] = serving_outputs("single-model", streams=True)
    with pytest.raises(InferenceServerException, match=r"^.400. .*lone, which streams.*ModelClient\.stream"):
        client.infer("lone/alone", pixels())
    assert world.endpoint.requests == []


def test_a_model_that_loads_is_waited_for(world: World, client: InferenceServerClient) -> None:
    world.endpoint.replies(*[error_reply("ModelNotReadyException", 429)] * 3)
    np.testing.assert_array_equal(client.infer("digits-onnx", pixels()).as_numpy("pixels"), ARRAY)
    assert len(world.endpoint.requests) == 4
    assert len(world.time.slept) == 3


def test_triton_s_refusal_is_passed_on_and_not_repeated(world: World, client: InferenceServerClient) -> None:
    words = json.dumps({"error": "unexpected shape for input 'pixels'"})
    world.endpoint.always(error_reply("ModelError", 424, OriginalStatusCode=400, OriginalMessage=words))
    with pytest.raises(InferenceServerException, match=r"^.400. unexpected shape for input 'pixels'$"):
        client.infer("digits-onnx", pixels())
    assert len(world.endpoint.requests) == 1


def test_a_body_beyond_the_limit_is_413_in_kserve_s_form(world: World) -> None:
    status, response, _ = request(world, "POST", "/v2/models/digits-onnx/infer", bytes(1_000_001))
    assert (status, response) == (413, {"error": "HTTP content length exceeded 1000000 bytes."})
    assert world.endpoint.requests == []


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example:8000"}, {"Host": "a"}])
def test_a_web_page_reaches_nothing(world: World, headers: dict[str, str]) -> None:
    assert request(world, "POST", "/v2/models/digits-onnx/infer", b"{}", headers)[0] == 403
    assert request(world, "GET", "/v2/health/live", headers=headers)[0] == 403
    assert world.endpoint.requests == []


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_a_program_on_this_machine_gets_a_response(world: World, host: str) -> None:
    assert request(world, "GET", "/v2/health/live", headers={"Host": host})[0] == 200


def test_a_fault_of_the_proxy_is_reported_as_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.proxy.server.kserve_answer", lambda *_, **__: 1 / 0)
    status, response, _ = request(world, "POST", "/v2/models/digits-onnx/infer", b'{"inputs": []}')
    assert status == 500
    assert response["error"].startswith("The proxy failed: ZeroDivisionError")


def test_a_client_that_disconnects_ends_its_own_tries_alone(world: World) -> None:
    """Its thread is free again; the call of another goes on."""
    incoming, gone = threading.Event(), threading.Event()

    def not_ready(_incoming: Request) -> Reply:
        incoming.set()
        assert gone.wait(20)
        return error_reply("ModelNotReadyException", 429)

    world.endpoint.replies(not_ready)
    proxy = world.proxy(concurrency=1)
    from tritonstack.loopback.http_server import Request as HttpRequest
    from tritonstack.proxy.server import read_route

    sent = HttpRequest(method=b"POST", path=b"/", headers={}, body=b'{"inputs": []}', received=0, id="1")
    route = read_route(b"POST", b"/v2/models/digits-onnx/infer")
    responses = []
    thread = threading.Thread(target=lambda: responses.append(proxy.answer(route, sent)))
    thread.start()
    assert incoming.wait(20)
    sent.sender.gone = True
    gone.set()
    thread.join(20)
    assert [response.status for response in responses] == [503]
    assert b"no longer waits" in responses[0].body
    assert len(world.endpoint.requests) == 1, "no second try for nobody"
    assert proxy.answer(route, sent).status == 503
    assert len(world.endpoint.requests) == 1, "nor a first one"


def test_no_more_calls_are_on_their_way_than_allowed() -> None:
    arrived, go_on = threading.Semaphore(0), threading.Event()
    most, now, lock = 0, 0, threading.Lock()

    def counted(incoming: Request) -> Reply:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        arrived.release()
        assert go_on.wait(20)
        with lock:
            now -= 1
        return echo(incoming)

    body = json.dumps({"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}).encode()
    statuses = []
    with FakeEndpoint().running() as endpoint:
        endpoint.reply = counted
        world = World(endpoint)
        with world.serving(concurrency=3):

            def call() -> None:
                statuses.append(request(world, "POST", "/v2/models/digits-onnx/infer", body)[0])

            threads = [threading.Thread(target=call) for _ in range(9)]
            for thread in threads:
                thread.start()
            for _ in range(3):
                assert arrived.acquire(timeout=20)
            ready = request(world, "GET", "/v2/models/digits-onnx/ready")[0]
            assert ready == 200, "other questions do not wait behind inference"
            go_on.set()
            for thread in threads:
                thread.join(20)
    assert statuses == [200] * 9
    assert most == 3
