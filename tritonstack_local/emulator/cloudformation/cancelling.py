"""CancelUpdateStack and DeleteStack while a resource waits: the wait ends, and the stack goes back, or goes.

MiniStack notes a cancel and looks at it before each resource only, and deletes a stack that is still being made beside
its making. A resource that cannot be interrupted (an endpoint, say) is done first; then the stack rolls back, though
it were the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services.cloudformation import _stacks, handlers, stacks

from tritonstack_local.emulator.clock import clock

Handler = Callable[[dict[str, Any]], Any]
_GOING_FORWARD = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


class CancelledError(Exception):
    """A resource that was waiting when its stack's operation was cancelled; the text is the event's reason at AWS."""

    def __init__(self, *, creating: bool) -> None:
        """``creating`` for a resource that is new in this operation."""
        super().__init__("Resource creation cancelled" if creating else "Resource update cancelled")


def cancel_requested(stack_name: str) -> bool:
    """Whether the running operation of that stack is to end."""
    return bool(_stacks.get(stack_name, {}).get("_cancel_requested"))


def install() -> None:
    """Wrap both operations, and the end of a stack's operation."""
    wrapped = handlers._ACTION_HANDLERS
    wrapped["CancelUpdateStack"] = _waking(wrapped["CancelUpdateStack"])
    wrapped["DeleteStack"] = _refusing_updates(_after_its_making(wrapped["DeleteStack"]))
    _heed_at_the_end()
    _roll_back_as_asked()


def _waking(cancel: Handler) -> Handler:
    def cancel_and_wake(parameters: dict[str, Any]) -> Any:
        answer = cancel(parameters)
        _wake()
        return answer

    return cancel_and_wake


def _refusing_updates(delete: Handler) -> Handler:
    """A stack that is being updated cannot be deleted."""

    def delete_or_refuse(parameters: dict[str, Any]) -> Any:
        stack = _stack(parameters)
        status = stack.get("StackStatus", "")
        if status.startswith("UPDATE_") and status.endswith("_IN_PROGRESS"):
            sentence = f"Stack [{stack['StackId']}] cannot be deleted while in status {status}"
            return handlers._error("ValidationError", sentence)
        return delete(parameters)

    return delete_or_refuse


def _after_its_making(delete: Handler) -> Handler:
    """A stack that is being made, or is being rolled back from that, is deleted when that has ended."""

    def end_and_delete(parameters: dict[str, Any]) -> Any:
        stack = _stack(parameters)
        running = stack.get("StackStatus") in ("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS")
        if not running or stack.get("EnableTerminationProtection"):
            return delete(parameters)
        stack["_delete_requested"] = True
        if stack["StackStatus"] == "CREATE_IN_PROGRESS":
            stack["_cancel_requested"] = True
            _wake()
        return handlers._xml(200, "DeleteStackResponse", "")

    return end_and_delete


def _heed_at_the_end() -> None:
    """A request that came after the last resource was begun counts, too."""
    resolve = stacks._resolve_stack_outputs

    def resolve_unless_cancelled(*arguments: Any) -> Any:
        stack_name = arguments[5]
        if cancel_requested(stack_name) and _stacks[stack_name]["StackStatus"] in _GOING_FORWARD:
            raise CancelledError(creating=False)
        return resolve(*arguments)

    stacks._resolve_stack_outputs = resolve_unless_cancelled


def _roll_back_as_asked() -> None:
    """The rollback has the reason and the token of the cancel, and a stack that is to go goes then."""
    roll_back = stacks._roll_back_operation

    async def roll_back_as_asked(
        stack_name: str, stack_id: str, stack: dict[str, Any], operation: dict[str, Any], reason_override: str = ""
    ) -> None:
        if stack.pop("_cancel_requested", False):
            stacks.CLIENT_REQUEST_TOKEN.set(stack.pop("_cancel_token", ""))
            operation["cancelled"] = True
        await roll_back(stack_name, stack_id, stack, operation, reason_override)
        if stack.pop("_delete_requested", False):
            await stacks._delete_stack_async(stack_name, stack_id)

    stacks._roll_back_operation = handlers._roll_back_operation = roll_back_as_asked


def _stack(parameters: dict[str, Any]) -> dict[str, Any]:
    """The stack that a request names; empty where there is none."""
    return handlers._resolve_stack(handlers._p(parameters, "StackName")) or {}


def _wake() -> None:
    with clock.condition:
        clock.condition.notify_all()
