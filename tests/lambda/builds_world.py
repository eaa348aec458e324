"""An account with a builds stack: CodeBuild, engine jobs, and the URLs of the wait handle and of the response."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from tests import fake_aws

# `lambda` is a keyword: an import statement cannot name the folder.
stack_events: Any = importlib.import_module("tests.lambda.stack_events")
clients: Any = importlib.import_module("lambda.shared.clients")
wait: Any = importlib.import_module("lambda.model_builds.wait")
order: Any = importlib.import_module("lambda.model_builds.order")
ended_build: Any = importlib.import_module("lambda.model_builds.ended_build")

PREFIX = "endpoints/digits/24.09-t4/"
RECORDS = "/tritonstack/local/digits/"
A, B, C = "a" * 16, "b" * 16, "c" * 16
PAGE = 2
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN_MINUTES = 5
"""How long CodeBuild keeps an idempotency token (API reference, StartBuild)."""
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-digits/1"
STARTED_BY = "TRITONSTACK_STARTED_BY"


@dataclass
class FakeBuilds(fake_aws.FakeAws):
    """As FakeAws, with builds.

    Attributes:
        builds: id → a build as BatchGetBuilds describes it.
        started: idempotency token → id of the build that it started.
        log: the lines of every build's log.
        stack_status: of every stack.
        minutes: since the account began.
    """

    builds: dict[str, dict[str, Any]] = field(default_factory=dict)
    started: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    stack_status: str = "UPDATE_IN_PROGRESS"
    stack: Any = field(default_factory=lambda: stack_events.StackEvents(STACK))
    minutes: int = 0

    def end(self, identity: str, status: str, *, phases: list[dict[str, Any]] | None = None) -> None:
        """End a build."""
        self.builds[identity] |= {"buildStatus": status, "phases": phases or []}

    def _StartBuild(
        self,
        projectName: str,
        idempotencyToken: str,
        environmentVariablesOverride: list[dict[str, str]],
    ) -> dict[str, Any]:
        expired = self.started.get(idempotencyToken) and self._age(self.started[idempotencyToken]) >= TOKEN_MINUTES
        if expired:
            del self.started[idempotencyToken]
        identity = self.started.setdefault(idempotencyToken, f"{projectName}:{len(self.builds)}")
        build = {
            "id": identity,
            "startTime": BEGAN + timedelta(minutes=self.minutes),
            "buildStatus": "IN_PROGRESS",
            "environment": {"environmentVariables": environmentVariablesOverride},
            "logs": {
                "groupName": "/log",
                "streamName": identity.partition(":")[2],
                "deepLink": f"https://console/{identity}",
            },
        }
        known = self.builds.setdefault(identity, build)
        if known["environment"] != build["environment"]:  # API reference: the same token with other parameters
            raise fake_aws.AwsError("InvalidInputException")
        return {"build": known}

    def _age(self, identity: str) -> float:
        """Minutes since a build began."""
        age: timedelta = BEGAN + timedelta(minutes=self.minutes) - self.builds[identity]["startTime"]
        return age / timedelta(minutes=1)

    def _ListBuildsForProject(self, projectName: str, sortOrder: str, nextToken: str = "0") -> dict[str, Any]:
        assert sortOrder == "DESCENDING"
        ids = [identity for identity in self.builds if identity.startswith(f"{projectName}:")]
        ids.sort(key=lambda identity: self.builds[identity]["startTime"], reverse=True)
        start = int(nextToken)
        page: dict[str, Any] = {"ids": ids[start : start + PAGE]} if ids else {}
        return page | ({"nextToken": str(start + PAGE)} if start + PAGE < len(ids) else {})

    def _BatchGetBuilds(self, ids: list[str]) -> dict[str, Any]:
        return {"builds": [self.builds[each] for each in ids if each in self.builds]}

    def _GetLogEvents(self, limit: int, startFromHead: bool, **_: Any) -> dict[str, Any]:
        assert not startFromHead
        return {"events": [{"message": f"{line}\n"} for line in self.log[-limit:]]}

    def _DescribeStackEvents(self, **given: str) -> dict[str, Any]:
        self.stack.becomes(self.stack_status)
        page: dict[str, Any] = self.stack.respond(**given)
        return page


@dataclass
class FakeEngines(FakeBuilds):
    """As FakeBuilds, with the engine project's builds and processing jobs.

    Attributes:
        jobs: name → status, begin and variables of a processing job.
        stopped: what was stopped, in order.
        ends: jobs that complete when they get a request to stop.
        unstoppable: jobs and builds that the services refuse to stop.
    """

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    ends: set[str] = field(default_factory=set)
    unstoppable: set[str] = field(default_factory=set)

    def begin(self, identity: str, *, minutes: int = 0) -> None:
        """Begin a build."""
        build = {"id": identity, "buildStatus": "IN_PROGRESS", "startTime": BEGAN + timedelta(minutes=minutes)}
        self.builds[identity] = {**build, "environment": {"environmentVariables": []}}

    def begin_engine_build(self, identity: str, *, of: str | None, minutes: int, status: str = "IN_PROGRESS") -> None:
        """Begin an engine's build."""
        self.begin(identity, minutes=minutes)
        variables = [] if of is None else [{"name": STARTED_BY, "value": of}]
        self.builds[identity] |= {"buildStatus": status, "environment": {"environmentVariables": variables}}

    def begin_job(self, name: str, *, of: str | None, minutes: int = 5, status: str = "InProgress") -> None:
        """Begin a processing job."""
        variables = {} if of is None else {STARTED_BY: of}
        began = BEGAN + timedelta(minutes=minutes)
        self.jobs[name] = {"status": status, "began": began, "variables": variables}

    def _StopBuild(self, id: str) -> dict[str, Any]:  # noqa: A002 - as the API spells it
        if id in self.unstoppable:
            raise fake_aws.AwsError("InternalServerError")
        self.stopped.append(id)
        self.builds[id]["buildStatus"] = "STOPPED"
        return {"build": self.builds[id]}

    def _ListProcessingJobs(
        self,
        NameContains: str,
        StatusEquals: str,
        CreationTimeAfter: datetime,
        NextToken: str = "0",
    ) -> dict[str, Any]:
        names = [
            name
            for name, job in self.jobs.items()
            if NameContains in name and job["status"] == StatusEquals and job["began"] > CreationTimeAfter
        ]
        start = int(NextToken)
        page: dict[str, Any] = {
            "ProcessingJobSummaries": [{"ProcessingJobName": name} for name in names[start : start + PAGE]]
        }
        return page | ({"NextToken": str(start + PAGE)} if start + PAGE < len(names) else {})

    def _DescribeProcessingJob(self, ProcessingJobName: str) -> dict[str, Any]:
        job = self.jobs[ProcessingJobName]
        description = {"ProcessingJobName": ProcessingJobName, "ProcessingJobStatus": job["status"]}
        return {**description, **({"Environment": job["variables"]} if job["variables"] else {})}

    def _StopProcessingJob(self, ProcessingJobName: str) -> dict[str, Any]:
        job = self.jobs[ProcessingJobName]
        if ProcessingJobName in self.ends:
            job["status"] = "Completed"
        if ProcessingJobName in self.unstoppable or job["status"] != "InProgress":
            raise fake_aws.AwsError("ValidationException")
        self.stopped.append(ProcessingJobName)
        job["status"] = "Stopping"
        return {}


@dataclass
class Listener:
    """Presigned URLs: what was put to each, and the status of the responses.

    Attributes:
        url: of the server.
        documents: path → those that were put there, in order.
        statuses: path → status of its responses; 200 of all others.
    """

    url: str
    documents: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)


@contextmanager
def listening() -> Iterator[Listener]:
    """A server on the loopback interface until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = listener.statuses.get(self.path, 200)
            if status == 200:
                listener.documents.setdefault(self.path, []).append({**body, "type": self.headers["Content-Type"]})
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

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


class World:
    """An account with a builds stack, and a serving stack that CloudFormation deploys."""

    def __init__(self, listener: Any) -> None:
        self.aws, self.listener = FakeBuilds(), listener
        self.clients = clients.Aws(self.aws.client)
        self.place = wait.Place("artifacts", "project", "/tritonstack/local/")

    @property
    def signals(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.listener.documents.get("/handle", [])
        return found

    @property
    def builds(self) -> list[str]:
        return list(self.aws.builds)

    def publish(self, *names: str) -> None:
        for name in names:
            self.aws.artifacts[f"{PREFIX}{name}.tar.gz"] = b"archive"

    def build_set(self, models: dict[str, str]) -> dict[str, Any]:
        return {
            "schema": 1,
            "environment": "local",
            "endpoint": "digits",
            "platform": {"release": "24.09", "gpu": "T4"},
            "archives": [{"model": name, "digest": models[name], "dependency": "engine"} for name in sorted(models)],
        }

    def event(self, request: str, models: dict[str, str], *, request_id: str = "request") -> dict[str, Any]:
        self.aws.buckets["staging"]["set.build-set"] = json.dumps(self.build_set(models)).encode()
        event = {
            "RequestType": request,
            "ResourceType": "Custom::ModelBuilds",
            "StackId": STACK,
            "RequestId": request_id,
            "LogicalResourceId": "WaitStart",
            "ResponseURL": f"{self.listener.url}/answer",
            "ResourceProperties": {
                "BuildSetBucket": "staging",
                "BuildSetKey": "set.build-set",
                "WaitHandle": f"{self.listener.url}/handle",
                "Of": "local/digits",
            },
        }
        self.aws.stack.becomes(self.aws.stack_status)
        self.aws.stack.begins(event)
        return event

    def request(self, request: str, models: dict[str, str], *, request_id: str = "request") -> dict[str, str]:
        event = self.event(request, models, request_id=request_id)
        done: dict[str, str] = order.requested(event, aws=self.clients, place=self.place)
        return done

    def order(self) -> dict[str, Any]:
        """The one order, found as the build finds it."""
        [build] = self.aws.builds.values()
        variables = {each["name"]: each["value"] for each in build["environment"]["environmentVariables"]}
        bucket, _, key = variables["TRITONSTACK_ORDER"].removeprefix("s3://").partition("/")
        found: dict[str, Any] = json.loads(self.aws.buckets[bucket][key])
        return found

    def ended(self, status: str, *, phases: list[dict[str, Any]] | None = None, identity: str = "project:0") -> None:
        if identity in self.aws.builds:
            self.aws.end(identity, status, phases=phases)
        self.send_event(identity)

    def send_event(self, identity: str) -> None:
        arn = f"arn:aws:codebuild:us-east-1:123456789012:build/{identity}"
        event = {"source": "aws.codebuild", "detail": {"build-id": arn, "build-status": "SUCCEEDED"}}
        ended_build.build_ended(event, aws=self.clients, place=self.place)
