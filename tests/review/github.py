"""A stand-in for the part of GitHub's REST API that a comment needs, on loopback. It is no GitHub."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"
TOKEN = "t0ken"
LONGEST = 65_536


@dataclass
class StandIn:
    """What it holds and what it was asked.

    Attributes:
        address: of its API.
        comments: of pull request 7 of ``owner/name``, oldest first.
        asked: method and path of each request.
        answer: a status to answer to everything, as a token without permission gets; None answers as it should.
    """

    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    answer: int | None = None

    def add(self, body: str, *, author: str = BOT) -> None:
        """A comment that is there already."""
        self.comments.append({"id": 100 + len(self.comments), "user": {"login": author}, "body": body})

    def answered(self, method: str, url: str, body: dict[str, Any] | None, token: str) -> tuple[int, Any]:
        """Status and document."""
        parts = urlsplit(url)
        self.asked.append(f"{method} {parts.path}")
        if self.answer is not None or token != f"Bearer {TOKEN}":
            return self.answer or 401, {"message": "Resource not accessible by integration"}
        if body is not None and len(body["body"]) > LONGEST:
            return 422, {"message": f"body is too long (maximum is {LONGEST} characters)"}
        if parts.path == "/repos/owner/name/issues/7/comments" and method == "GET":
            query = {name: int(values[0]) for name, values in parse_qs(parts.query).items()}
            start = (query["page"] - 1) * query["per_page"]
            return 200, self.comments[start : start + query["per_page"]]
        if parts.path == "/repos/owner/name/issues/7/comments" and method == "POST" and body is not None:
            self.add(body["body"])
            return 201, self.comments[-1]
        prefix = "/repos/owner/name/issues/comments/"
        mine = [each for each in self.comments if parts.path == f"{prefix}{each['id']}"]
        if method == "PATCH" and mine and body is not None:
            mine[0]["body"] = body["body"]
            return 200, mine[0]
        return 404, {"message": "Not Found"}


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """A stand-in that runs."""
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, document = state.answered(self.command, self.path, body, self.headers.get("Authorization", ""))
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = _do  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
