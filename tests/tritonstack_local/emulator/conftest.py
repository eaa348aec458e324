"""Two emulators for all tests of this folder: one without fleets, one whose runtime the tests play."""

from __future__ import annotations

import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator, make_role
from tritonstack_local.runtime.streaming.event_stream import payload_parts


class EchoingRuntime(http.server.BaseHTTPRequestHandler):
    """Replaces the local runtime: responds to an invocation with its request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Echo the body; headers as JSON in a header of their own; a path with 'fail' gets a model error."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        failing = "fail" in self.path
        self.send_response(424 if failing else 200)
        if failing:
            self.send_header("x-amzn-ErrorType", "ModelError")
            body = json.dumps({"OriginalStatusCode": 400, "OriginalMessage": "no", "Message": "model said no"}).encode()
        self.send_header("Content-Type", self.headers["Content-Type"])
        self.send_header("x-Amzn-Invoked-Production-Variant", "main")
        target = self.headers.get("X-Amzn-SageMaker-Target-Model", "")
        self.send_header("X-Amzn-SageMaker-Custom-Attributes", target)
        if self.path.endswith("invocations-response-stream"):
            self.send_header("X-Amzn-SageMaker-Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number in (b"one", b"two"):
                part = payload_parts(number + body)
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Silence."""


@pytest.fixture(scope="session")
def echoing_runtime() -> Iterator[str]:
    """The URL of a stand-in for the runtime."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EchoingRuntime)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator without fleets: endpoints are InService at once."""
    yield from _running(tmp_path_factory.mktemp("aws"), TRITONSTACK_FLEETS="none")


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """As ``aws``, where permissions are enforced."""
    yield from _running(tmp_path_factory.mktemp("guarded"), TRITONSTACK_FLEETS="none", TRITONSTACK_IAM="on")


@pytest.fixture(scope="session")
def fleets(tmp_path_factory: pytest.TempPathFactory, echoing_runtime: str) -> Iterator[Emulator]:
    """An emulator whose endpoints wait for reports; invocations go to the stand-in for the runtime."""
    yield from _running(tmp_path_factory.mktemp("fleets"), TRITONSTACK_RUNTIME_URL=echoing_runtime)


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def bucket(aws: Emulator, name: str) -> str:
    """A bucket for the inputs and outputs of a processing job, and the role that it runs with."""
    make_role(aws)
    aws.client("s3").create_bucket(Bucket=name)
    return name


def _running(folder: Path, **variables: str) -> Iterator[Emulator]:
    emulator = Emulator(folder, **variables)
    yield emulator.wait_ready()
    assert emulator.stop() == 0, emulator.log.read_text()
    assert not list(emulator.temporary.iterdir()), "temporary files were left behind"


@pytest.fixture
def watching(aws: Emulator, name: str) -> Watching:
    """Metrics and alarms of this test."""
    return Watching(aws, name)
