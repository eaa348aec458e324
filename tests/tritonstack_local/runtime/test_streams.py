"""InvokeEndpointWithResponseStream through boto3, over a container whose response comes in parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.tritonstack_local.runtime.fake_triton import EVENTS, GENERATED
from tests.tritonstack_local.runtime.fakes import Stage, asynchronous, config, stage, until
from tritonstack.loopback.http_server import InvokeError

GENERATES = {"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream"}


@dataclass
class Parts:
    """Parts that a container sends, each once the test lets it: ``pass_on``."""

    parts: list[bytes]
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    sent: int = 0

    def pass_on(self, count: int = 1) -> None:
        """Let it send."""
        for _ in range(count):
            self.gate.release()

    async def __call__(self) -> AsyncIterator[bytes]:
        """The container's response."""
        for part in self.parts:
            await self.gate.acquire()
            self.sent += 1
            yield part


def single(**changes: Any) -> Any:
    """A single-model endpoint's config."""
    return config(multi_model=False, **changes)


async def begin(at: Stage, **arguments: Any) -> dict[str, Any]:
    """Begin a stream through boto3, in a thread."""
    found: dict[str, Any] = await asyncio.to_thread(
        at.client.invoke_endpoint_with_response_stream, EndpointName="e", Body=b"{}", **arguments
    )
    return found


async def following(stream: Any) -> bytes | None:
    """The next part of a stream; None at its end."""
    event = await asyncio.to_thread(next, stream, None)
    return None if event is None else bytes(event["PayloadPart"]["Bytes"])


@pytest.mark.parametrize("environment", [{}, GENERATES])
@asynchronous
async def test_parts_arrive_while_the_model_goes_on_and_count_as_in_flight(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with stage(tmp_path, single(environment=environment)) as at:
        at.triton.streamed = parts = Parts([b"data: 1\n\n", b"data: 2", b"\n\n"])
        parts.pass_on()
        response = await begin(at, ContentType="application/json", Accept="text/event-stream")
        assert (response["ContentType"], response["InvokedProductionVariant"]) == (EVENTS.decode(), "g4dn-xlarge")
        stream = iter(response["Body"])
        assert await following(stream) == b"data: 1\n\n"
        assert (parts.sent, at.fleet().in_flight, at.fleet().metrics.requests) == (1, 1, 0)
        parts.pass_on(2)
        rest = [await following(stream), await following(stream), await following(stream)]
        assert b"".join(part for part in rest if part) == b"data: 2\n\n"
        await until(lambda: at.fleet().in_flight == 0)
        assert (at.fleet().metrics.requests, at.fleet().metrics.errors) == (1, 0)
        [headers] = at.triton.headers
        assert (headers[b"content-type"], headers[b"accept"]) == (b"application/json", b"text/event-stream")


@asynchronous
async def test_a_container_that_generates_responds_to_invoke_endpoint_with_all_events(tmp_path: Path) -> None:
    async with stage(tmp_path, single(environment=GENERATES)) as at:
        assert at.triton.containers[0].single_model_path == GENERATED
        at.triton.streamed = parts = Parts([b"data: 1\n\n", b"data: 2\n\n"])
        parts.pass_on(2)
        response = await at.boto3(EndpointName="e", Body=b"{}")
        assert (response["Body"], response["ContentType"]) == (b"data: 1\n\ndata: 2\n\n", EVENTS.decode())


@asynchronous
async def test_an_error_before_the_first_part_is_an_error_of_the_request(tmp_path: Path) -> None:
    async with stage(tmp_path, single()) as at:
        at.triton.statuses["invocations"] = 400
        with pytest.raises(ClientError) as caught:
            await begin(at)
        error: dict[str, Any] = {**caught.value.response}
        assert (error["Error"]["Code"], error["OriginalStatusCode"]) == ("ModelError", 400)
        assert "answers 400" in error["OriginalMessage"]
        assert (at.fleet().in_flight, at.fleet().metrics.errors) == (0, 1)


async def broken(at: Stage) -> None:
    """The container dies."""
    await at.triton.containers[0].die()


async def nothing(_at: Stage) -> None:
    """The container sends nothing more."""


@pytest.mark.parametrize(
    ("happens", "message"),
    [(broken, "closed before the response ended"), (nothing, "did not finish the response within 2 seconds")],
    ids=["dies", "hangs"],
)
@asynchronous
async def test_a_stream_that_does_not_end_ends_with_sagemakers_error_event(
    happens: Callable[[Stage], Any], message: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, single(), stream_seconds=2.0) as at:
        at.triton.streamed = parts = Parts([b"data: 1\n\n", b"data: 2\n\n"])
        parts.pass_on()
        stream = iter((await begin(at))["Body"])
        assert await following(stream) == b"data: 1\n\n"
        fleet = at.fleet()
        await happens(at)
        with pytest.raises(EventStreamError, match=message) as caught:  # botocore drops the member ErrorCode
            await following(stream)
        assert caught.value.response["Error"]["Code"] == "ModelStreamError"
        await until(lambda: fleet.in_flight == 0)
        assert fleet.metrics.errors == 1


@asynchronous
async def test_a_multi_model_endpoint_has_no_streams_since_the_operation_names_no_model(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        with pytest.raises(ClientError, match="is missing a target model header"):
            await begin(at)


@asynchronous
async def test_a_stream_needs_both_actions_and_a_request_one(tmp_path: Path) -> None:
    async with stage(tmp_path, single()) as at:
        at.triton.streamed = parts = Parts([b"data: 1\n\n"])
        parts.pass_on()
        assert b"".join([event["PayloadPart"]["Bytes"] for event in (await begin(at))["Body"]])
        stream = "sagemaker:InvokeEndpointWithResponseStream"
        assert at.authority.actions == ["sagemaker:InvokeEndpoint", stream]
        at.triton.streamed = None
        await at.boto3(EndpointName="e", Body=b"{}")
        assert at.authority.actions[2:] == ["sagemaker:InvokeEndpoint"]
        at.authority.refused["testing"] = InvokeError("AccessDeniedException", 403, "not authorized")
        await asyncio.sleep(1.1)  # a decision is kept for a second
        with pytest.raises(ClientError, match="not authorized"):
            await begin(at)


@asynchronous
async def test_a_stream_whose_client_is_gone_is_read_to_its_end_and_counted_once(tmp_path: Path) -> None:
    async with stage(tmp_path, single()) as at:
        at.triton.streamed = parts = Parts([b"data: 1\n\n", b"data: 2\n\n"])
        parts.pass_on()
        response = await begin(at)
        assert await following(iter(response["Body"])) == b"data: 1\n\n"
        response["Body"].close()
        parts.pass_on()
        await until(lambda: at.fleet().in_flight == 0)
        assert (parts.sent, at.fleet().metrics.requests, at.fleet().metrics.errors) == (2, 1, 0)


@asynchronous
async def test_a_client_that_reads_slowly_holds_the_container_back(tmp_path: Path) -> None:
    large = b"x" * (1 << 20)
    async with stage(tmp_path, single()) as at:
        at.triton.streamed = parts = Parts([large] * 64)
        parts.pass_on(64)
        response = await begin(at)
        await asyncio.sleep(0.5)
        assert parts.sent < 60
        length = await asyncio.to_thread(lambda: sum(len(each["PayloadPart"]["Bytes"]) for each in response["Body"]))
        assert length == 64 * len(large)
