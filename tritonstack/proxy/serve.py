"""The proxy as a server: listens on loopback until it is interrupted."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.config import Config

from tritonstack.aws_session import Session
from tritonstack.client.model_client import ModelClient
from tritonstack.client.retry import Clock
from tritonstack.http_server import Answer, InvokeError, Manner, Server
from tritonstack.proxy.endpoints import EndpointStates
from tritonstack.proxy.errors import error_answer
from tritonstack.proxy.manifests import Manifests
from tritonstack.proxy.service import MAX_PAYLOAD_BYTES, CallerWatch, Parts, Proxy, log

LAST_REQUESTS_SECONDS = 5.0
"""How long requests on their way may end once the proxy is interrupted."""
RECEIVE_SECONDS = 60.0


def _kserve_error(error: InvokeError) -> Answer:
    """What the server refuses by itself, in KServe's form."""
    return error_answer(error.status, error.message)


KSERVES = Manner(name="proxy", error_answer=_kserve_error, id_header=b"x-tritonstack-request-id")


def make_parts(
    *, environment: str, session: Session, concurrency: int, archives: Path | None, clock: Clock | None = None
) -> Parts:
    """What a proxy works with: nothing is called yet.

    Args:
        environment: whose models.
        session: makes the AWS clients.
        concurrency: how many invocations may be on their way: the size of the connection pool.
        archives: where manifests are looked for that the bucket does not give.
        clock: time and chance.
    """
    watch = CallerWatch()
    client = ModelClient(
        environment=environment, session=session, max_connections=concurrency, clock=clock, on_wait=watch.on_wait
    )
    made: list[Any] = []

    def sagemaker() -> Any:
        if not made:
            config = Config(retries={"total_max_attempts": 2, "mode": "standard"}, connect_timeout=5, read_timeout=20)
            made.append(session.client("sagemaker", config=config))
        return made[0]

    return Parts(
        client=client,
        states=EndpointStates(environment=environment, sagemaker=sagemaker),
        manifests=Manifests(lookup=client, archives=archives),
        watch=watch,
    )


def make_server(proxy: Proxy, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> Server:
    """The HTTP server in front of a proxy; it listens nowhere yet. ``max_payload_bytes``: of a request's body."""
    return Server(
        handle=proxy.handle,
        max_payload_bytes=max_payload_bytes,
        log=log.error,
        receive_seconds=RECEIVE_SECONDS,
        manner=KSERVES,
    )


async def serve(proxy: Proxy, *, port: int, listening: Callable[[int], None]) -> None:
    """Serve on 127.0.0.1 until SIGINT or SIGTERM.

    Args:
        proxy: answers.
        port: 0 takes a free one.
        listening: is told the port once it listens.

    Raises:
        OSError: the port cannot be had.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = make_server(proxy)
    listening(await server.start(port=port))
    await stop.wait()
    await server.stop(seconds=LAST_REQUESTS_SECONDS)
