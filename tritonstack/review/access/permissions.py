"""Permissions that a change widens or narrows, compared by allowed requests, however statements are split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tritonstack.aws.iam_policies import stricter
from tritonstack.review.access.grant_groups import Group, grouped
from tritonstack.review.access.policies import (
    PRINCIPALS,
    Grant,
    Source,
    Subject,
    SubjectKind,
    least,
    subjects_of,
)
from tritonstack.review.access.wildcards import foreign_accounts, wildcards
from tritonstack.review.document import PermissionEntry
from tritonstack.review.intrinsics import StackValues
from tritonstack.review.resource_changes import renamed_ids
from tritonstack.review.snapshot import EnvironmentSnapshot, Findings, Json, StackSnapshot


class Direction(StrEnum):
    """Whether a permission grows."""

    WIDER = "wider"
    NARROWER = "narrower"
    OTHER = "other"
    """Changed, and neither covers the other; or without effect, because a Deny covers it."""


class PermissionChange(PermissionEntry):
    """One statement about a permission, with facts that the document leaves out."""

    type: str | None  # of the principal's resource; None outside the app
    about: SubjectKind  # what the policy is to it
    allows: bool = True  # False for a Deny
    who: tuple[str, ...] = ()  # principals of a trust policy or of a resource's policy; empty in an identity's
    actions: tuple[str, ...] = ()  # sorted
    resources: tuple[str, ...] = ()  # sorted
    conditions: tuple[str, ...] = ()
    wildcards: tuple[str, ...] = ()
    other_accounts: tuple[str, ...] = ()
    whole: bool = False  # whether the role or the resource itself is new or removed

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key of a report: by stack and subject, what widens first."""
        place = list(Direction).index(Direction(self.kind))
        return (self.stack, self.principal, self.about.value, place, self.statement, self.logical_id, self.source)


def permission_changes(before: EnvironmentSnapshot, after: EnvironmentSnapshot) -> tuple[PermissionChange, ...]:
    """Changed permissions of an environment's identities and on its resources. Sorted.

    A grant that one other grant covers, through wildcards or weaker conditions, is no change; nor is one that moved to
    another statement or policy of its subject. A role under another logical id is the same subject where nothing else
    of it changed. Managed policies outside the app, organizations' policies and session policies are unknown.
    """
    moved = {key: each.logical_id for key, each in renamed_ids(before, after).items() if each.type in PRINCIPALS}
    # The subjects before, with the logical ids that identities have after.
    old = {(key[0], moved.get(key[:2], key[1]), key[2]): each for key, each in subjects_of(before).items()}
    new = subjects_of(after)
    changes: list[PermissionChange] = []
    for key, subject in sorted({**old, **new}.items(), key=lambda item: item[0]):
        changes += _Comparison(subject, old.get(key), new.get(key), before=before, after=after).changes()
    for name, stack in sorted(after.stacks.items()):
        changes += _role_changes(before.stacks.get(name), stack)
    return tuple(sorted(changes, key=lambda each: each.order))


@dataclass(frozen=True)
class _Side:
    """A subject before or after the change. ``there``: whether the role or the resource exists."""

    subject: Subject | None
    grants: tuple[Grant, ...]
    there: bool
    findings: Findings | None

    @classmethod
    def of(cls, known: Subject, here: Subject | None, environment: EnvironmentSnapshot) -> _Side:
        stack = environment.stacks.get(known.stack)
        return cls(
            subject=here,
            grants=least(here.grants) if here is not None else (),
            there=stack is not None and (known.type is None or here is not None or known.key[1] in stack.resources),
            findings=environment.findings,
        )

    def covers(self, grant: Grant) -> bool:
        return any(each.covers(grant) for each in self.grants)

    def denies(self, grant: Grant) -> bool:
        return any(each.denies(grant) for each in self.grants)

    def conditions_of_same(self, grant: Grant) -> str | None:
        """Conditions of a grant that differs in nothing else, and is stricter or weaker; None where there is none."""
        found = {
            _when(each)
            for each in self.grants
            if each.same_but_conditions == grant.same_but_conditions
            and (stricter(each.conditions, grant.conditions) or stricter(grant.conditions, each.conditions))
        }
        return " or ".join(sorted(found)) if found else None


class _Comparison:
    """One subject."""

    def __init__(
        self,
        subject: Subject,
        old: Subject | None,
        new: Subject | None,
        *,
        before: EnvironmentSnapshot,
        after: EnvironmentSnapshot,
    ) -> None:
        self._subject = subject
        self._before, self._after = _Side.of(subject, old, before), _Side.of(subject, new, after)

    def changes(self) -> Iterator[PermissionChange]:
        old, new = self._before, self._after
        both = old.there and new.there
        if self._subject.type == "AWS::IAM::ManagedPolicy" and both and None in (old.subject, new.subject):
            return  # on the other side its grants are those of the identities that it is attached to
        yield from self._grants()
        yield from self._managed()
        if both and self._subject.kind is SubjectKind.IDENTITY:
            yield from self._boundary()

    def _grants(self) -> Iterator[PermissionChange]:
        come = [each for each in self._after.grants if not self._before.covers(each)]
        gone = [each for each in self._before.grants if not self._after.covers(each)]
        both = {each.same_but_conditions for each in come} & {each.same_but_conditions for each in gone}
        for grants, came in ((come, True), (gone, False)):
            here = self._after if came else self._before
            for denied in (False, True):
                mine = [each for each in grants if each.same_but_conditions not in both and here.denies(each) is denied]
                for group in grouped(mine):
                    yield self._one_way(group, came=came, denied=denied)
        # Grants on both sides, under conditions of which neither is stricter.
        by_conditions: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Grant]] = {}
        for key in both:
            mine = [each for each in come if each.same_but_conditions == key]
            was = tuple(sorted({_when(each) for each in gone if each.same_but_conditions == key}))
            now = tuple(sorted({_when(each) for each in mine}))
            by_conditions.setdefault((was, now), []).append(mine[0])
        for (was, now), grants in sorted(by_conditions.items()):
            for group in grouped(grants, by_conditions=False):
                verb = "may under other conditions" if grants[0].allows else "is denied under other conditions"
                sentence = (
                    f"{self._who(group, verb)}{group.words} — before: {' or '.join(was)}; now: {' or '.join(now)}"
                )
                yield self._of_group(group, Direction.OTHER, sentence, self._after, conditions=now)

    def _one_way(self, group: Group, *, came: bool, denied: bool) -> PermissionChange:
        """Grants that are on one side alone."""
        here, there = (self._after, self._before) if came else (self._before, self._after)
        first, whole = group.grants[0], not there.there
        kind = Direction.WIDER if came is first.allows else Direction.NARROWER
        if denied or (whole and not first.allows):
            kind = Direction.OTHER
        conditions = tuple(each.words for each in sorted(first.conditions))
        others = there.conditions_of_same(first)
        if others is not None:
            verb = "is denied under other conditions"
            if first.allows:
                verb = "may now under weaker conditions" if came else "may only under stricter conditions now"
            was, now = (others, _when(first)) if came else (_when(first), others)
            sentence = f"{self._who(group, verb)}{group.words} — before: {was}; now: {now}"
            return self._of_group(group, kind, sentence, here, conditions=conditions)
        verb = {
            (True, True): "may now",
            (True, False): "may no longer",
            (False, True): "is denied from now on",
            (False, False): "is no longer denied",
        }[first.allows, came]
        prefix = ""
        if whole:
            prefix = ("new" if came else "gone") + ("" if first.allows else ", with a Deny") + ": "
            verb = ("may" if came else "could") + ("" if first.allows else " not")
        sentence = f"{prefix}{self._who(group, verb)}{group.words}"
        sentence += f", if {_when(first)}" if conditions else ""
        sentence += " (without effect: a Deny overrides it)" if denied else ""
        return self._of_group(group, kind, sentence, here, conditions=conditions)

    def _who(self, group: Group, verb: str) -> str:
        """The verb, with the principals of a resource's policy or a trust policy."""
        assumes = self._subject.kind is SubjectKind.TRUST and verb.startswith(("may", "could"))
        return f"{', '.join(group.principals)} {verb}{' assume it' if assumes else ''}: ".lstrip()

    def _managed(self) -> Iterator[PermissionChange]:
        old, new = ({} if side.subject is None else side.subject.managed for side in (self._before, self._after))
        for name in sorted(old.keys() ^ new.keys()):
            came, last = name in new, name.rpartition("/")[2]
            broad = last.endswith(("AdministratorAccess", "PowerUserAccess", "FullAccess"))
            yield self._made(
                Direction.WIDER if came else Direction.NARROWER,
                f"{'may now' if came else 'may no longer'} do what the managed policy {name} allows",
                (new if came else old)[name],
                wildcards=(f"managed policy {last} is broad by its name",) if broad else (),
            )

    def _boundary(self) -> Iterator[PermissionChange]:
        old, new = (None if side.subject is None else side.subject.boundary for side in (self._before, self._after))
        if old is None and new is not None:
            yield self._made(Direction.NARROWER, f"is bounded from now on by {new[0]}", new[1])
        elif old is not None and new is None:
            yield self._made(Direction.WIDER, f"is no longer bounded by {old[0]}", old[1])
        elif old is not None and new is not None and old[0] != new[0]:
            sentence = f"is bounded by {new[0]}, no longer by {old[0]}; what they allow is not known here"
            yield self._made(Direction.OTHER, sentence, new[1])

    def _of_group(
        self, group: Group, kind: Direction, sentence: str, side: _Side, *, conditions: tuple[str, ...]
    ) -> PermissionChange:
        return self._made(
            kind,
            sentence,
            min(each.source for each in group.grants),
            allows=group.grants[0].allows,
            who=group.principals,
            actions=group.actions,
            resources=group.resources,
            conditions=conditions,
            wildcards=wildcards(group.grants, subject=self._subject, findings=side.findings),
            other_accounts=foreign_accounts(group.grants, self._subject.values.stack.account),
        )

    def _made(self, kind: Direction, sentence: str, source: Source, **members: Any) -> PermissionChange:
        return PermissionChange(
            kind=kind,
            stack=self._subject.stack,
            principal=self._subject.name,
            type=self._subject.type,
            about=self._subject.kind,
            whole=self._before.there is not self._after.there,
            statement=sentence,
            logical_id=source.logical_id,
            source=source.property,
            **members,
        )


def _when(grant: Grant) -> str:
    return " and ".join(each.words for each in sorted(grant.conditions)) or "always"


_ROLES = ("DeliverLogsPermissionArn", "ExecutionRoleArn", "Role", "RoleARN", "RoleArn", "ServiceRole", "TaskRoleArn")
"""Properties that name the role that a resource acts as."""
_OUTSIDE = ", a role outside the app, whose permissions no stack sets"


def _role_changes(old: StackSnapshot | None, new: StackSnapshot) -> Iterator[PermissionChange]:
    """Resources that act as another role than before, and new ones that act as a role outside the app."""
    for logical_id, after in sorted(new.resources.items()):
        before = None if old is None else old.resources.get(logical_id)
        for name in _ROLES:
            now = _role(after.properties.get(name), new)
            was = None if old is None or before is None else _role(before.properties.get(name), old)
            if was != now and (was is not None or _OUTSIDE in now):
                yield PermissionChange(
                    kind=Direction.OTHER,
                    stack=new.name,
                    principal=after.path,
                    type=after.type,
                    about=SubjectKind.IDENTITY,
                    statement=f"acts as {now}" if was is None else f"acts as {now}; before: {was}",
                    logical_id=logical_id,
                    source=name,
                )


def _role(value: Json, stack: StackSnapshot) -> str:
    if value is None:
        return "no role that is named"
    values = StackValues(stack)
    own = values.logical_id(value)
    if own is not None:
        return stack.resources[own].path
    return f"{values.shown(value)}{_OUTSIDE if isinstance(value, str) and ':role/' in value else ''}"
