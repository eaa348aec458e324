"""The operation of CloudFormation that an event of a custom resource belongs to, by the stack's events.

Lambda delivers an event again for up to six hours, and a run may be slow while its update is cancelled: then
CloudFormation has moved on, and may have undone the event's change. The stack's status at that time does not show it.
The stack's events do: the newest one of the resource is what CloudFormation does with it now, with which properties,
and the stack's own event before that one shows whether an update is rolled back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .custom_resource import PRESIGNED, NotDoneError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient

Event = Mapping[str, Any]
STATUS = {"Create": "CREATE_IN_PROGRESS", "Update": "UPDATE_IN_PROGRESS", "Delete": "DELETE_IN_PROGRESS"}
"""RequestType → the status of the resource while CloudFormation waits for the response."""
ROLLS_BACK = "UPDATE_ROLLBACK_"
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before the events are read again that do not show the operation yet. That they always show it when the
request arrives is documented nowhere."""
READING = ("Describe", "List", "Get")
"""How the operations begin that change nothing."""
NOT_COMPARED = frozenset({"ServiceToken", "ServiceTimeout"})


class SupersededError(NotDoneError):
    """CloudFormation does not wait for this event, or not any more: its set or scaling is not in force."""


class Operation:
    """What CloudFormation does with a resource at the time of an event.

    Attributes:
        request: CloudFormation's id of the request: the same however often Lambda delivers its event.
        undoes: whether it undoes an update that failed or was cancelled.
        stack_status: the stack's, when the operation began.
    """

    def __init__(self, event: Event, cloudformation: CloudFormationClient) -> None:
        """Find the operation of ``event``. Raises SupersededError where CloudFormation does not wait for it."""
        self._event, self._cloudformation = event, cloudformation
        self.request: str = event.get("RequestId", "")
        for pause in (*PAUSES, None):
            found = self._find()
            if found is not None:
                self._begun, self.stack_status = found
                break
            if pause is None:
                raise self._superseded()
            time.sleep(pause)
        self.undoes = self.stack_status.startswith(ROLLS_BACK) and event["RequestType"] == "Update"

    def require(self) -> None:
        """Raise SupersededError where CloudFormation does not wait for the event any more."""
        for each in self._events():
            if self._is_own(each):
                if _same_operation(each, self._begun):
                    return
                break
            if _is_stacks(each) and each["ResourceStatus"] != self.stack_status:
                break
        raise self._superseded()

    @contextmanager
    def guarding(self, client: Any) -> Iterator[None]:
        """In the block, every request of a client that changes something requires the operation first."""
        service = client.meta.service_model.service_id.hyphenize()
        name = f"before-parameter-build.{service}"

        def before(model: Any, **_: Any) -> None:
            if not model.name.startswith(READING):
                self.require()

        client.meta.events.register_first(name, before)
        try:
            yield
        finally:
            client.meta.events.unregister(name, before)

    def in_force(self) -> Mapping[str, Any]:
        """The properties that the resource has, or is about to have; empty where there is none, or they are unknown.

        Those of the last creation or update that CloudFormation began. A deletion at the end of an update is one of a
        resource that was replaced.
        """
        events, begun = self._events(), None
        for each in events:
            status = each["ResourceStatus"]
            if _is_stacks(each):
                if status.startswith("DELETE_"):
                    return {}
                if begun is not None:
                    failed = self._failed(events) if status.startswith(ROLLS_BACK) else {}
                    return {} if failed == _properties(begun) else _properties(begun)
            elif begun is None and self._is_own(each) and not status.startswith("DELETE_"):
                begun = each
        return {}

    def prevails(self) -> bool:
        """Whether the event's change is in force although its operation has ended: another run of it made it."""
        found = self.in_force()
        return bool(found) and _agrees(self._event["ResourceProperties"], found)

    def _find(self) -> tuple[Event, str] | None:
        """The resource's newest event and the status of the stack that it came under; None where it is not ours."""
        events, newest = self._events(), ""
        begun = None
        for each in events:
            if _is_stacks(each):
                status = each["ResourceStatus"]
                newest = newest or status
                if begun is not None:
                    break
            elif begun is None and self._is_own(each):
                begun = each
                if begun["ResourceStatus"] != STATUS[self._event["RequestType"]]:
                    return None
        else:
            return None
        if newest != status or not self._matches(begun, self._failed(events) if status.startswith(ROLLS_BACK) else {}):
            return None
        return begun, status

    def _failed(self, older: Iterator[Event]) -> Mapping[str, Any]:
        """The properties that the update had, which is being rolled back; empty where it did not reach the resource."""
        found: Mapping[str, Any] = {}
        for each in older:
            if _is_stacks(each):
                if each["ResourceStatus"] == "UPDATE_IN_PROGRESS" or each["ResourceStatus"].endswith("_COMPLETE"):
                    return found
                found = {}  # of a rollback that failed, and is continued
            elif self._is_own(each) and each["ResourceStatus"] == STATUS["Update"]:
                found = found or _properties(each)
        return found

    def _matches(self, begun: Event, failed: Mapping[str, Any]) -> bool:
        if self._event["RequestType"] == "Delete":
            return begun.get("PhysicalResourceId") in ("", None, self._event.get("PhysicalResourceId"))
        logged = _properties(begun)
        new = _agrees(self._event["ResourceProperties"], logged)
        if failed and failed == logged:
            # UNVERIFIED that events of a rollback have the properties to which it goes back, and not those that failed.
            return not new and _agrees(self._event.get("OldResourceProperties", {}), logged)
        return new

    def _events(self) -> Iterator[Event]:
        """The stack's events, newest first (API reference, DescribeStackEvents: reverse chronological order)."""
        pages = self._cloudformation.get_paginator("describe_stack_events").paginate(StackName=self._event["StackId"])
        return (each for page in pages for each in page["StackEvents"])

    def _is_own(self, each: Event) -> bool:
        return bool(each["LogicalResourceId"] == self._event["LogicalResourceId"]) and not _is_stacks(each)

    def _superseded(self) -> SupersededError:
        request, name = self._event["RequestType"], self._event["LogicalResourceId"]
        return SupersededError(
            f"CloudFormation does not wait for this {request} of {name} any more: by the stack's events it has ended, "
            "or was rolled back. Nothing was changed that is in force."
        )


def _is_stacks(each: Event) -> bool:
    return bool(each["ResourceType"] == "AWS::CloudFormation::Stack" and each["LogicalResourceId"] == each["StackName"])


def _same_operation(one: Event, other: Event) -> bool:
    """Whether two events are of one operation; a creation has several (a second one, once it has a physical id)."""
    return all(one.get(name) == other.get(name) for name in ("ResourceStatus", "ResourceProperties"))


def _properties(each: Event) -> Mapping[str, Any]:
    """The properties in a stack event, JSON; empty where it has none, or no complete ones."""
    try:
        found = json.loads(each.get("ResourceProperties") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _agrees(given: Mapping[str, Any], logged: Mapping[str, Any]) -> bool:
    """Whether properties of a request are those of a stack's event, as far as it has them. URLs are not compared."""
    names = (given.keys() & logged.keys()) - NOT_COMPARED
    texts = ((given[name], logged[name]) for name in names)
    return all(one == other for one, other in texts if not (isinstance(one, str) and PRESIGNED.match(one)))
