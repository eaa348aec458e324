"""What a change opens or closes: networks, ways into data, ways out for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tritonstack.review.exposure_facts import exposure_facts
from tritonstack.review.network_facts import network_facts
from tritonstack.review.opening_change import OpeningChange, OpeningKind
from tritonstack.review.opening_facts import Fact, Owners, compare_facts
from tritonstack.review.permission_change import Direction, PermissionChange
from tritonstack.review.permissions import permission_changes
from tritonstack.review.policies import SubjectKind
from tritonstack.review.renames import renames
from tritonstack.review.snapshot import EnvironmentSnapshot

_KINDS = {
    Direction.WIDER: OpeningKind.OPENED,
    Direction.NARROWER: OpeningKind.CLOSED,
    Direction.OTHER: OpeningKind.OTHER,
}
_WITHOUT_TLS = "Bool aws:securetransport false"


def opening_changes(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> tuple[OpeningChange, ...]:
    """What an environment opens or closes.

    Rules of security groups are compared by the traffic that they let through, wherever they stand. What is closed by
    nature (encryption, a VPC, network isolation, a public access block) is told where its resource is on both sides: a
    resource that is new closes nothing. Sorted; the same for the same snapshots.

    Args:
        before: None where the environment is new.
        after: None where it is gone.
    """
    renamed = _renamed(before, after)
    old = (replace(each, owner=renamed.get((each.stack, each.owner), each.owner)) for each in _facts(before))
    owners = frozenset((stack, renamed.get((stack, name), name)) for stack, name in _owners(before))
    changes = list(compare_facts(old, _facts(after), owners_before=owners, owners_after=_owners(after)))
    for permission in permission_changes(before, after):
        changes += _of_permission(permission)
    return tuple(sorted(changes, key=lambda each: each.order))


def _facts(environment: EnvironmentSnapshot | None) -> Iterator[Fact]:
    for stack in environment.stacks.values() if environment is not None else ():
        yield from network_facts(stack)
        yield from exposure_facts(stack)


def _renamed(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> dict[tuple[str, str], str]:
    """Stack and logical id before → logical id after, of what is the same but for that: it opens and closes nothing."""
    if before is None or after is None:
        return {}
    return {
        (name, old): new
        for name in before.stacks.keys() & after.stacks.keys()
        for new, old in renames(before.stacks[name].resources, after.stacks[name].resources).items()
    }


def _owners(environment: EnvironmentSnapshot | None) -> Owners:
    stacks = environment.stacks.values() if environment is not None else ()
    return frozenset((stack.name, name) for stack in stacks for name in stack.resources)


def _of_permission(change: PermissionChange) -> Iterator[OpeningChange]:
    """What a resource's policy opens: to calls without TLS, to everybody, through a VPC endpoint."""
    if change.about is not SubjectKind.RESOURCE:
        return
    if change.type == "AWS::EC2::VPCEndpoint":
        if not change.whole:
            yield _opening(change, f"its policy: {change.statement}")
    elif not change.allows and _WITHOUT_TLS in change.conditions:
        if not change.whole:
            verb = "are refused from now on" if change.kind is Direction.NARROWER else "are no longer refused"
            yield _opening(change, f"calls without TLS {verb}: {', '.join(change.actions)}")
    elif change.allows and "anybody" in change.who:
        yield _opening(change, f"open to everybody: {change.statement}")


def _opening(change: PermissionChange, sentence: str) -> OpeningChange:
    return OpeningChange(
        kind=_KINDS[change.kind],
        stack=change.stack,
        name=change.principal,
        sentence=sentence,
        logical_id=change.logical_id,
    )
