"""The load generator's HTTP client: one request, signed by botocore, sent again and again over open connections."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from tritonstack.client.body import Body
from tritonstack.client.errors import InvokeTarget
from tritonstack.untrusted.foreign_text import parse_json


@dataclass(frozen=True, kw_only=True)
class ReadyRequest:
    """A POST as it is sent; headers are signed where the endpoint requires it."""

    url: str
    headers: Mapping[str, str]
    body: bytes


Prepare = Callable[[], ReadyRequest]
"""Makes the request; called again when a signature grows old. May block."""


# botocore serialises, resolves the address and signs as for any request; a handler of its event ``before-send`` takes
# the signed request and returns a response in its place. So none of this is implemented again here, and none of it is
# done under load: the same request is sent until its signature expires (AWS accepts one for 15 minutes, SageMaker for
# 5 after its date: docs, «AWS Signature Version 4 for API requests»).
#
# Why not an asynchronous boto3: aiobotocore pins the one botocore that it patches (3.10.0 wants 1.43.117), and this
# project's is newer.
EVENT = "before-send.sagemaker-runtime"
FRESH_SECONDS = 60.0
"""How long one signature is used."""


class SignedRequests:
    """Makes the requests of one client. A client is given to it alone: it sends nothing from then on."""

    def __init__(self, runtime: Any) -> None:
        """``runtime``: a boto3 ``sagemaker-runtime`` client."""
        self._runtime = runtime
        self._taken: list[AWSPreparedRequest] = []
        runtime.meta.events.register_first(EVENT, self._take)

    def make(self, target: InvokeTarget, body: Body, *, streamed: bool = False) -> ReadyRequest:
        """A request signed now, for a ``streamed`` response or a whole one.

        Raises botocore's errors where credentials or the region are missing.
        """
        named = {"TargetModel": target.target_model} if target.target_model else {}
        runtime = self._runtime
        send = runtime.invoke_endpoint_with_response_stream if streamed else runtime.invoke_endpoint
        send(EndpointName=target.endpoint_name, Body=body.content, ContentType=body.content_type, **named)
        prepared = self._taken.pop()
        headers = {
            name: value.decode("latin-1") if isinstance(value, bytes) else str(value)
            for name, value in prepared.headers.items()
        }
        return ReadyRequest(url=str(prepared.url), headers=headers, body=body.content)

    def _take(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        self._taken.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), _Raw())


class _Raw(io.BytesIO):
    """An empty response, with the one method that botocore wants besides."""

    def stream(self, *_: Any, **__: Any) -> Any:
        """Nothing."""
        return iter(())


OpenSocket = Callable[[], socket.socket]
"""Gives a socket that is not connected; for what lies in a network of its own."""
PAUSE_SECONDS = 1.0
"""The least between two signatures, where making one takes long."""
SHOWN = 160
"""Characters of an answer that is none."""
_HASH = re.compile(r"([0-9a-f]{6})[0-9a-f]{10,}")
"""Digest of an archive or its folder: cut, to leave room for the message."""


class HttpCaller:
    """Sends one request; keeps its last response."""

    def __init__(self, session: aiohttp.ClientSession, request: ReadyRequest) -> None:
        """Use ``http_caller``."""
        self._session = session
        self.request = request
        self.last: tuple[bytes, str] | None = None

    async def __call__(self) -> str | None:
        """One request. None for status 200, else in a few words what came."""
        request = self.request
        try:
            async with self._session.post(request.url, data=request.body, headers=request.headers) as answer:
                content = await answer.read()
                if answer.status == 200:
                    self.last = content, answer.headers.get("Content-Type", "")
                    return None
                return f"{answer.status}: {words_of(content)}"
        except TimeoutError:
            return "no response in time"
        except aiohttp.ClientError as error:
            return f"{type(error).__name__}: {error}"[:SHOWN]


@asynccontextmanager
async def http_caller(
    prepare: Prepare,
    *,
    connections: int,
    timeout_seconds: float,
    open_socket: OpenSocket | None = None,
    proxies: bool = False,
    kind: type[HttpCaller] = HttpCaller,
) -> AsyncIterator[HttpCaller]:
    """Sends what ``prepare`` makes, which is made anew in a thread each minute.

    Args:
        prepare: makes the request.
        connections: the most that are open at once.
        timeout_seconds: after which a request is given up.
        open_socket: where the address is reached by sockets of its own.
        kind: makes the caller: another class where responses are streams.
        proxies: go through the proxy that the shell names; never for what is on this machine.
    """
    connector = aiohttp.TCPConnector(
        limit=connections,
        keepalive_timeout=60,
        socket_factory=None if open_socket is None else lambda _address: _nonblocking(open_socket),
    )
    options: dict[str, Any] = {
        "connector": connector,
        "timeout": aiohttp.ClientTimeout(total=timeout_seconds),
        "auto_decompress": False,
        "skip_auto_headers": ("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        "trust_env": proxies,
        "cookie_jar": aiohttp.DummyCookieJar(),
    }
    async with aiohttp.ClientSession(**options) as session:
        caller = kind(session, await asyncio.to_thread(prepare))
        refreshing = asyncio.create_task(_refresh(caller, prepare))
        try:
            yield caller
        finally:
            refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refreshing


async def _refresh(caller: HttpCaller, prepare: Prepare) -> None:
    made = time.monotonic()
    while True:
        await asyncio.sleep(max(PAUSE_SECONDS, made + FRESH_SECONDS - time.monotonic()))
        made = time.monotonic()
        caller.request = await asyncio.to_thread(prepare)


def _nonblocking(open_socket: OpenSocket) -> socket.socket:
    made = open_socket()
    made.setblocking(False)
    return made


def words_of(content: bytes) -> str:
    """Message of an error response: SageMaker's, or of a model's failure the container's."""
    text = content.decode(errors="replace")
    for name in ("OriginalMessage", "Message", "message", "error"):
        try:
            told = parse_json(text)
        except ValueError:
            break
        text = str(told.get(name, text)) if isinstance(told, dict) else text
    return _HASH.sub(r"\1…", text)[:SHOWN]
