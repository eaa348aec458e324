"""CloudWatch Logs, SageMaker and CloudFormation as the function of an endpoint's log group sees them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

# `lambda` is a word of the language, so the folder of that name cannot stand in an import statement.
clients: Any = importlib.import_module("lambda.shared.clients")
handler: Any = importlib.import_module("lambda.endpoint_log.handler")
stack_events: Any = importlib.import_module("tests.lambda.stack_events")

ENDPOINT = "dev-digits"
NAME = f"/aws/sagemaker/Endpoints/{ENDPOINT}"
ARN = f"arn:{NAME}"


def stack_arn(number: int = 1, *, name: str = "dev-serving-digits") -> str:
    """A stack's ARN; another ``number`` is a stack of the same name that was created anew."""
    return f"arn:aws:cloudformation:us-east-1:123456789012:stack/{name}/{number}"


def properties(**changes: str) -> dict[str, str]:
    return {
        "LogGroupName": NAME,
        "LogGroupArn": ARN,
        "RetentionInDays": "90",
        "KmsKeyId": "arn:key",
        "Retain": "false",
        "Tags": '{"team": "platform"}',
        **changes,
    }


@dataclass
class Group:
    """A log group; ``lines`` is what would be lost with it."""

    tags: dict[str, str] = field(default_factory=dict)
    days: int | None = None
    key: str | None = None
    lines: list[str] = field(default_factory=list)


@dataclass
class World:
    """What exists. ``status``: of the stack; ``lives``: whether the endpoint exists."""

    groups: dict[str, Group] = field(default_factory=dict)
    status: str = "CREATE_IN_PROGRESS"
    lives: bool = False
    gone_keys: set[str] = field(default_factory=set)
    events: Any = None

    def send(self, request: str, *, stack: str = stack_arn(), old: dict[str, str] | None = None, **changes: str) -> str:
        """An event of CloudFormation; what the function did."""
        event = {"RequestType": request, "StackId": stack, "ResourceProperties": properties(**changes)}
        if old is not None:
            event["OldResourceProperties"] = old
        return self.deliver(event)

    def deliver(self, event: dict[str, Any]) -> str:
        """An event that CloudFormation sends."""
        event["LogicalResourceId"] = "Group"
        self.begin(event)
        done: str = handler.apply(event, clients.Aws(self.connect))
        return done

    def begin(self, event: dict[str, Any]) -> None:
        """CloudFormation begins the operation of an event."""
        self.events = stack_events.StackEvents(event["StackId"])
        self.events.becomes(self.status)
        self.events.begins(event)

    def connect(self, service: str) -> Any:
        if service == "logs":
            return self
        if service == "sagemaker":
            return SimpleNamespace(describe_endpoint=self._endpoint)
        return SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=self._stack_events))

    def _stack_events(self, *, StackName: str) -> Iterator[dict[str, Any]]:
        self.events.becomes(self.status)
        yield {"StackEvents": self.events.events[::-1] if StackName == self.events.stack_id else []}

    def _endpoint(self, *, EndpointName: str) -> dict[str, str]:
        assert EndpointName == ENDPOINT
        if not self.lives:
            raise error("ValidationException", f'Could not find endpoint "{ENDPOINT}".')
        return {"EndpointStatus": "InService"}

    def create_log_group(self, *, logGroupName: str, tags: dict[str, str]) -> None:
        if logGroupName in self.groups:
            raise error("ResourceAlreadyExistsException")
        self.groups[logGroupName] = Group(tags=dict(tags))

    def list_tags_for_resource(self, *, resourceArn: str) -> dict[str, Any]:
        return {"tags": dict(self.group(resourceArn).tags)}

    def tag_resource(self, *, resourceArn: str, tags: dict[str, str]) -> None:
        self.group(resourceArn).tags.update(tags)

    def untag_resource(self, *, resourceArn: str, tagKeys: list[str]) -> None:
        for key in tagKeys:
            del self.group(resourceArn).tags[key]

    def put_retention_policy(self, *, logGroupName: str, retentionInDays: int) -> None:
        self.group(logGroupName).days = retentionInDays

    def delete_retention_policy(self, *, logGroupName: str) -> None:
        self.group(logGroupName).days = None

    def associate_kms_key(self, *, logGroupName: str, kmsKeyId: str) -> None:
        if kmsKeyId in self.gone_keys:
            raise error("InvalidParameterException", "The specified KMS key does not exist")
        self.group(logGroupName).key = kmsKeyId

    def disassociate_kms_key(self, *, logGroupName: str) -> None:
        self.group(logGroupName).key = None

    def delete_log_group(self, *, logGroupName: str) -> None:
        self.group(logGroupName)
        del self.groups[logGroupName]

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_log_groups"
        return SimpleNamespace(paginate=self._described)

    def _described(self, *, logGroupNamePrefix: str) -> Iterator[dict[str, Any]]:
        for name, group in self.groups.items():
            if name.startswith(logGroupNamePrefix):
                given = {"retentionInDays": group.days, "kmsKeyId": group.key}
                yield {"logGroups": [{"logGroupName": name, **{k: v for k, v in given.items() if v is not None}}]}

    def group(self, name: str = NAME) -> Group:
        if (found := self.groups.get(name.removeprefix("arn:"))) is None:
            raise error("ResourceNotFoundException")
        return found


def error(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")
