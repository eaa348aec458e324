"""A rollback ends at the first resource that does not go back; what is left waits for ContinueUpdateRollback.

MiniStack goes on with the resources that depend on the failed one, and deletes what the update made. At AWS that
cleaning up follows a rollback (user guide, "Understand update rollback": UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS);
that nothing else is begun after a failure is UNVERIFIED, and the stricter of the two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ministack.services.cloudformation import handlers, stacks

_failed: set[str] = set()
"""Names of the stacks in whose running rollback a resource has failed."""
_REASON = "Resource update cancelled"


def install() -> None:
    """Wrap both ways to roll back, and what they do to one resource."""
    stacks._roll_back_operation = handlers._roll_back_operation = _begun_anew(stacks._roll_back_operation)
    going_on = _begun_anew(stacks._continue_update_rollback_async)
    stacks._continue_update_rollback_async = handlers._continue_update_rollback_async = going_on
    revert, delete, add_event = stacks._revert_update, stacks._delete_resource, stacks._add_event

    async def revert_in_turn(stack_id: str, stack_name: str, *rest: Any) -> None:
        if stack_name in _failed:
            raise RuntimeError(_REASON)
        try:
            await revert(stack_id, stack_name, *rest)
        except Exception:
            _failed.add(stack_name)
            raise

    def delete_in_turn(kind: str, physical_id: str, properties: Any, stack_name: str, *rest: Any) -> Any:
        if stack_name in _failed:
            raise RuntimeError(_REASON)
        return delete(kind, physical_id, properties, stack_name, *rest)

    def add_unless_waiting(*event: Any, **more: Any) -> None:
        _stack_id, stack_name, _logical_id, _kind, status, *_ = event
        if not (stack_name in _failed and status in ("DELETE_IN_PROGRESS", "DELETE_FAILED")):
            add_event(*event, **more)

    stacks._revert_update, stacks._delete_resource = revert_in_turn, delete_in_turn
    stacks._add_event = add_unless_waiting


def _begun_anew(roll_back: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def rolled_back(stack_name: str, *rest: Any) -> None:
        _failed.discard(stack_name)
        try:
            await roll_back(stack_name, *rest)
        finally:
            _failed.discard(stack_name)

    return rolled_back
