"""An account with published archives and release records, and CloudFormation that sends events to the activation."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests import fake_aws

stack_events: Any = importlib.import_module("tests.lambda.stack_events")
# `lambda` is a keyword: an import statement cannot name the folder.
deployment: Any = importlib.import_module("lambda.activation.deployment")
clients: Any = importlib.import_module("lambda.shared.clients")
operation: Any = importlib.import_module("lambda.shared.operation")

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-digits/1"
RECORDS_TYPE, ARCHIVES_TYPE = "Custom::ReleaseRecords", "Custom::PublishedArchives"
RECORDS = "/tritonstack/local/digits/"
PREFIX = "endpoints/digits/24.09-t4/"
A, B, C = "a" * 16, "b" * 16, "c" * 16


@dataclass
class FakeRecords(fake_aws.FakeAws):
    """The fake of AWS with one stack.

    Attributes:
        status: of the stack.
        stack: its events.
        puts_left: how many more values Systems Manager takes before it fails; None: it does not.
    """

    status: str = "UPDATE_IN_PROGRESS"
    stack: Any = field(default_factory=lambda: stack_events.StackEvents(STACK))
    puts_left: int | None = None

    def _PutParameter(
        self, Name: str, Value: str, Type: str, Overwrite: bool = False, Description: str | None = None, **_: Any
    ) -> dict[str, Any]:
        if self.puts_left is not None:
            if self.puts_left == 0:
                raise fake_aws.AwsError("InternalServerError")
            self.puts_left -= 1
        return super()._PutParameter(Name, Value, Type, Overwrite, Description)

    def _DescribeStackEvents(self, **given: str) -> dict[str, Any]:
        self.stack.becomes(self.status)
        page: dict[str, Any] = self.stack.respond(**given)
        return page


class World:
    """Archives, release sets, records, and the events of one stack.

    Attributes:
        tags: tags in the properties of the next events; None: properties of an earlier version, without tags.
        superseded: events that the function did not carry out, because CloudFormation did not wait for them.
    """

    def __init__(self) -> None:
        self.tags: dict[str, str] | None = {"team": "platform"}
        self.superseded = 0
        self.aws = FakeRecords()
        self._forward: list[Mapping[str, str]] = []  # properties that CloudFormation moved to, or began to
        self._requests: list[dict[str, Any]] = []  # events without their ids, in the order of their ids
        self.clients = clients.Aws(self.aws.client)

    def publish(self, models: Mapping[str, str], *, prefix: str = PREFIX) -> None:
        for model, digest in models.items():
            self.aws.artifacts[f"{prefix}{model}.{digest}.tar.gz"] = b"archive"

    def properties(
        self, models: Mapping[str, str], *, prefix: str = PREFIX, commits: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        document = {"schema": 1, "models": dict(models), **({"commits": dict(commits)} if commits else {})}
        body = json.dumps(document).encode()
        key = f"{hashlib.sha256(body).hexdigest()}.release-set"
        self.aws.buckets["staging"][key] = body
        return {
            "ServiceToken": "arn:aws:lambda:us-east-1:123456789012:function:activation",
            "ReleaseSetBucket": "staging",
            "ReleaseSetKey": key,
            "ArchiveBucket": "artifacts",
            "ArchivePrefix": prefix,
            "RecordPath": RECORDS,
            **({} if self.tags is None else {"Tags": json.dumps(self.tags)}),
        }

    def send(
        self, request: str, new: dict[str, str], old: dict[str, str] | None = None, *, resource_type: str = RECORDS_TYPE
    ) -> dict[str, str]:
        """Deliver an event, as CloudFormation does; one that its stack's status rules out is one that comes late."""
        event: dict[str, Any] = {
            "RequestType": request,
            "ResourceType": resource_type,
            "LogicalResourceId": resource_type.removeprefix("Custom::"),
            "ResourceProperties": new,
            "StackId": STACK,
        }
        if old is not None:
            event["OldResourceProperties"] = old
        sends = self._sends(event)
        if event not in self._requests or (sends and event != self._requests[-1]):
            self._requests.append(event)  # else Lambda delivers it again
        identified = {**event, "RequestId": f"request-{len(self._requests) - self._requests[::-1].index(event)}"}
        if sends:
            self.begin(identified)
        return self.deliver(identified)

    def begin(self, event: Mapping[str, Any]) -> None:
        """CloudFormation begins the operation that it sends this event for."""
        self.aws.stack.becomes(self.aws.status)
        self.aws.stack.begins(event)
        if not self.aws.status.startswith("UPDATE_ROLLBACK_"):
            self._forward.append(event["ResourceProperties"])

    def deliver(self, event: Mapping[str, Any]) -> dict[str, str]:
        """Lambda delivers an event, for the first time or again. A late one has no response."""
        try:
            done: dict[str, str] = deployment.activate(event, self.clients)
        except operation.SupersededError:
            self.superseded += 1
            return {}
        return done

    def _sends(self, event: Mapping[str, Any]) -> bool:
        """Whether CloudFormation may send this event now: it goes back to what it was at before, and nowhere else."""
        if self.aws.status == "UPDATE_ROLLBACK_IN_PROGRESS":
            return event["ResourceProperties"] in self._forward
        return self.aws.status.endswith("_IN_PROGRESS")

    def create(self, models: Mapping[str, str]) -> dict[str, str]:
        self.publish(models)
        return self.send("Create", self.properties(models))

    def update(self, old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
        self.publish(new)
        return self.send("Update", self.properties(new), self.properties(old))

    def undo(self, failed: Mapping[str, str], previous: Mapping[str, str]) -> dict[str, str]:
        """Roll an update back: an Update with the sets exchanged, which the stack's status alone distinguishes."""
        self.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        done = self.send("Update", self.properties(previous), self.properties(failed))
        self.aws.status = "UPDATE_IN_PROGRESS"
        return done

    def roll_back_by_command(self, model: str, digest: str) -> None:
        """Move a record as ``tritonstack rollback`` does."""
        self.publish({model: digest})
        before = self.records.get(model)
        note = {"writer": "rollback", "digest": digest, "before": before, "platform": "24.09-t4", "commit": "unknown"}
        self.clients.ssm.put_parameter(
            Name=RECORDS + model, Value=digest, Description=json.dumps(note), Type="String", Overwrite=True
        )

    def note(self, model: str) -> dict[str, Any]:
        """The description of a record's newest version."""
        found: dict[str, Any] = json.loads(self.aws.versions[RECORDS + model][-1]["Description"])
        return found

    @property
    def records(self) -> dict[str, str]:
        found = self.aws.parameters.items()
        return {name.removeprefix(RECORDS): value for name, value in found if name.startswith(RECORDS)}

    @property
    def others(self) -> dict[str, str]:
        """Parameters that are no record of the endpoint."""
        return {name: value for name, value in self.aws.parameters.items() if not name.startswith(RECORDS)}
