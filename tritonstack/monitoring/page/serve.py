"""The page over HTTP, for this machine alone, drawn anew at every load."""

from __future__ import annotations

import http.server
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from tritonstack.errors import TritonstackError

HOST = "127.0.0.1"


def make_server(draw: Callable[[], str], *, port: int) -> http.server.ThreadingHTTPServer:
    """A server of one page on loopback; ``port`` 0 takes a free one. Raises OSError where the port is taken."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers ``GET /`` of this machine's own browsers."""

        def do_GET(self) -> None:
            """The page; 403 for another site's name, which may have been led here; 502 where metrics fail."""
            host, _, _ = self.headers.get("Host", "").partition(":")
            if host not in {HOST, "localhost"}:
                self._answer(HTTPStatus.FORBIDDEN, "this server answers for 127.0.0.1 alone\n", kind="text/plain")
            elif self.path != "/":
                self._answer(HTTPStatus.NOT_FOUND, "there is one page: /\n", kind="text/plain")
            else:
                try:
                    self._answer(HTTPStatus.OK, draw(), kind="text/html")
                except TritonstackError as error:
                    self._answer(HTTPStatus.BAD_GATEWAY, f"{error}\n", kind="text/plain")

        def _answer(self, status: HTTPStatus, text: str, *, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
            """Nothing: one line a minute says nothing."""

    server = http.server.ThreadingHTTPServer((HOST, port), Handler)
    server.daemon_threads = True
    return server
