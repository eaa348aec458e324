"""A Price List over real HTTP, so that the real boto3 asks, signs, waits and tries again. Its prices are made up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class PriceListServer:
    """What it answers: documents by region, in pages; before them, once each, errors."""

    url: str = ""  # where it listens
    documents: dict[str, list[str]] = field(default_factory=dict)  # region → documents
    page: int = 100  # products of a page
    refusals: list[str] = field(default_factory=list)  # codes of errors that are answered first
    refused_region: str | None = None  # the one that they are answered for; None: any
    requests: list[dict[str, Any]] = field(default_factory=list)  # what was asked
    signed_for: set[str] = field(default_factory=set)  # regions of the requests' signatures

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of GetProducts."""
        self.requests.append(request)
        wanted = {row["Field"]: row["Value"] for row in request["Filters"]}
        if self.refusals and self.refused_region in (None, wanted["regionCode"]):
            code = self.refusals.pop(0)
            return 400, {"__type": code, "message": f"{code} of the test"}
        found = self.documents.get(wanted["regionCode"], [])
        start = int(request.get("NextToken", 0))
        end = start + self.page
        more = {"NextToken": str(end)} if end < len(found) else {}
        return 200, {"FormatVersion": "aws_v1", "PriceList": found[start:end], **more}


@contextmanager
def running() -> Iterator[PriceListServer]:
    """The server on a free loopback port."""
    prices = PriceListServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"prices": prices}))
    prices.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield prices
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    prices: PriceListServer

    def do_POST(self) -> None:
        """AWS JSON 1.1."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["X-Amz-Target"] == "AWSPriceListService.GetProducts"
        self.prices.signed_for.add(self.headers["Authorization"].split("/")[2])
        status, body = self.prices.answer(request)
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Silence."""
