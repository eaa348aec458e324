"""Permissions that widen or narrow, compared by what they say and not by how their statements are cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tritonstack.review import permission_change
from tritonstack.review.grants import Grant, Source, held_together, least
from tritonstack.review.iam_patterns import stricter, words
from tritonstack.review.permission_change import Direction, Group, PermissionChange, grouped, role_changes
from tritonstack.review.policies import PRINCIPALS, Key, Subject, SubjectKind, foreign_accounts, subjects_of, wildcards
from tritonstack.review.reading import renames
from tritonstack.review.snapshot import EnvironmentSnapshot, Findings


def permission_changes(
    before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None
) -> tuple[PermissionChange, ...]:
    """What an environment's identities may do, and what may be done with its resources, that is another than before.

    Statements are split to grants of one principal, action and resource each. A grant that another one covers, through
    wildcards or weaker conditions, is no news; nor is one that several others hold together (``together`` says how far
    that is seen), or one that moved to another statement or policy of its subject. A role under another logical id is
    the same subject where nothing else of it changed. Nothing is known of managed policies that are not of the app, of
    organisations' policies, or of sessions'. Sorted; the same for the same snapshots.

    Args:
        before: None where the environment is new.
        after: None where it is gone.
    """
    old, new = _by_new_ids(subjects_of(before), before, after), subjects_of(after)
    changes: list[PermissionChange] = []
    for key, subject in sorted({**old, **new}.items(), key=lambda item: item[0]):
        comparison = _Comparison(subject, old.get(key), new.get(key), before=before, after=after)
        changes += comparison.changes()
    changes += role_changes(before, after)
    return tuple(sorted(changes, key=lambda each: each.order))


@dataclass(frozen=True)
class _Side:
    """One side of a subject."""

    grants: tuple[Grant, ...]
    denies: tuple[Grant, ...]
    there: bool
    findings: Findings | None


class _Comparison:
    """One subject."""

    def __init__(
        self,
        subject: Subject,
        old: Subject | None,
        new: Subject | None,
        *,
        before: EnvironmentSnapshot | None,
        after: EnvironmentSnapshot | None,
    ) -> None:
        self._old, self._new = old, new
        self._subject = subject
        self._before = _side(subject, old, before)
        self._after = _side(subject, new, after)

    def changes(self) -> Iterator[PermissionChange]:
        both = self._before.there and self._after.there
        if self._subject.type == "AWS::IAM::ManagedPolicy" and both and (self._old is None or self._new is None):
            return  # it speaks at the identities that it is attached to on the other side
        yield from self._grants()
        yield from self._managed()
        yield from self._boundary()

    def _grants(self) -> Iterator[PermissionChange]:
        come = _not_covered(self._after.grants, self._before.grants)
        gone = _not_covered(self._before.grants, self._after.grants)
        both = {each.same_but_conditions for each in come} & {each.same_but_conditions for each in gone}
        for grants, came in ((come, True), (gone, False)):
            here = self._after if came else self._before
            for denied in (False, True):
                told = [each for each in grants if each.same_but_conditions not in both]
                for group in grouped(each for each in told if _is_denied(each, here.denies) is denied):
                    yield self._change(group, came=came, denied=denied)
        yield from self._conditions(come, gone, both)

    def _change(self, group: Group, *, came: bool, denied: bool) -> PermissionChange:
        here, there = (self._after, self._before) if came else (self._before, self._after)
        first = group.grants[0]
        whole = not there.there
        if denied or (whole and not first.allows):
            kind = Direction.OTHER
        else:
            kind = Direction.WIDER if came is first.allows else Direction.NARROWER
        others = _others(first, there.grants)
        sentence = permission_change.sentence(
            group, subject=self._subject, came=came, denied=denied, whole=whole, others=others
        )
        return self._made(group, kind, sentence, here, conditions=words(first.conditions))

    def _conditions(
        self, come: Iterable[Grant], gone: Iterable[Grant], both: set[tuple[object, ...]]
    ) -> Iterator[PermissionChange]:
        """Grants that hold under conditions of which neither is stricter."""
        after = _by_conditions(come, both)
        before = _by_conditions(gone, both)
        same: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Grant]] = {}
        for key, (conditions, grant) in after.items():
            same.setdefault((before[key][0], conditions), []).append(grant)
        for (was, now), grants in sorted(same.items()):
            for group in grouped(grants, by_conditions=False):
                sentence = permission_change.changed(group, subject=self._subject, was=was, now=now)
                yield self._made(group, Direction.OTHER, sentence, self._after, conditions=now)

    def _managed(self) -> Iterator[PermissionChange]:
        old = self._old.managed if self._old else {}
        new = self._new.managed if self._new else {}
        for name in sorted(old.keys() ^ new.keys()):
            came = name in new
            verb = "may now do" if came else "may no longer do"
            yield self._plain(
                Direction.WIDER if came else Direction.NARROWER,
                f"{verb} what the managed policy {name} allows",
                (new if came else old)[name],
                wild=permission_change.broad_managed_policy(name),
            )

    def _boundary(self) -> Iterator[PermissionChange]:
        if not (self._before.there and self._after.there) or self._subject.kind is not SubjectKind.IDENTITY:
            return
        old = self._old.boundary if self._old else None
        new = self._new.boundary if self._new else None
        match old, new:
            case (None, (str(name), Source() as source)):
                yield self._plain(Direction.NARROWER, f"is bounded from now on by {name}", source)
            case ((str(name), Source() as source), None):
                yield self._plain(Direction.WIDER, f"is no longer bounded by {name}", source)
            case ((str(was), _), (str(name), Source() as source)) if was != name:
                sentence = f"is bounded by {name}, no longer by {was}; what they allow is not known here"
                yield self._plain(Direction.OTHER, sentence, source)

    def _plain(self, kind: Direction, sentence: str, source: Source, *, wild: tuple[str, ...] = ()) -> PermissionChange:
        return PermissionChange(
            kind=kind,
            stack=self._subject.stack,
            principal=self._subject.name,
            type=self._subject.type,
            about=self._subject.kind,
            whole=self._before.there is not self._after.there,
            statement=sentence,
            wildcards=wild,
            logical_id=source.logical_id,
            source=source.property,
        )

    def _made(
        self, group: Group, kind: Direction, sentence: str, side: _Side, *, conditions: tuple[str, ...]
    ) -> PermissionChange:
        first = group.grants[0]
        source = min(each.source for each in group.grants)
        return PermissionChange(
            kind=kind,
            stack=self._subject.stack,
            principal=self._subject.name,
            type=self._subject.type,
            about=self._subject.kind,
            whole=self._before.there is not self._after.there,
            statement=sentence,
            allows=first.allows,
            who=group.principals,
            actions=group.actions,
            resources=group.resources,
            conditions=conditions,
            wildcards=wildcards(group.grants, subject=self._subject, findings=side.findings),
            other_accounts=foreign_accounts(group.grants, self._subject.account),
            logical_id=source.logical_id,
            source=source.property,
        )


def _by_new_ids(
    subjects: Mapping[Key, Subject], before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None
) -> Mapping[Key, Subject]:
    """The subjects before, in which an identity has the logical id that it has after."""
    if before is None or after is None:
        return subjects
    moved = {
        (stack, old): new
        for stack in before.stacks.keys() & after.stacks.keys()
        for new, old in renames(before.stacks[stack].resources, after.stacks[stack].resources).items()
        if after.stacks[stack].resources[new].type in PRINCIPALS
    }
    return {(stack, moved.get((stack, name), name), kind): each for (stack, name, kind), each in subjects.items()}


def _side(subject: Subject, here: Subject | None, environment: EnvironmentSnapshot | None) -> _Side:
    stack = environment.stacks.get(subject.stack) if environment is not None else None
    grants = least(here.grants) if here is not None else ()
    return _Side(
        grants=grants,
        denies=tuple(each for each in grants if not each.allows),
        there=stack is not None and (subject.type is None or here is not None or subject.key[1] in stack.resources),
        findings=environment.findings if environment is not None else None,
    )


def _not_covered(grants: Iterable[Grant], by: tuple[Grant, ...]) -> list[Grant]:
    return [each for each in grants if not held_together(each, by)]


def _is_denied(grant: Grant, denies: Iterable[Grant]) -> bool:
    return any(each.denies(grant) for each in denies)


def _others(grant: Grant, there: Iterable[Grant]) -> tuple[str, ...] | None:
    """The conditions of the same grant on the other side, where only those differ; None where there is no such.

    Of several such grants any is enough: they are one text then.
    """
    found = [
        words(other.conditions)
        for other in there
        if other.same_but_conditions == grant.same_but_conditions
        and (stricter(other.conditions, grant.conditions) or stricter(grant.conditions, other.conditions))
    ]
    if len(found) > 1:
        return (" or ".join(sorted(" and ".join(each) for each in found)),)
    return found[0] if found else None


def _by_conditions(
    grants: Iterable[Grant], keys: set[tuple[object, ...]]
) -> dict[tuple[object, ...], tuple[tuple[str, ...], Grant]]:
    """Each grant, with the conditions of all that differ from it in these alone."""
    found: dict[tuple[object, ...], tuple[tuple[str, ...], Grant]] = {}
    for grant in grants:
        key = grant.same_but_conditions
        if key in keys:
            mine = " and ".join(words(grant.conditions)) or "always"
            told, first = found.get(key, ((), grant))
            found[key] = (tuple(sorted({*told, mine})), first)
    return found
