"""Stand-ins for what the client talks to: a clock, release records, a bucket, and an InvokeEndpoint over real HTTP."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.client.fake_triton import read_request, write_answer
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


def client_error(code: str, message: str = "said so", *, status: int = 400, **members: Any) -> ClientError:
    metadata = {"HTTPStatusCode": status}
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata, **members}
    return ClientError(response, "Operation")


def serving_outputs(mode: str = "multi-model", *, contract: int = 1, variants: dict[str, str] | None = None) -> str:
    """Of a serving stack's outputs parameter: the fields that a client reads, and one that it passes over."""
    fields = {"contract": contract, "minor": 7, "kind": "serving", "mode": mode, "added": "later"}
    return json.dumps({**fields, "variant": "g4dn-xlarge", **({"variants": variants} if variants else {})})


class FakeSsm:
    """Parameters; counts what is read, and fails where a test says so."""

    def __init__(self, parameters: dict[str, str]) -> None:
        self.parameters = parameters
        self.reads: list[str] = []
        self.failure: Exception | None = None
        self.meta = SimpleNamespace(endpoint_url="https://ssm.us-east-1.amazonaws.com")

    def get_parameter(self, *, Name: str) -> dict[str, Any]:  # noqa: N803  (boto3's own spelling)
        self._read(Name)
        if Name not in self.parameters:
            raise client_error("ParameterNotFound")
        return {"Parameter": {"Name": Name, "Value": self.parameters[Name]}}

    def get_paginator(self, operation: str) -> FakeSsm:
        """Only for ``get_parameters_by_path``."""
        assert operation == "get_parameters_by_path"
        return self

    def paginate(self, *, Path: str, Recursive: bool) -> Iterator[dict[str, Any]]:  # noqa: N803
        assert Recursive
        self._read(Path)
        found = [{"Name": n, "Value": v} for n, v in sorted(self.parameters.items()) if n.startswith(Path)]
        for start in range(0, len(found), 2):
            yield {"Parameters": found[start : start + 2]}

    def _read(self, name: str) -> None:
        self.reads.append(name)
        if self.failure is not None:
            raise self.failure


class FakeS3:
    """Objects of one bucket; fails where a test says so."""

    def __init__(self, objects: dict[str, Any]) -> None:
        """Takes key → JSON value, or bytes as they are."""
        self.objects = objects
        self.read: list[str] = []
        self.failure: Exception | None = None

    def get_paginator(self, operation: str) -> FakeS3:
        """Only for ``list_objects_v2``."""
        assert operation == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str, Delimiter: str) -> list[dict[str, Any]]:  # noqa: N803
        assert (Bucket, Delimiter) == ("bucket", "/")
        if self.failure is not None:
            raise self.failure
        rest = [key.removeprefix(Prefix) for key in self.objects if key.startswith(Prefix)]
        return [{"CommonPrefixes": [{"Prefix": f"{Prefix}{p}/"} for p in sorted({r.split("/")[0] for r in rest})]}]

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """The object: as JSON where it is not bytes."""
        assert Bucket == "bucket"
        self.read.append(Key)
        if Key not in self.objects:
            raise client_error("NoSuchKey", status=404)
        found = self.objects[Key]
        return {"Body": io.BytesIO(found if isinstance(found, bytes) else json.dumps(found).encode())}


@dataclass(frozen=True)
class Request:
    """One InvokeEndpoint as it arrived."""

    endpoint_name: str
    target_model: str | None
    content_type: str
    content: bytes
    variant: str | None = None


Reply = tuple[int, dict[str, str], bytes]


def error_reply(code: str, status: int, **members: Any) -> Reply:
    headers = {"Content-Type": "application/json", "x-amzn-errortype": code}
    return status, headers, json.dumps({"Message": f"{code} it is", **members}).encode()


def echo(request: Request) -> Reply:
    """A model that gives its inputs back as outputs."""
    described, arrays = read_request(request.content, request.content_type)
    content, content_type = write_answer(described, arrays, model=request.target_model or "single")
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
        """Answer so, one after the other, then echo."""
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
            wbufsize = -1  # one packet an answer: two would wait for the client's delayed acknowledgement

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                name = self.path.removeprefix("/endpoints/").removesuffix("/invocations")
                target = self.headers["X-Amzn-SageMaker-Target-Model"]
                variant = self.headers["X-Amzn-SageMaker-Target-Variant"]
                request = Request(name, target, self.headers["Content-Type"], content, variant)
                with endpoint._lock:
                    endpoint.requests.append(request)
                status, headers, body = endpoint.reply(request)
                if status == 0:  # the connection ends without an answer
                    self.close_connection = True
                    return
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = "Content-Length" in headers

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


class FakeSession:
    """Gives the fakes, and a real boto3 client for the fake endpoint."""

    def __init__(self, url: str, **clients: Any) -> None:
        """Takes the endpoint's URL and the other services' clients by service name."""
        self.url = url
        self.clients = clients
        self.made: list[str] = []

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        """A client; a service without a fake may not be used."""
        self.made.append(service_name)
        if service_name == "sagemaker-runtime":
            return boto3.client(
                "sagemaker-runtime",
                endpoint_url=self.url,
                region_name="us-east-1",
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=config,
            )
        return self.clients[service_name]
