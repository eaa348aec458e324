"""The client: signed requests of botocore, each sent once; responses, failures, time-outs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import boto3
import pytest
from aiohttp import web
from botocore.config import Config

from tritonstack.client.body import Body
from tritonstack.client.errors import InvokeTarget
from tritonstack_capacity.bench.http_caller import ReadyRequest, SignedRequests, http_caller

BODY = Body(content=b"\x00\x01body", content_type="application/vnd.sagemaker-triton.binary+json;json-header-size=2")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def signed(target_model: str | None) -> ReadyRequest:
    """A request to an address without a listener."""
    runtime = boto3.client(
        "sagemaker-runtime",
        region_name="eu-west-1",
        endpoint_url="http://127.0.0.1:1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    return SignedRequests(runtime).make(InvokeTarget(endpoint_name="prod-bert", target_model=target_model), BODY)


def test_botocore_makes_the_request_and_sends_nothing() -> None:
    made = signed("bert.0123456789abcdef.tar.gz")

    assert made.url == "http://127.0.0.1:1/endpoints/prod-bert/invocations"
    assert made.body == BODY.content
    assert made.headers["Content-Type"] == BODY.content_type
    assert made.headers["X-Amzn-SageMaker-Target-Model"] == "bert.0123456789abcdef.tar.gz"
    assert "/eu-west-1/sagemaker/aws4_request" in made.headers["Authorization"]
    assert "X-Amzn-SageMaker-Target-Model" not in signed(None).headers, "of a single-model endpoint"


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server of the test's own; its address."""
    app = web.Application()
    app.router.add_post("/endpoints/prod-bert/invocations", handler)
    runner = web.AppRunner(app, handler_cancellation=True)  # a caller who gave up is not waited for
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/endpoints/prod-bert/invocations"
    finally:
        await runner.cleanup()


def ready(url: str) -> ReadyRequest:
    return ReadyRequest(url=url, headers={**signed("x.tar.gz").headers}, body=BODY.content)


async def one_call(handler: Handler, *, timeout_seconds: float = 10.0) -> tuple[str | None, tuple[bytes, str] | None]:
    async with (
        serving(handler) as url,
        http_caller(lambda: ready(url), connections=1, timeout_seconds=timeout_seconds) as caller,
    ):
        return await caller(), caller.last


def test_a_right_response_is_kept_with_its_type() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert await request.read() == BODY.content
        assert request.headers["Content-Type"] == BODY.content_type
        return web.Response(body=b"answer", headers={"Content-Type": "application/x"})

    assert asyncio.run(one_call(handler)) == (None, (b"answer", "application/x"))


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            {"OriginalStatusCode": 500, "OriginalMessage": '{"error":"no input x"}', "Message": "Received"},
            "424: no input x",
        ),
        ({"Message": "Model is not ready"}, "424: Model is not ready"),
        (["not", "so"], '424: ["not", "so"]'),
        (
            {"error": f"/opt/ml/models/{'0123456789abcdef' * 2}/model is bad"},
            "424: /opt/ml/models/012345…/model is bad",
        ),
        ({"Message": "x" * 1000}, f"424: {'x' * 160}"),
    ],
    ids=["the container's words", "SageMaker's words", "other JSON", "a hash", "many words"],
)
def test_a_failure_is_reported_in_its_own_words(failure: object, message: str) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(failure, status=424)

    assert asyncio.run(one_call(handler)) == (message, None)


def test_a_request_without_a_response_is_given_up() -> None:
    async def handler(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    assert asyncio.run(one_call(handler, timeout_seconds=0.2))[0] == "no response in time"
