"""CloudFormation's events of one stack, as a function reads them: what was begun, and the stack's statuses between."""

from __future__ import annotations

import datetime as dt
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

operation: Any = importlib.import_module("lambda.shared.operation")  # `lambda` is a word of the language
operation.PAUSES = ()  # these events are never late
PAGE = 3
TIME = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
STATUSES = {"Create": "CREATE_IN_PROGRESS", "Update": "UPDATE_IN_PROGRESS", "Delete": "DELETE_IN_PROGRESS"}


@dataclass
class StackEvents:
    """The events of one stack, oldest first.

    Attributes:
        stack_id: the stack's.
        restores: whether events of a rollback have the properties that it goes back to; else those that failed.
    """

    stack_id: str
    restores: bool = True
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The stack's name."""
        return self.stack_id.split("/")[1]

    def becomes(self, status: str) -> None:
        """Log a status of the stack, unless it has it."""
        own = [each["ResourceStatus"] for each in self.events if each["LogicalResourceId"] == self.name]
        if own[-1:] != [status]:
            self._add(self.name, "AWS::CloudFormation::Stack", status, self.stack_id)

    def begins(self, event: Mapping[str, Any]) -> None:
        """Log that CloudFormation begins the operation that it sends ``event`` for."""
        properties = event["ResourceProperties"]
        rolls_back = self.events and self.status.startswith("UPDATE_ROLLBACK_")
        if rolls_back and not self.restores and event["RequestType"] == "Update":
            properties = event["OldResourceProperties"]
        logical_id, kind = event["LogicalResourceId"], event.get("ResourceType", "Custom::Resource")
        status = STATUSES[event["RequestType"]]
        physical_id = event.get("PhysicalResourceId", "")
        self._add(logical_id, kind, status, physical_id, ResourceProperties=json.dumps(dict(properties)))

    def ends(self, logical_id: str, outcome: str = "COMPLETE") -> None:
        """Log the end of a resource's operation."""
        [*_, last] = [each for each in self.events if each["LogicalResourceId"] == logical_id]
        status = last["ResourceStatus"].replace("IN_PROGRESS", outcome)
        self.events.append({**last, "ResourceStatus": status, "EventId": str(len(self.events))})

    @property
    def status(self) -> str:
        """The stack's."""
        return str([each["ResourceStatus"] for each in self.events if each["LogicalResourceId"] == self.name][-1])

    def respond(self, *, StackName: str, NextToken: str = "0") -> dict[str, Any]:
        """DescribeStackEvents: newest first, in pages."""
        assert StackName == self.stack_id
        start, newest = int(NextToken), self.events[::-1]
        page: dict[str, Any] = {"StackEvents": newest[start : start + PAGE]}
        return page | ({"NextToken": str(start + PAGE)} if start + PAGE < len(newest) else {})

    def _add(self, logical_id: str, kind: str, status: str, physical_id: str, **more: str) -> None:
        self.events.append(
            {
                "StackId": self.stack_id,
                "EventId": str(len(self.events)),
                "StackName": self.name,
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": physical_id,
                "ResourceType": kind,
                "Timestamp": TIME,
                "ResourceStatus": status,
                **more,
            }
        )
