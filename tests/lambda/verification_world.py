"""An endpoint with models, their manifests, and Lambda, CloudFormation and a clock around the verification function."""

from __future__ import annotations

import functools
import importlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tests import fake_aws

# `lambda` is a keyword: an import statement cannot name either folder.
handler: Any = importlib.import_module("lambda.verification.handler")
stack_events: Any = importlib.import_module("tests.lambda.stack_events")
clients: Any = importlib.import_module("lambda.shared.clients")
verification: Any = importlib.import_module("lambda.verification.verification")
calls: Any = importlib.import_module("lambda.verification.calls")
calling: Any = importlib.import_module("tests.lambda.calling")

A, B = "a" * 16, "b" * 16
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-digits/1"
PREFIX = "manifests/digits/24.09-t4/"
BUCKET = "archives"
CONFIG, IMAGE = "config-2", "registry/triton:24.09-py3"
RUN_SECONDS = 900.0
EXPECTED = [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}]
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [3.0]}]}


def right(values: Sequence[float] = (1.0, 2.0)) -> fake_aws.Response:
    """The container responds with ``y`` in Triton's binary form."""
    raw = struct.pack(f"<{len(values)}f", *values)
    output = {"name": "y", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": len(raw)}}
    header = json.dumps({"model_name": "m", "outputs": [output]}).encode()
    content_type = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(header)}"
    return {"Body": header + raw, "ContentType": content_type}


def others() -> list[dict[str, Any]]:
    """Outputs that no response has: those of another GPU, say."""
    return [{**EXPECTED[0], "data": [9.0, 9.0]}]


def model_error(status: int, message: str = "the container's words") -> fake_aws.AwsError:
    """SageMaker's ModelError."""
    members = {"OriginalStatusCode": status, "OriginalMessage": message, "LogStreamArn": "arn:log"}
    return fake_aws.AwsError("ModelError", "see the log", status=424, **members)


def refused(code: str, status: int = 400, message: str = "SageMaker's words") -> fake_aws.AwsError:
    """Any other error of InvokeEndpoint."""
    return fake_aws.AwsError(code, message, status=status)


LOADING = refused("ModelNotReadyException", 429)


@dataclass
class FakeEndpoint(fake_aws.FakeAws):
    """S3, SageMaker, CloudWatch, CloudFormation and Lambda."""

    # responses of DescribeEndpoint, one after the other; the last again and again
    described: list[dict[str, Any]] = field(default_factory=list)
    script: dict[str, list[fake_aws.Response]] = field(default_factory=dict)  # TargetModel → responses, likewise
    streams: list[Any] = field(default_factory=list)  # of an endpoint that streams: events or an error, one a request
    seconds: float = 1.0  # of each request; the world's clock goes on by them
    now: float = 6000.0
    unloads: list[float] = field(default_factory=list)  # their times, seconds since the epoch
    stack_status: str = "UPDATE_IN_PROGRESS"
    stack: Any = field(default_factory=lambda: stack_events.StackEvents(STACK))
    queue: list[dict[str, Any]] = field(default_factory=list)  # payloads of asynchronous invocations

    def _InvokeEndpoint(self, TargetModel: str = "the only one", **_: Any) -> fake_aws.Response:
        self.now += self.seconds
        script = self.script[TargetModel]
        response = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(response, Exception):
            raise response
        return response

    def _InvokeEndpointWithResponseStream(self, **_: Any) -> fake_aws.Response:
        self.now += self.seconds
        events = self.streams.pop(0)
        if isinstance(events, Exception):
            raise events
        return {"Body": events, "ContentType": "text/event-stream; charset=utf-8"}

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        assert EndpointName == "local-digits"
        return self.described.pop(0) if len(self.described) > 1 else self.described[0]

    def _GetMetricStatistics(self, StartTime: Any, EndTime: Any, MetricName: str, **_: Any) -> dict[str, Any]:
        assert MetricName == "ModelUnloadingTime"
        times = [at for at in self.unloads if StartTime.timestamp() <= at < min(EndTime.timestamp(), self.now)]
        return {"Datapoints": [{"SampleCount": float(len(times))}] if times else []}

    def _DescribeStackEvents(self, **given: str) -> dict[str, Any]:
        self.stack.becomes(self.stack_status)
        page: dict[str, Any] = self.stack.respond(**given)
        return page

    def _Invoke(self, FunctionName: str, InvocationType: str, Payload: Any) -> dict[str, Any]:
        assert (FunctionName, InvocationType) == ("function", "Event")
        self.queue.append(json.loads(Payload if isinstance(Payload, str) else Payload.read()))
        return {"StatusCode": 202}


class World:
    """The function between CloudFormation and the endpoint: events in, responses out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.aws = FakeEndpoint()
        self.aws.described = [self.endpoint()]
        monkeypatch.setattr(clients, "connect", functools.cache(self.aws.client))
        clock = SimpleNamespace(time=lambda: self.aws.now, sleep=self.pass_by)
        for module in (verification, calls):
            monkeypatch.setattr(module, "time", clock)
        self.sent: list[dict[str, Any]] = calling.record_responses(monkeypatch)
        self.runs = 0

    def pass_by(self, seconds: float) -> None:
        self.aws.now += seconds

    def endpoint(self, **changes: Any) -> dict[str, Any]:
        """DescribeEndpoint's response for an endpoint that runs what was requested."""
        variant = {"VariantName": "g4dn-xlarge", "DeployedImages": [{"SpecifiedImage": IMAGE}]}
        return {
            "EndpointStatus": "InService", "EndpointConfigName": CONFIG, "ProductionVariants": [variant], **changes,
        }  # fmt: skip

    def publish(self, models: Mapping[str, str], *, prefix: str = PREFIX, **changes: Any) -> None:
        """Put the manifests of archives into the bucket; each archive responds as expected."""
        sample = {"file": "r", "body": BODY, "answer": {"outputs": EXPECTED}, "tolerance": 0.01, **changes}
        for model, digest in models.items():
            content = json.dumps({"sample": sample, "client_files": {}}).encode()
            self.aws.buckets[BUCKET][f"{prefix}{model}.{digest}.json"] = content
            self.aws.script[f"{model}.{digest}.tar.gz"] = [right()]

    def properties(self, models: Mapping[str, str], **changes: str) -> dict[str, str]:
        key = "-".join(f"{model}={digest}" for model, digest in sorted(models.items())) + ".release-set"
        self.aws.buckets["staging"][key] = fake_aws.release_set(dict(models))
        return {
            "ServiceToken": "arn", "EndpointName": "local-digits", "EndpointConfigName": CONFIG,
            "VariantName": "g4dn-xlarge", "Image": IMAGE, "MultiModel": "true", "StopsAtUnload": "true",
            "Models": "20", "Minutes": "50", "ReleaseSetBucket": "staging", "ReleaseSetKey": key,
            "ArchiveBucket": BUCKET, "ManifestPrefix": PREFIX, **changes,
        }  # fmt: skip

    def event(self, request: str, new: dict[str, str], old: dict[str, str] | None = None) -> dict[str, Any]:
        """An event of CloudFormation."""
        event = {
            "RequestType": request, "ResourceType": "Custom::VerifiedEndpoint", "ResourceProperties": new,
            "StackId": STACK, "RequestId": "1", "LogicalResourceId": "Verification", "ResponseURL": "http://127.0.0.1",
        }  # fmt: skip
        return event if old is None else {**event, "OldResourceProperties": old}

    def deliver(self, event: dict[str, Any]) -> tuple[str, str, dict[str, str]]:
        """Run the function on an event, and on what it hands to itself, until it has responded; its one response."""
        before = len(self.outcomes)
        self.run(event)
        while self.aws.queue:
            self.run(self.aws.queue.pop(0))
        [outcome] = self.outcomes[before:]
        return outcome

    def run(self, event: dict[str, Any], *, again: bool = False) -> None:
        """One run. ``again``: Lambda delivers an event that CloudFormation sent before."""
        self.runs += 1
        if "Work" not in event and not again:
            self.aws.stack.becomes(self.aws.stack_status)
            self.aws.stack.begins(event)
        handler.handler(event, calling.context(seconds=RUN_SECONDS))

    def create(self, models: Mapping[str, str], **changes: str) -> tuple[str, str, dict[str, str]]:
        """Deliver a Create."""
        return self.deliver(self.event("Create", self.properties(models, **changes)))

    def update(self, old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
        """Deliver an Update."""
        return self.deliver(self.event("Update", self.properties(new), self.properties(old)))

    @property
    def invoked(self) -> list[str]:
        """The TargetModels that were invoked, in order, without their ending."""
        calls = self.aws.requests("InvokeEndpoint")
        return [given.get("TargetModel", "the only one").removesuffix(".tar.gz") for given in calls]

    @property
    def outcomes(self) -> list[tuple[str, str, dict[str, str]]]:
        """Status, reason and data of every response."""
        return [
            (each["Status"], each["Reason"].removesuffix(" (log stream stream)"), each["Data"]) for each in self.sent
        ]
