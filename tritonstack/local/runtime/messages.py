"""HTTP requests and answers as the runtime passes them on: plain, with no copy of the body."""

from __future__ import annotations

import json
from typing import Any

Headers = dict[bytes, bytes]


class Request:
    """A request that arrived whole. Header names are lower case."""

    __slots__ = ("body", "headers", "id", "method", "path", "received")

    def __init__(self, *, method: bytes, path: bytes, headers: Headers, body: bytes, received: float, id: str) -> None:  # noqa: A002
        """``received`` is the monotonic time of its first byte, in seconds."""
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.received = received
        self.id = id


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
