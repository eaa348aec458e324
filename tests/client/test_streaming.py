"""ModelClient.stream: events in parts that are cut anywhere, errors within a stream, and what is tried again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.client.fakes import (
    FakeEndpoint,
    FakeTime,
    Reply,
    client_account,
    document,
    error_reply,
    serving_outputs,
    stream_reply,
)
from tests.fake_aws import ARTIFACTS
from tritonstack.client import (
    EndpointUnavailableError,
    MalformedResponseError,
    ModelClient,
    ModelFailedError,
    RequestRefusedError,
    StreamBrokenError,
)
from tritonstack.client.streaming import data_of_events, generate_body
from tritonstack.errors import InputError
from tritonstack_local.runtime.streaming.event_stream import exception, message, payload_parts

WORDS = {"PROMPT": np.array([b"Sch\xc3\xb6n"], dtype=object)}


def event(word: str, **more: Any) -> bytes:
    """A response of the model as Triton writes it."""
    return b"data: " + document({"model_name": "writer", "model_version": "1", "TEXT": word, **more}) + b"\n\n"


class Bench:
    """A client of an endpoint that streams, and of one that does not."""

    def __init__(self, endpoint: FakeEndpoint) -> None:
        self.endpoint, self.time = endpoint, FakeTime()
        self.aws = client_account(
            endpoint,
            {
                "/tritonstack/dev/text/writer": "0123456789abcdef",
                "/tritonstack/dev/images/digits": "0123456789abcdef",
                "/tritonstack/dev/_artifacts/bucket-name": ARTIFACTS,
                "/tritonstack/dev/_outputs/serving-text": serving_outputs("single-model", streams=True),
                "/tritonstack/dev/_outputs/serving-images": serving_outputs(),
            },
        )
        self.client = ModelClient(environment="dev", session=self.aws, clock=self.time.clock())

    def words(self, **options: Any) -> list[Any]:
        """What the model streams."""
        return [each.outputs["TEXT"] for each in self.client.stream("text/writer", WORDS, **options)]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with FakeEndpoint().running() as endpoint:
        yield Bench(endpoint)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_events_are_joined_of_parts_that_are_cut_at_any_byte(ending: bytes) -> None:
    said = ["Schön", "ein \U0001f600", "data: no event"]
    stream = b": a comment\n" + b"".join(event(word) for word in said) + b"event: x\ndata: {\ndata: }\n\n"
    stream = stream.replace(b"\n", ending)
    wanted = list(data_of_events([stream]))
    assert [json.loads(each).get("TEXT") for each in wanted] == [*said, None]
    for first in range(len(stream)):
        for second in (first, first + 1, len(stream)):
            assert list(data_of_events([stream[:first], stream[first:second], stream[second:]])) == wanted


def test_a_stream_that_ends_within_an_event_is_no_response() -> None:
    for cut in (event("one")[:-1], event("one") + b"data: {", b"data: \xff\n\n"):
        with pytest.raises(MalformedResponseError):
            list(data_of_events([cut]))


def test_events_have_outputs_and_the_time_since_the_request_was_sent(bench: Bench) -> None:
    bench.endpoint.always(stream_reply(payload_parts(event("one")[:9]), payload_parts(event("one")[9:] + event("two"))))
    first, second = bench.client.stream("text/writer", WORDS, parameters={"max_tokens": 2})
    assert (first.outputs, second.outputs) == ({"TEXT": "one"}, {"TEXT": "two"})
    assert (first.model_name, first.model_version, first.milliseconds) == ("writer", "1", 0.0)
    [request] = bench.endpoint.requests
    assert (request.endpoint_name, request.streamed, request.target_model) == ("dev-text", True, None)
    assert json.loads(request.content) == {"PROMPT": "Schön", "max_tokens": 2}
    assert request.content_type == "application/json"


def test_a_request_has_flat_lists_and_scalars_by_name() -> None:
    body = generate_body({"x": np.arange(4, dtype=np.float32).reshape(2, 2), "n": np.array([7])}, {"greedy": True})
    assert json.loads(body.content) == {"x": [0, 1, 2, 3], "n": 7, "greedy": True}
    for inputs, parameters in (
        ({"x": np.zeros(1, dtype=np.float16)}, {}),
        ({"id": np.zeros(1)}, {}),
        ({"x": np.zeros(1)}, {"x": 1}),
        ({"x": np.array([np.inf])}, {}),
    ):
        with pytest.raises(InputError):
            generate_body(inputs, parameters)


def test_an_error_event_is_the_models_failure_after_the_events_before_it(bench: Bench) -> None:
    bench.endpoint.always(stream_reply(payload_parts(event("one") + b'data: {"error":"out of words"}\n\n')))
    stream = bench.client.stream("text/writer", WORDS)
    assert next(stream).outputs == {"TEXT": "one"}
    with pytest.raises(ModelFailedError, match="out of words") as caught:
        next(stream)
    assert caught.value.status == 200
    assert len(bench.endpoint.requests) == 1
    bench.endpoint.always(stream_reply(payload_parts(event("one", error="an output of that name"))))
    assert bench.words() == ["one"]


def as_event(code: str) -> bytes:
    """An error of a stream that is no exception to botocore, which drops its members then."""
    return message({":event-type": code, ":message-type": "event"}, document({"Message": f"{code} it is"}))


@pytest.mark.parametrize("code", ["ModelStreamError", "InternalStreamFailure"])
@pytest.mark.parametrize(
    ("form", "says"),
    [(lambda code: exception(code, {"Message": f"{code} it is"}), "it is"), (as_event, "the stream ended with it")],
)
def test_a_broken_stream_is_not_tried_again_after_its_first_event(
    code: str, form: Any, says: str, bench: Bench
) -> None:
    bench.endpoint.replies(stream_reply(payload_parts(event("one")), form(code)))
    stream = bench.client.stream("text/writer", WORDS)
    assert next(stream).outputs == {"TEXT": "one"}
    with pytest.raises(StreamBrokenError, match=f"dev-text: {code}: .*{says}") as caught:
        next(stream)
    assert caught.value.code == code
    assert (len(bench.endpoint.requests), bench.time.slept) == (1, [])


PART = payload_parts(event("one"))
CUT = (200, {**stream_reply()[1], "Transfer-Encoding": "chunked"}, b"%x\r\n%b\r\n" % (len(PART), PART))


def test_a_lost_connection_breaks_a_stream(bench: Bench) -> None:
    bench.endpoint.always(CUT)
    stream = bench.client.stream("text/writer", WORDS)
    assert next(stream).outputs == {"TEXT": "one"}
    with pytest.raises(StreamBrokenError, match="the connection was lost"):
        next(stream)


@pytest.mark.parametrize(
    ("reply", "tries"),
    [
        (error_reply("ServiceUnavailable", 503), 9),
        (stream_reply(exception("InternalStreamFailure", {"Message": "m"})), 9),
        (stream_reply(exception("ModelStreamError", {"Message": "m"})), 4),
        ((0, {}, b""), 9),
    ],
)
def test_before_the_first_event_a_request_is_tried_again(reply: Reply, tries: int, bench: Bench) -> None:
    bench.endpoint.replies(reply, stream_reply(payload_parts(event("one"))))
    assert bench.words() == ["one"]
    assert len(bench.time.slept) == 1
    bench.endpoint.requests.clear()
    bench.endpoint.always(reply)
    with pytest.raises(EndpointUnavailableError, match=f"{tries} attempts"):
        bench.words()
    assert len(bench.endpoint.requests) == tries


def test_what_triton_refuses_before_the_first_event_is_an_error_of_the_request(bench: Bench) -> None:
    bench.endpoint.always(error_reply("ModelError", 424, OriginalStatusCode=400, OriginalMessage="wrong shape"))
    with pytest.raises(ModelFailedError, match="wrong shape"):
        bench.words()
    first = error_reply("ModelError", 424, OriginalStatusCode=400, OriginalMessage='data: {"error":"no words"}\n\n')
    bench.endpoint.always(first)
    with pytest.raises(ModelFailedError) as caught:
        bench.words()
    assert (caught.value.status, caught.value.container_message) == (400, '{"error":"no words"}')
    bench.endpoint.always(error_reply("AccessDeniedException", 403))
    with pytest.raises(RequestRefusedError):
        bench.words()


def test_an_endpoint_without_events_is_named_with_its_setting(bench: Bench) -> None:
    bench.endpoint.always(stream_reply(payload_parts(b"{}"), content_type="application/json"))
    with pytest.raises(MalformedResponseError, match="inference_type: generate_stream"):
        bench.words()


def test_models_are_called_in_the_way_that_their_endpoint_responds_before_anything_is_sent(bench: Bench) -> None:
    with pytest.raises(InputError, match=r"images, which does not stream[\s\S]*without --stream"):
        bench.client.stream("images/digits", WORDS)
    with pytest.raises(InputError, match=r"text, which streams[\s\S]*ModelClient\.stream"):
        bench.client.invoke("text/writer", WORDS)
    with pytest.raises(InputError, match="serves its current archive alone"):
        bench.client.stream("text/writer.0123456789abcdef.tar.gz", WORDS)
    assert bench.endpoint.requests == []


def test_a_stream_of_no_event_is_none(bench: Bench) -> None:
    bench.endpoint.always(stream_reply())
    assert bench.words() == []


def test_the_latency_of_a_stream_is_counted_at_its_end(bench: Bench) -> None:
    bench.aws.responses = {"cloudwatch.PutMetricData": {}}
    client = ModelClient(environment="dev", session=bench.aws, clock=bench.time.clock(), latency_metric=True)
    bench.endpoint.always(stream_reply(payload_parts(event("one"))))
    assert [each.outputs for each in client.stream("text/writer", WORDS)] == [{"TEXT": "one"}]
    assert client.publish_latencies() == 1
