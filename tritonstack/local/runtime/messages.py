"""HTTP requests and answers as the runtime passes them on: plain, with no copy of the body."""

from __future__ import annotations

import json
from typing import Any

Headers = dict[bytes, bytes]


class Sender:
    """Who is at the other end of a connection. ``gone``: nobody any more, so no answer will be read."""

    __slots__ = ("gone",)

    def __init__(self) -> None:
        """There is somebody."""
        self.gone = False


class Request:
    """A request that arrived whole. Header names are lower case."""

    __slots__ = ("body", "headers", "id", "method", "path", "received", "sender")

    def __init__(
        self,
        *,
        method: bytes,
        path: bytes,
        headers: Headers,
        body: bytes,
        received: float,
        id: str,  # noqa: A002
        sender: Sender | None = None,
    ) -> None:
        """``received`` is the monotonic time of its first byte, in seconds."""
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.received = received
        self.id = id
        self.sender = sender or Sender()


class Answer:
    """An answer: status, headers (lower case names) and body."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        """Takes the three parts as they are."""
        self.status = status
        self.headers = headers
        self.body = body

    @classmethod
    def of_json(cls, value: Any, *, status: int = 200) -> Answer:
        """An answer with a JSON body."""
        return cls(status, {b"content-type": b"application/json"}, json.dumps(value).encode())
