"""As which role a resource acts: another one is another set of permissions, though no statement changes."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.review.permission_change import Direction, PermissionChange
from tritonstack.review.policies import SubjectKind
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, StackSnapshot

_ROLES = ("DeliverLogsPermissionArn", "ExecutionRoleArn", "Role", "RoleARN", "RoleArn", "ServiceRole", "TaskRoleArn")
"""Properties that name the role that a resource acts as."""


def role_changes(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> Iterator[PermissionChange]:
    """Each resource that is on both sides and acts as another role."""
    for name, new in after.stacks.items() if after is not None else ():
        old = before.stacks.get(name) if before is not None else None
        if old is not None:
            yield from _of_stack(old, new)


def _of_stack(old: StackSnapshot, new: StackSnapshot) -> Iterator[PermissionChange]:
    for logical_id in sorted(old.resources.keys() & new.resources.keys()):
        before, after = old.resources[logical_id], new.resources[logical_id]
        for name in _ROLES:
            was, now = _role(before.properties.get(name), old), _role(after.properties.get(name), new)
            if was != now:
                yield PermissionChange(
                    kind=Direction.OTHER,
                    stack=new.name,
                    principal=after.path,
                    type=after.type,
                    about=SubjectKind.IDENTITY,
                    statement=f"acts as {now}; before: {was}",
                    logical_id=logical_id,
                    source=name,
                )


def _role(value: Json, stack: StackSnapshot) -> str:
    if value is None:
        return "no role that is named"
    reading = Reading(stack)
    own = reading.logical_id(value)
    return reading.shown(value) if own is None else stack.resources[own].path
