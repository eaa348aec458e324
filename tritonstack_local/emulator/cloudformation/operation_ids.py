"""Every stack event bears the id of its operation, as at AWS; MiniStack's have none.

A rollback is an operation of its own, after the one that failed. The CDK command line tells by these ids which failures
are the last deployment's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ministack.services.cloudformation import _stack_events, handlers

_STACK = "AWS::CloudFormation::Stack"
_BEGINNING = frozenset(
    f"{what}_IN_PROGRESS" for what in ("REVIEW", "CREATE", "UPDATE", "DELETE", "ROLLBACK", "UPDATE_ROLLBACK")
)
_EVENT_ID = re.compile(rb"<EventId>([^<]+)</EventId>")
Handler = Callable[[dict[str, Any]], Any]


def install() -> None:
    """Wrap the operation that shows events."""
    wrapped = handlers._ACTION_HANDLERS
    wrapped["DescribeStackEvents"] = _with_operation_ids(wrapped["DescribeStackEvents"])


def _with_operation_ids(describe: Handler) -> Handler:
    def described(parameters: dict[str, Any]) -> Any:
        status, headers, body = describe(parameters)
        stack = handlers._resolve_stack(handlers._p(parameters, "StackName")) or {}
        operations = _operations(_stack_events.get(stack.get("StackId"), []))

        def both(found: re.Match[bytes]) -> bytes:
            operation = operations.get(found[1].decode(), "")
            return found[0] + f"<OperationId>{operation}</OperationId>".encode()

        return status, headers, _EVENT_ID.sub(both, body)

    return described


def _operations(events: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Event id → operation id, which is the id of the operation's first event. ``events`` are the oldest first."""
    found: dict[str, str] = {}
    operation = ""
    for event in events:
        is_stack = event["ResourceType"] == _STACK and event["LogicalResourceId"] == event["StackName"]
        if not operation or (is_stack and event["ResourceStatus"] in _BEGINNING):
            operation = event["EventId"]
        found[event["EventId"]] = operation
    return found
