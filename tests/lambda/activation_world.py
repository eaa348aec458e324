"""An account with published archives, and CloudFormation that sends events to the activation function."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from typing import Any

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
records: Any = importlib.import_module("tests.lambda.fake_records")
deployment: Any = importlib.import_module("lambda.activation.deployment")
services: Any = importlib.import_module("lambda.activation.services")

RECORDS_TYPE, ARCHIVES_TYPE = "Custom::ReleaseRecords", "Custom::PublishedArchives"
RECORDS = "/tritonstack/local/digits/"
PREFIX = "endpoints/digits/24.09-t4/"
A, B, C = "a" * 16, "b" * 16, "c" * 16


class World:
    """Archives, release sets, records, and the events of one stack.

    Attributes:
        tags: those that the properties of the next events say; None: they are of a version that said none.
    """

    def __init__(self) -> None:
        self.tags: dict[str, str] | None = {"team": "platform"}
        self.aws = records.FakeRecords()
        self.clients = services.Aws(*(self.aws.client(name) for name in ("s3", "ssm", "cloudformation")))

    def publish(self, models: Mapping[str, str], *, prefix: str = PREFIX) -> None:
        for model, digest in models.items():
            self.aws.objects["artifacts", f"{prefix}{model}.{digest}.tar.gz"] = b"archive"

    def properties(
        self, models: Mapping[str, str], *, prefix: str = PREFIX, commits: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        document = {"schema": 1, "models": dict(models), **({"commits": dict(commits)} if commits else {})}
        body = json.dumps(document).encode()
        key = f"{hashlib.sha256(body).hexdigest()}.release-set"
        self.aws.objects["staging", key] = body
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
        event: dict[str, Any] = {
            "RequestType": request,
            "ResourceType": resource_type,
            "ResourceProperties": new,
            "StackId": records.STACK,
        }
        if old is not None:
            event["OldResourceProperties"] = old
        done: dict[str, str] = deployment.activate(event, self.clients)
        return done

    def create(self, models: Mapping[str, str]) -> dict[str, str]:
        self.publish(models)
        return self.send("Create", self.properties(models))

    def update(self, old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
        self.publish(new)
        return self.send("Update", self.properties(new), self.properties(old))

    def undo(self, failed: Mapping[str, str], previous: Mapping[str, str]) -> dict[str, str]:
        """CloudFormation rolls an update back: an Update with the sets exchanged, which only the status tells."""
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
