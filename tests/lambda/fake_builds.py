"""CodeBuild, its logs and CloudFormation beside S3 and SSM, and the two places that listen for an outcome."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from tests import fake_aws as fakes


@dataclass
class FakeBuilds(fakes.FakeAws):
    """As FakeAws, with builds.

    Attributes:
        builds: id → what CodeBuild tells of a build.
        started: idempotency token → id of the build that it started.
        log: the lines of every build's log.
        stack_status: of every stack.
        conflicts: conditional writes that another one is still in the way of.
    """

    builds: dict[str, dict[str, Any]] = field(default_factory=dict)
    started: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    stack_status: str = "UPDATE_IN_PROGRESS"
    conflicts: int = 0

    def end(self, identity: str, status: str, *, phases: list[dict[str, Any]] | None = None) -> None:
        """Let a build end."""
        self.builds[identity] |= {"buildStatus": status, "phases": phases or []}

    def _PutObject(self, Bucket: str, Key: str, Body: Any, IfNoneMatch: str = "") -> dict[str, Any]:
        if IfNoneMatch == "*" and self.conflicts:
            self.conflicts -= 1
            raise fakes.AwsError("ConditionalRequestConflict")
        if IfNoneMatch == "*" and (Bucket, Key) in self.objects:
            raise fakes.AwsError("PreconditionFailed")
        self.objects[Bucket, Key] = Body if isinstance(Body, bytes) else Body.read()  # boto3 makes it a stream
        return {}

    def _StartBuild(
        self,
        projectName: str,
        idempotencyToken: str,
        environmentVariablesOverride: list[dict[str, str]],
    ) -> dict[str, Any]:
        identity = self.started.setdefault(idempotencyToken, f"{projectName}:{len(self.started)}")
        build = {
            "id": identity,
            "buildStatus": "IN_PROGRESS",
            "environment": {"environmentVariables": environmentVariablesOverride},
            "logs": {"groupName": "/log", "streamName": identity, "deepLink": f"https://console/{identity}"},
        }
        known = self.builds.setdefault(identity, build)
        if known["environment"] != build["environment"]:  # API reference: the same token with other parameters
            raise fakes.AwsError("InvalidInputException")
        return {"build": known}

    def _BatchGetBuilds(self, ids: list[str]) -> dict[str, Any]:
        return {"builds": [self.builds[each] for each in ids if each in self.builds]}

    def _GetLogEvents(self, limit: int, startFromHead: bool, **_: Any) -> dict[str, Any]:
        assert not startFromHead
        return {"events": [{"message": f"{line}\n"} for line in self.log[-limit:]]}

    def _DescribeStacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackName": StackName, "StackStatus": self.stack_status}]}


@dataclass
class Listener:
    """Presigned URLs: what was put to each, and with which status they answer.

    Attributes:
        url: of the server.
        heard: path → the documents, in order.
        answers: path → the status to answer with; 200 where it is not named.
    """

    url: str
    heard: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)


@contextmanager
def listening() -> Iterator[Listener]:
    """A server on the loopback interface until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = listener.answers.get(self.path, 200)
            if status == 200:
                listener.heard.setdefault(self.path, []).append({**body, "type": self.headers["Content-Type"]})
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    listener = Listener(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield listener
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
