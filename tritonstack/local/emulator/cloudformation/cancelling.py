"""CancelUpdateStack while a resource waits: the wait ends, and the stack rolls back as the user asked.

MiniStack notes the request and looks at it before each resource only. A resource that cannot be interrupted (an
endpoint, say) is done first; then the stack rolls back, though it were the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services.cloudformation import _stacks, handlers, stacks

from tritonstack.local.emulator.clock import clock


class CancelledError(Exception):
    """A resource that was waiting when its stack's update was cancelled; the text is the event's reason at AWS."""

    def __init__(self, *, creating: bool) -> None:
        """``creating`` for a resource that is new in this update."""
        super().__init__("Resource creation cancelled" if creating else "Resource update cancelled")


def cancel_requested(stack_name: str) -> bool:
    """Whether the running update of that stack is to end."""
    return bool(_stacks.get(stack_name, {}).get("_cancel_requested"))


def install() -> None:
    """Wake who waits when an update is cancelled, and give the rollback the reason and token of the cancel."""
    cancel: Callable[[dict[str, Any]], Any] = handlers._ACTION_HANDLERS["CancelUpdateStack"]
    roll_back, resolve = stacks._roll_back_operation, stacks._resolve_stack_outputs

    def resolve_unless_cancelled(*arguments: Any) -> Any:
        stack_name = arguments[5]
        if cancel_requested(stack_name) and _stacks[stack_name]["StackStatus"] == "UPDATE_IN_PROGRESS":
            raise CancelledError(creating=False)
        return resolve(*arguments)

    def cancel_and_wake(parameters: dict[str, Any]) -> Any:
        answer = cancel(parameters)
        with clock.condition:
            clock.condition.notify_all()
        return answer

    async def roll_back_as_asked(
        stack_name: str, stack_id: str, stack: dict[str, Any], operation: dict[str, Any], reason_override: str = ""
    ) -> None:
        if operation["is_update"] and stack.pop("_cancel_requested", False):
            stacks.CLIENT_REQUEST_TOKEN.set(stack.pop("_cancel_token", ""))
            operation["cancelled"] = True
        await roll_back(stack_name, stack_id, stack, operation, reason_override)

    handlers._ACTION_HANDLERS["CancelUpdateStack"] = cancel_and_wake
    stacks._roll_back_operation = roll_back_as_asked
    stacks._resolve_stack_outputs = resolve_unless_cancelled
