"""A resource that an update leaves as it is has no events, as in CloudFormation; with MiniStack every one has two.

User guide, "Understand update behaviors of stack resources": "CloudFormation updates resources based on differences
between what you submit and the stack's current template. Resources that haven't changed run without disruption during
the update process."
"""

from __future__ import annotations

from typing import Any

from ministack.services.cloudformation import _stack_events, stacks


class UnchangedResources:
    """The resources that a running update came to and found as they are to be."""

    def __init__(self) -> None:
        """None yet."""
        self._found: set[tuple[str, str]] = set()

    def look(self, stack_name: str, logical_id: str, *, before: Any, after: Any) -> None:
        """An update came to a resource, whose resolved properties are these."""
        if before == after:
            self._found.add((stack_name, logical_id))

    def ended(self, stack_name: str, logical_id: str) -> bool:
        """Whether the update ends with a resource that it left as it is; it is asked once."""
        found = (stack_name, logical_id) in self._found
        self._found.discard((stack_name, logical_id))
        return found


def install() -> None:
    """Wrap MiniStack's update of one resource, and the function with which its engine records events."""
    unchanged, update, add = UnchangedResources(), stacks._update_keeping_seed, stacks._add_event

    def update_one(kind: str, physical_id: str, before: Any, after: Any, *rest: Any) -> Any:
        stack_name, logical_id, *_ = rest
        unchanged.look(stack_name, logical_id, before=before, after=after)
        return update(kind, physical_id, before, after, *rest)

    def add_event(*event: Any, **more: Any) -> None:
        stack_id, stack_name, logical_id, _, status, *_ = event
        if status == "UPDATE_COMPLETE" and unchanged.ended(stack_name, logical_id):
            _forget_start(_stack_events[stack_id], logical_id)
        else:
            add(*event, **more)

    stacks._update_keeping_seed = update_one
    stacks._add_event = add_event


def _forget_start(events: list[dict[str, Any]], logical_id: str) -> None:
    """Take back the event that says that a resource's update started."""
    started = [
        number
        for number, event in enumerate(events)
        if (event["LogicalResourceId"], event["ResourceStatus"]) == (logical_id, "UPDATE_IN_PROGRESS")
    ]
    del events[started[-1]]
