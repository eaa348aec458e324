"""Changes of permissions: grants put together again to statements, in plain words; roles that resources act as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tritonstack.review.grants import Element, Grant
from tritonstack.review.iam_patterns import words
from tritonstack.review.policies import Subject, SubjectKind
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, StackSnapshot


class Direction(StrEnum):
    """Where a permission goes."""

    WIDER = "wider"
    NARROWER = "narrower"
    OTHER = "other"
    """Changed, and neither holds the other; or without effect, because a Deny stands against it."""


@dataclass(frozen=True, kw_only=True)
class PermissionChange:
    """One statement about a permission.

    Attributes:
        kind: where it goes.
        stack: the stack's name in its environment.
        principal: whom the policy is about: the construct path of the role or of the resource.
        type: of that resource; None where it is not of the app.
        about: what the policy is to it.
        statement: what is other than before, a sentence without its subject: ``may now: s3:GetObject on …``.
        allows: whether statements that allow are meant; False for a Deny.
        who: principals of a trust policy or of a resource's policy; empty in an identity's.
        actions: sorted.
        resources: sorted; empty where the policy names none.
        conditions: tests that a request must pass.
        wildcards: what is broad in it, each with the reason why that is accepted, where a policy finding says it.
        other_accounts: accounts among the principals that are not the stack's.
        whole: whether the role or the resource itself comes or goes with it.
        logical_id: of the resource that the statement stands in, after the change or before it where it is gone.
        source: the property there, such as ``PolicyDocument.Statement[ReadArchives]``.
    """

    kind: Direction
    stack: str
    principal: str
    type: str | None
    about: SubjectKind
    statement: str
    allows: bool = True
    who: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    wildcards: tuple[str, ...] = ()
    other_accounts: tuple[str, ...] = ()
    whole: bool = False
    logical_id: str
    source: str

    @property
    def order(self) -> tuple[object, ...]:
        """A place in a report: by stack and subject, what widens first."""
        place = list(Direction).index(self.kind)
        return (self.stack, self.principal, self.about.value, place, self.statement, self.logical_id, self.source)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Grants that make one statement: every one of its principals, actions and resources with each other.

    Attributes:
        grants: in order.
        principals: sorted; empty in a policy of an identity.
        actions: sorted.
        resources: sorted.
    """

    grants: tuple[Grant, ...]
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]


def grouped(grants: Iterable[Grant], *, by_conditions: bool = True) -> tuple[Group, ...]:
    """As few statements as merging by action, then by resource, then by principal gives; sorted.

    Args:
        grants: in any order.
        by_conditions: whether grants with other conditions stay apart.
    """
    cells = [_Cell.of(each, by_conditions=by_conditions) for each in sorted(grants, key=lambda each: each.order)]
    for merge in (_actions, _resources, _principals):
        cells = _merged(cells, merge)
    return tuple(each.group() for each in cells)


@dataclass(frozen=True, kw_only=True)
class _Cell:
    base: tuple[object, ...]
    principals: frozenset[Element | None]
    actions: frozenset[Element]
    resources: frozenset[Element]
    grants: tuple[Grant, ...]

    @classmethod
    def of(cls, grant: Grant, *, by_conditions: bool) -> _Cell:
        return cls(
            base=(grant.allows, grant.conditions if by_conditions else None),
            principals=frozenset({grant.principal}),
            actions=frozenset({grant.action}),
            resources=frozenset({grant.resource}),
            grants=(grant,),
        )

    def group(self) -> Group:
        return Group(
            grants=tuple(sorted(self.grants, key=lambda each: each.order)),
            principals=tuple(sorted(each.words for each in self.principals if each is not None)),
            actions=tuple(sorted(each.words for each in self.actions)),
            resources=tuple(sorted(each.words for each in self.resources)),
        )


def _actions(cell: _Cell) -> tuple[object, ...]:
    return (cell.base, cell.principals, cell.resources)


def _resources(cell: _Cell) -> tuple[object, ...]:
    return (cell.base, cell.principals, cell.actions)


def _principals(cell: _Cell) -> tuple[object, ...]:
    return (cell.base, cell.actions, cell.resources)


def _merged(cells: Iterable[_Cell], same: Callable[[_Cell], tuple[object, ...]]) -> list[_Cell]:
    """Cells that are the same but in one part, as one."""
    found: dict[tuple[object, ...], _Cell] = {}
    for cell in cells:
        other = found.setdefault(same(cell), cell)
        if other is not cell:
            found[same(cell)] = _Cell(
                base=cell.base,
                principals=other.principals | cell.principals,
                actions=other.actions | cell.actions,
                resources=other.resources | cell.resources,
                grants=other.grants + cell.grants,
            )
    return list(found.values())


_BROAD = ("AdministratorAccess", "PowerUserAccess", "FullAccess", "IAMFullAccess")


def sentence(
    group: Group, *, subject: Subject, came: bool, denied: bool, whole: bool, others: tuple[str, ...] | None
) -> str:
    """What comes or goes.

    Args:
        group: the statement.
        subject: whom it is about.
        came: whether it holds from now on; False: no longer.
        denied: whether a Deny stands against all of it.
        whole: whether the subject comes or goes with it.
        others: the conditions under which the same is said on the other side; None where it is not.
    """
    first = group.grants[0]
    conditions = words(first.conditions)
    if others is not None:
        if came is first.allows:
            verb = "may now under weaker conditions" if first.allows else "is denied under other conditions"
        else:
            verb = "may only under stricter conditions now" if first.allows else "is denied under other conditions"
        was, now = (others, conditions) if came else (conditions, others)
        return _who(group, subject, verb) + _what(group) + f" — before: {_when(was)}; now: {_when(now)}"
    verb = _verb(allows=first.allows, came=came)
    text = (_whole(group, subject, came=came) if whole else _who(group, subject, verb)) + _what(group)
    if conditions:
        text += f", if {' and '.join(conditions)}"
    if denied:
        text += " (without effect: a Deny stands against it)"
    return text


def changed(group: Group, *, subject: Subject, was: tuple[str, ...], now: tuple[str, ...]) -> str:
    """What holds under conditions that changed, of which neither is stricter."""
    verb = "may under other conditions" if group.grants[0].allows else "is denied under other conditions"
    return _who(group, subject, verb) + _what(group) + f" — before: {' or '.join(was)}; now: {' or '.join(now)}"


def broad_managed_policy(name: str) -> tuple[str, ...]:
    """What is broad in one of AWS's own managed policies, by its name."""
    last = name.rpartition("/")[2]
    return (f"managed policy {last} is broad by its name",) if last.endswith(_BROAD) else ()


def _verb(*, allows: bool, came: bool) -> str:
    return {
        (True, True): "may now",
        (True, False): "may no longer",
        (False, True): "is denied from now on",
        (False, False): "is no longer denied",
    }[allows, came]


def _whole(group: Group, subject: Subject, *, came: bool) -> str:
    """What a subject that comes or goes says of itself."""
    word = "new" if came else "gone"
    if group.grants[0].allows:
        return f"{word}: {_who(group, subject, 'may' if came else 'could')}"
    return f"{word}, with a Deny: {_who(group, subject, 'may not' if came else 'could not')}"


def _who(group: Group, subject: Subject, verb: str) -> str:
    """The verb, with who it is that may, where the subject is a resource or a role to assume."""
    names = ", ".join(group.principals)
    act = f"{verb} assume it" if subject.kind is SubjectKind.TRUST and verb.startswith(("may", "could")) else verb
    return f"{names} {act}: ".lstrip()


def _what(group: Group) -> str:
    actions = ", ".join(group.actions)
    return actions if group.resources == ("*",) and group.principals else f"{actions} on {', '.join(group.resources)}"


def _when(conditions: tuple[str, ...]) -> str:
    return " and ".join(conditions) or "always"


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
