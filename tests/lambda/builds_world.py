"""An account with a builds stack, for the tests of the function between a deployment and its builds."""

from __future__ import annotations

import importlib
import json
from typing import Any

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
fakes: Any = importlib.import_module("tests.lambda.fake_builds")
services: Any = importlib.import_module("lambda.model_builds.services")
order: Any = importlib.import_module("lambda.model_builds.order")
ended_build: Any = importlib.import_module("lambda.model_builds.ended_build")

PREFIX = "endpoints/digits/24.09-t4/"
RECORDS = "/tritonstack/local/digits/"
A, B, C = "a" * 16, "b" * 16, "c" * 16


class World:
    """An account with a builds stack, and a serving stack that CloudFormation deploys."""

    def __init__(self, listener: Any) -> None:
        self.aws, self.listener = fakes.FakeBuilds(), listener
        names = ("s3", "ssm", "codebuild", "sagemaker", "logs", "cloudformation")
        self.clients = services.Clients(**{name: self.aws.client(name) for name in names})
        self.place = services.Place("artifacts", "project", "/tritonstack/local/")

    @property
    def signals(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.listener.heard.get("/handle", [])
        return found

    @property
    def builds(self) -> list[str]:
        return list(self.aws.builds)

    def publish(self, *names: str) -> None:
        for name in names:
            self.aws.objects["artifacts", f"{PREFIX}{name}.tar.gz"] = b"archive"

    def build_set(self, models: dict[str, str]) -> dict[str, Any]:
        return {
            "schema": 1,
            "environment": "local",
            "endpoint": "digits",
            "platform": {"release": "24.09", "gpu": "T4"},
            "archives": [{"model": name, "digest": models[name], "dependency": "engine"} for name in sorted(models)],
        }

    def event(self, request: str, models: dict[str, str], *, request_id: str = "request") -> dict[str, Any]:
        self.aws.objects["staging", "set.build-set"] = json.dumps(self.build_set(models)).encode()
        return {
            "RequestType": request,
            "ResourceType": "Custom::ModelBuilds",
            "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-digits/1",
            "RequestId": request_id,
            "LogicalResourceId": "WaitBuilds",
            "ResponseURL": f"{self.listener.url}/answer",
            "ResourceProperties": {
                "BuildSetBucket": "staging",
                "BuildSetKey": "set.build-set",
                "WaitHandle": f"{self.listener.url}/handle",
                "Of": "local/digits",
            },
        }

    def request(self, request: str, models: dict[str, str], *, request_id: str = "request") -> dict[str, str]:
        event = self.event(request, models, request_id=request_id)
        done: dict[str, str] = order.requested(event, clients=self.clients, place=self.place)
        return done

    def order(self) -> dict[str, Any]:
        """The one order, found as the build finds it."""
        [build] = self.aws.builds.values()
        variables = {each["name"]: each["value"] for each in build["environment"]["environmentVariables"]}
        bucket, _, key = variables["TRITONSTACK_ORDER"].removeprefix("s3://").partition("/")
        found: dict[str, Any] = json.loads(self.aws.objects[bucket, key])
        return found

    def ended(self, status: str, *, phases: list[dict[str, Any]] | None = None, identity: str = "project:0") -> None:
        if identity in self.aws.builds:
            self.aws.end(identity, status, phases=phases)
        self.send_event(identity)

    def send_event(self, identity: str) -> None:
        arn = f"arn:aws:codebuild:us-east-1:123456789012:build/{identity}"
        event = {"source": "aws.codebuild", "detail": {"build-id": arn, "build-status": "SUCCEEDED"}}
        ended_build.build_ended(event, clients=self.clients, place=self.place)
