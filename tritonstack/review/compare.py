"""Comparison of two sets of snapshots: the effect of deploying the second over the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tritonstack import naming
from tritonstack.review.change import ABSENT, Effect, EnvironmentChange, PropertyChange, ResourceChange, StackChange
from tritonstack.review.differences import differences
from tritonstack.review.document import FilesEntry, FindingEntry
from tritonstack.review.intrinsics import assets_in, references
from tritonstack.review.resource_changes import SSM_PARAMETER, Certainty, moved_values, resource_changes
from tritonstack.review.snapshot import EnvironmentSnapshot, Findings, Json, Snapshots, StackSnapshot
from tritonstack.review.traffic import traffic_changes


def compare(before: Snapshots, after: Snapshots) -> tuple[EnvironmentChange, ...]:
    """Effects of deploying ``after`` over ``before``; every environment of either, by name."""
    old, new = before.environments, after.environments
    return tuple(_environment(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))


def _environment(name: str, before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> EnvironmentChange:
    old = {} if before is None else before.stacks
    new = {} if after is None else after.stacks
    stacks = _stacks(old, new, removed=after is None)
    sides = [None if each is None else each.findings for each in (before, after)]
    findings = tuple(_findings(*sides))
    effect = None
    if before is None or after is None:
        effect = Effect.NEW if before is None else Effect.REMOVED
    elif stacks or findings:
        effect = Effect.CHANGED
    known = None not in sides
    return EnvironmentChange(name=name, effect=effect, stacks=stacks, findings=findings, findings_known=known)


def _stacks(
    old: Mapping[str, StackSnapshot], new: Mapping[str, StackSnapshot], *, removed: bool
) -> tuple[StackChange, ...]:
    """Every stack that changes; one may change because another writes another value into an SSM parameter.

    ``removed``: whether the whole environment is.
    """
    values: dict[str, Certainty] = {}
    while True:
        names = sorted(old.keys() | new.keys())
        found = (_stack(old.get(name), new.get(name), values, removed=removed) for name in names)
        stacks = tuple(each for each in found if each is not None)
        moved = moved_values(each for stack in stacks for each in stack.resources)
        if moved == values:
            return _left_behind(stacks, old)
        values = moved


def _stack(
    before: StackSnapshot | None, after: StackSnapshot | None, values: Mapping[str, Certainty], *, removed: bool
) -> StackChange | None:
    """The change of a stack; None where there is none."""
    if after is None:
        assert before is not None  # noqa: S101 - a name is on one side at least
        reason = (
            f"The app no longer has it. No deployment removes it: {before.stack_name} stays and is billed until it is "
            f"deleted. After the deployment: {_deletion(before, removed=removed)}"
        )
        return replace(_changed(before, _emptied(before), {}), effect=Effect.REMOVED, reasons=(reason,))
    if before is None:
        return replace(_changed(_emptied(after), after, {}), effect=Effect.NEW)
    identity = tuple(differences(_identity(before), _identity(after)))
    if identity:
        reason = (
            f"Another stack takes its place. No deployment removes {before.stack_name}: it stays and is billed until "
            f"it is deleted. After the deployment: {_deletion(before, now=after)}"
        )
        made = _changed(_emptied(after), after, {})
        return replace(made, effect=Effect.REPLACED, reasons=(reason,), template=identity)
    change = _changed(before, after, values)
    return change if change.resources or change.template or change.assets or change.documents else None


def _deletion(stack: StackSnapshot, *, now: StackSnapshot | None = None, removed: bool = False) -> str:
    """The command that deletes a stack which the app lost.

    ``now``: what takes its place. ``removed``: the environment has no file any more.
    """
    environment = stack.tags.get(naming.ENVIRONMENT_TAG)
    moved = removed or (now is not None and now.region != stack.region)
    place = f" --region {stack.region}" if moved and stack.region else ""
    if now is not None and now.account != stack.account:
        return (
            f"with credentials of account {stack.account}, aws cloudformation delete-stack --stack-name "
            f"{stack.stack_name} --region {stack.region}"
        )
    if environment is None or stack.name == naming.PIPELINE_ACCESS:
        return f"aws cloudformation delete-stack --stack-name {stack.stack_name}{place}"
    return f"tritonstack leftovers -e {environment}{place}{' --removed' if removed else ''} --delete"


def _changed(before: StackSnapshot, after: StackSnapshot, values: Mapping[str, Certainty]) -> StackChange:
    resources = resource_changes(before, after, values=values)
    return StackChange(
        name=after.name,
        stack_name=after.stack_name,
        effect=Effect.CHANGED,
        resources=resources,
        template=tuple(differences(_sections(before), _sections(after))),
        assets=tuple(_assets(before, after)),
        documents=dict(_documents(before, after)),
        traffic=traffic_changes(before, after, resources),
    )


def _emptied(stack: StackSnapshot) -> StackSnapshot:
    return replace(stack, tags={}, template={}, resources={}, documents={}, assets={})


def _identity(stack: StackSnapshot) -> dict[str, Json]:
    return {"StackName": stack.stack_name, "Account": stack.account, "Region": stack.region}


def _sections(stack: StackSnapshot) -> dict[str, Json]:
    return {**stack.template, **({"StackTags": dict(stack.tags)} if stack.tags else {})}


def _assets(before: StackSnapshot, after: StackSnapshot) -> Iterator[FilesEntry]:
    for path in sorted(before.assets.keys() | after.assets.keys()):
        was, now = before.assets.get(path), after.assets.get(path)
        if was == now:
            continue
        old, new = ({} if each is None else each.files for each in (was, now))
        stack = before if now is None else after
        yield FilesEntry(
            path=path,
            kind=stack.assets[path].kind.value,
            new=tuple(sorted(new.keys() - old.keys())),
            changed=tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
            removed=tuple(sorted(old.keys() - new.keys())),
            users=tuple(name for name, each in stack.resources.items() if path in set(assets_in(each.properties))),
        )


def _documents(before: StackSnapshot, after: StackSnapshot) -> Iterator[tuple[str, tuple[PropertyChange, ...]]]:
    for path in sorted(before.documents.keys() | after.documents.keys()):
        old, new = before.documents.get(path, ABSENT), after.documents.get(path, ABSENT)
        members = tuple(differences({} if old is ABSENT else old, {} if new is ABSENT else new))
        if members or (old is ABSENT) != (new is ABSENT):
            yield path, members


def _findings(before: Findings | None, after: Findings | None) -> Iterator[FindingEntry]:
    """Policy findings that come, go, or are accepted; none where a side was not validated."""
    if before is None or after is None:
        return
    come, gone = sorted(set(after) - set(before)), sorted(set(before) - set(after))
    kinds = {
        "new": [each for each in come if not each.accepted],
        "gone": [each for each in gone if not each.accepted],
        "accepted": [each for each in come if each.accepted],
        "no longer accepted": [each for each in gone if each.accepted],
    }
    for kind, found in kinds.items():
        for each in found:
            yield FindingEntry.model_validate({**vars(each), "change": kind, "reason": each.accepted or None})


# Subnets, security groups and VPCs that an endpoint of another stack still runs in. That stack reads their ids from SSM
# parameters and is deployed later, so EC2 refuses to delete them (API reference, error codes: DependencyViolation), and
# CloudFormation leaves them: it "tries to delete a resource three times before CloudFormation skips the resource and
# continues the cleanup process" (re:Post, "Why is my CloudFormation stack stuck in the
# UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS or UPDATE_COMPLETE_CLEANUP_IN_PROGRESS state?").
LEFT = "left behind"
"""The words of such a reason."""
_SUBNET_OR_GROUP = {"AWS::EC2::Subnet", "AWS::EC2::SecurityGroup"}


def _left_behind(changes: Iterable[StackChange], before: Mapping[str, StackSnapshot]) -> tuple[StackChange, ...]:
    """The changes, with a reason on each resource that cannot be deleted yet."""
    users = _users(before)
    return tuple(
        each
        if each.effect is Effect.REMOVED
        else replace(
            each, resources=tuple(_with_users(one, users.get((each.name, one.logical_id))) for one in each.resources)
        )
        for each in changes
    )


def _with_users(change: ResourceChange, stacks: set[str] | None) -> ResourceChange:
    if stacks is None or change.effect not in {Effect.REMOVED, Effect.REPLACED}:
        return change
    subject = "It" if change.effect is Effect.REMOVED else "The old one"
    reason = (
        f"{subject} is {LEFT}: the fleet of {', '.join(sorted(stacks))}, which is deployed after it, still runs in it, "
        "and EC2 refuses to delete it. Move the endpoints first, in a deployment of its own."
    )
    return replace(change, reasons=(*change.reasons, reason))


def _users(stacks: Mapping[str, StackSnapshot]) -> dict[tuple[str, str], set[str]]:
    """Stack and logical id → CloudFormation names of the other stacks whose endpoints run in it."""
    written = {
        each.properties.get("Name"): (stack, each) for stack in stacks.values() for each in stack.of_type(SSM_PARAMETER)
    }
    found: dict[tuple[str, str], set[str]] = {}
    for reader in stacks.values():
        for name in _network_parameters(reader):
            writer, parameter = written.get(name, (reader, None))
            if parameter is None or writer is reader:
                continue
            for logical_id in _of_types(writer, parameter.properties.get("Value"), _SUBNET_OR_GROUP):
                vpcs = _of_types(writer, writer.resources[logical_id].properties.get("VpcId"), {"AWS::EC2::VPC"})
                for used in (logical_id, *vpcs):
                    found.setdefault((writer.name, used), set()).add(reader.stack_name)
    return found


def _network_parameters(stack: StackSnapshot) -> Iterator[str]:
    """Names of the SSM parameters that a stack's models take their network from."""
    given = stack.template.get("Parameters", {})
    for model in stack.of_type("AWS::SageMaker::Model"):
        for name in references(model.properties.get("VpcConfig")):
            default = given.get(name, {}).get("Default")
            if isinstance(default, str):
                yield default


def _of_types(stack: StackSnapshot, value: Json, types: set[str]) -> list[str]:
    """Logical ids of the stack's resources of some types that a value refers to."""
    return [name for name in references(value) if name in stack.resources and stack.resources[name].type in types]
