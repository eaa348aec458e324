"""An account, a clock, and an InvokeEndpoint over real HTTP for a client."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.client.fake_triton import read_request, write_response
from tests.fake_aws import FakeAws
from tritonstack.client.invocation import Clock


@dataclass
class FakeTime:
    """A clock that only sleeping, or a test, moves; its chance is always the same."""

    seconds: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def clock(self, chance: float = 0.0) -> Clock:
        return Clock(now=lambda: self.seconds, sleep=self.sleep, chance=lambda: chance)


def serving_outputs(
    mode: str = "multi-model", *, contract: int = 1, variants: dict[str, str] | None = None, streams: bool = False
) -> str:
    """Of a serving stack's outputs parameter: the fields that a client reads, and one that it passes over."""
    fields = {"contract": contract, "minor": 7, "kind": "serving", "mode": mode, "added": "later"}
    fields |= {"streams": True} if streams else {}
    return json.dumps({**fields, "variant": "g4dn-xlarge", **({"variants": variants} if variants else {})})


def client_account(endpoint: FakeEndpoint, parameters: Mapping[str, str]) -> FakeAws:
    """An account with parameters, whose InvokeEndpoint is ``endpoint``."""
    return FakeAws(parameters=dict(parameters), urls={"sagemaker-runtime": endpoint.url})


def document(value: Any) -> bytes:
    """A JSON object's bytes."""
    return json.dumps(value).encode()


@dataclass(frozen=True)
class Request:
    """One InvokeEndpoint as it arrived."""

    endpoint_name: str
    target_model: str | None
    content_type: str
    content: bytes
    variant: str | None = None
    streamed: bool = False


Reply = tuple[int, dict[str, str], bytes]


def error_reply(code: str, status: int, **members: Any) -> Reply:
    headers = {"Content-Type": "application/json", "x-amzn-errortype": code}
    return status, headers, json.dumps({"Message": f"{code} it is", **members}).encode()


def stream_reply(*messages: bytes, content_type: str = "text/event-stream; charset=utf-8") -> Reply:
    """A stream of these messages."""
    headers = {
        "Content-Type": "application/vnd.amazon.eventstream",
        "X-Amzn-SageMaker-Content-Type": content_type,
        "x-Amzn-Invoked-Production-Variant": "g4dn-xlarge",
    }
    return 200, headers, b"".join(messages)


def echo(request: Request) -> Reply:
    """A model that returns its inputs as outputs."""
    described, arrays = read_request(request.content, request.content_type)
    content, content_type = write_response(described, arrays, model=request.target_model or "single")
    variant = request.variant or "g4dn-xlarge"
    return 200, {"Content-Type": content_type, "x-Amzn-Invoked-Production-Variant": variant}, content


class FakeEndpoint:
    """InvokeEndpoint on a loopback port. ``reply`` decides; what came is in ``requests``."""

    def __init__(self) -> None:
        self.reply: Callable[[Request], Reply] = echo
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[FakeEndpoint]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def always(self, reply: Reply) -> None:
        self.reply = lambda _: reply

    def replies(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        """Respond so, one after the other, then echo."""
        left = list(replies)

        def next_reply(request: Request) -> Reply:
            with self._lock:
                reply = left.pop(0) if left else echo
            return reply(request) if callable(reply) else reply

        self.reply = next_reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet a response: two would wait for the client's delayed acknowledgement

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                name, _, operation = self.path.removeprefix("/endpoints/").rpartition("/")
                target = self.headers["X-Amzn-SageMaker-Target-Model"]
                variant = self.headers["X-Amzn-SageMaker-Target-Variant"]
                streamed = operation == "invocations-response-stream"
                request = Request(name, target, self.headers["Content-Type"], content, variant, streamed)
                with endpoint._lock:
                    endpoint.requests.append(request)
                status, headers, body = endpoint.reply(request)
                if status == 0:  # the connection ends without a response
                    self.close_connection = True
                    return
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                framed = bool({"Content-Length", "Transfer-Encoding"} & headers.keys())
                if not framed:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = framed

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler
