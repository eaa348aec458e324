"""A tiny HTTP server of the tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

JSON = {"Content-Type": "application/json"}


@contextmanager
def responding(content: bytes, *, status: int = 200, headers: dict[str, str] = JSON) -> Iterator[tuple[int, list[str]]]:
    """Give every request the same response. Yields the port and the request lines, as they come in."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            seen.append(self.requestline)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = respond  # noqa: N815  (names that http.server looks for)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (its name in the base class)
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1], seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
