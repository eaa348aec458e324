"""A resource that is new in an update is CREATE_COMPLETE, as in CloudFormation; with MiniStack UPDATE_COMPLETE."""

from __future__ import annotations

from typing import Any

from ministack.services.cloudformation import _stacks, stacks

_CREATING = {
    "UPDATE_IN_PROGRESS": "CREATE_IN_PROGRESS",
    "UPDATE_COMPLETE": "CREATE_COMPLETE",
    "UPDATE_FAILED": "CREATE_FAILED",
}


class NewResources:
    """Which resources the running updates make, by stack id."""

    def __init__(self) -> None:
        """None yet."""
        self._made: dict[str, set[str]] = {}

    def status(self, stack_id: str, stack_name: str, logical_id: str, status: str) -> str:
        """The status that an event of a resource, or of the stack itself, is to have."""
        if logical_id == stack_name:
            self._made.pop(stack_id, None)  # the update is over, or is rolled back
            return status
        made = self._made.setdefault(stack_id, set())
        if status == "UPDATE_IN_PROGRESS" and logical_id not in _stacks.get(stack_name, {}).get("_resources", {}):
            made.add(logical_id)
        return _CREATING.get(status, status) if logical_id in made else status


def install() -> None:
    """Wrap the function with which MiniStack's engine records events."""
    new, add = NewResources(), stacks._add_event

    def add_event(*event: Any, **more: Any) -> None:
        stack_id, stack_name, logical_id, kind, status, *rest = event
        status = new.status(stack_id, stack_name, logical_id, status)
        record = _stacks.get(stack_name, {}).get("_resources", {}).get(logical_id)
        if record is not None and status == "CREATE_COMPLETE":
            record["ResourceStatus"] = status
        add(stack_id, stack_name, logical_id, kind, status, *rest, **more)

    stacks._add_event = add_event
