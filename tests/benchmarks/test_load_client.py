"""The load client against a small server: right answers, wrong answers, lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from benchmarks.load_client import (
    Target,
    WrongAnswerError,
    connect_loopback,
    http_request,
    latencies,
    open_connections,
    throughput,
)

REQUEST = http_request("/path", b"body", {"X-Name": "value"})


class TinyServer:
    """Answers each request with what ``reply`` gives for its number; None closes the connection."""

    def __init__(self, reply: Callable[[int], bytes | None]) -> None:
        self.reply = reply
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        while True:
            try:
                self.requests.append(await reader.readexactly(len(REQUEST)))
            except asyncio.IncompleteReadError:
                break
            answer = self.reply(len(self.requests))
            if answer is None:
                break
            writer.write(answer)
        writer.close()


def answer(status: str, body: bytes) -> bytes:
    """A whole HTTP answer."""
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def run_against(server: TinyServer, calls: int, callers: int = 1) -> tuple[list[float], float]:
    """Latencies of ``calls`` calls and a short throughput of ``callers``."""

    async def both() -> tuple[list[float], float]:
        async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            target = Target(
                name="it", connect=lambda: connect_loopback(port), request=REQUEST, right=lambda body: body == b"right"
            )
            connections = await open_connections(target, callers)
            try:
                times = await latencies(target, connections[0], calls=calls)
                return times, await throughput(target, connections, seconds=0.05)
            finally:
                for connection in connections:
                    connection.close()

    return asyncio.run(both())


@pytest.mark.parametrize(
    "wrong",
    [answer("200 OK", b"wrong"), answer("500 Internal Server Error", b"right"), None],
    ids=["wrong body", "wrong status", "closed"],
)
def test_calls_are_timed_on_one_connection_and_a_wrong_answer_ends_the_measurement(wrong: bytes | None) -> None:
    good = TinyServer(lambda _: answer("200 OK", b"right"))
    times, rate = run_against(good, calls=20)
    assert (len(times), min(times) > 0, rate > 0, good.connections) == (20, True, True, 1)
    server = TinyServer(lambda number: answer("200 OK", b"right") if number < 5 else wrong)
    with pytest.raises(WrongAnswerError):
        run_against(server, calls=20)
