"""Two sets of snapshots compared: what a deployment of the second over the first would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tritonstack.review.change import (
    ABSENT,
    AssetChange,
    Changes,
    DocumentChange,
    Effect,
    EnvironmentChange,
    FindingChanges,
    PropertyChange,
    ResourceChange,
    StackChange,
)
from tritonstack.review.resource_changes import Certainty, differences, moved_values, resource_changes
from tritonstack.review.snapshot import (
    Asset,
    EnvironmentSnapshot,
    Findings,
    Json,
    Snapshots,
    StackSnapshot,
    assets_in,
    references,
)
from tritonstack.review.traffic import traffic_changes

# A stack that reads another's values is deployed after it. So what goes there goes while the old fleet is in it: EC2
# refuses (API reference, error codes: DependencyViolation). CloudFormation "tries to delete a resource three times
# before CloudFormation skips the resource and continues the cleanup process" (re:Post, "Why is my CloudFormation stack
# stuck in the UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS or UPDATE_COMPLETE_CLEANUP_IN_PROGRESS state?").
MODEL, PARAMETER, SUBNET, GROUP, VPC = (
    "AWS::SageMaker::Model",
    "AWS::SSM::Parameter",
    "AWS::EC2::Subnet",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::VPC",
)
LEFT = "left behind"
"""The words of a reason that says so."""
_GOES = {Effect.REMOVED, Effect.REPLACED}
Used = Mapping[tuple[str, str], tuple[str, ...]]
"""Stack and logical id → the stacks whose endpoints run in it."""


def left_behind(changes: Iterable[StackChange], *, before: Mapping[str, StackSnapshot]) -> tuple[StackChange, ...]:
    """The changes, in which what cannot go says so. ``before``: every stack before the change, by name."""
    used = _used(before)
    return tuple(_stack_in_use(each, before.get(each.name), used) for each in changes)


def _stack_in_use(change: StackChange, before: StackSnapshot | None, used: Used) -> StackChange:
    users = {name: stacks for (stack, name), stacks in used.items() if stack == change.name}
    if before is None or not users or change.effect is Effect.REMOVED:
        return change
    users |= {vpc: stacks for name, stacks in users.items() for vpc in _vpcs(before, name)}
    return replace(
        change, resources=tuple(_resource_in_use(each, users.get(each.logical_id)) for each in change.resources)
    )


def _resource_in_use(change: ResourceChange, stacks: tuple[str, ...] | None) -> ResourceChange:
    if stacks is None or change.effect not in _GOES:
        return change
    it = "It" if change.effect is Effect.REMOVED else "The old one"
    told = (
        f"{it} is {LEFT}: the fleet of {', '.join(stacks)}, which is deployed after it, still runs in it, and EC2 "
        "refuses to delete it. Move the endpoints first, in a deployment of its own."
    )
    return replace(change, reasons=(*change.reasons, told))


def _used(stacks: Mapping[str, StackSnapshot]) -> Used:
    told = {
        each.properties.get("Name"): (stack, each) for stack in stacks.values() for each in stack.of_type(PARAMETER)
    }
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for reader in stacks.values():
        for name in _parameters(reader):
            if name not in told:
                continue
            teller, parameter = told[name]
            for logical_id in references(parameter.properties.get("Value")):
                resource = teller.resources.get(logical_id)
                if teller is not reader and resource is not None and resource.type in {SUBNET, GROUP}:
                    key = teller.name, logical_id
                    found[key] = tuple(sorted({*found.get(key, ()), reader.stack_name}))
    return found


def _parameters(stack: StackSnapshot) -> Iterator[str]:
    """The names of the SSM parameters that a stack's models take their network from."""
    given = stack.template.get("Parameters", {})
    for model in stack.of_type(MODEL):
        for name in references(model.properties.get("VpcConfig")):
            default = given.get(name, {}).get("Default")
            if isinstance(default, str):
                yield default


def _vpcs(stack: StackSnapshot, logical_id: str) -> Iterator[str]:
    """The VPC of the same stack that a subnet or a security group lies in."""
    for name in references(stack.resources[logical_id].properties.get("VpcId")):
        if name in stack.resources and stack.resources[name].type == VPC:
            yield name


def compare(before: Snapshots, after: Snapshots) -> Changes:
    """What deploying ``after`` would do where ``before`` is deployed; every environment of either, by name."""
    names = sorted(before.environments.keys() | after.environments.keys())
    return Changes(
        environments=tuple(_environment(before.environments.get(name), after.environments.get(name)) for name in names)
    )


def _environment(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> EnvironmentChange:
    old = {} if before is None else before.stacks
    new = {} if after is None else after.stacks
    stacks = _stacks(old, new)
    findings = finding_changes(None if before is None else before.findings, None if after is None else after.findings)
    if before is None:
        effect: Effect | None = Effect.NEW
    elif after is None:
        effect = Effect.REMOVED
    else:
        accepted = findings.accepted or findings.no_longer_accepted or findings.reworded
        moved = findings.new or findings.gone or accepted
        effect = Effect.CHANGED if stacks or moved else None
    present = after or before
    return EnvironmentChange(
        name="" if present is None else present.name, effect=effect, stacks=stacks, findings=findings
    )


def _stacks(old: Mapping[str, StackSnapshot], new: Mapping[str, StackSnapshot]) -> tuple[StackChange, ...]:
    """Every stack that changes; one may change because another writes another value into an SSM parameter."""
    values: dict[str, Certainty] = {}
    while True:
        found = (_stack(old.get(name), new.get(name), values) for name in sorted(old.keys() | new.keys()))
        stacks = tuple(each for each in found if each is not None)
        moved = moved_values(each for stack in stacks for each in stack.resources)
        if moved == values:
            return left_behind(stacks, before=old)
        values = moved


def _stack(
    before: StackSnapshot | None, after: StackSnapshot | None, values: Mapping[str, Certainty]
) -> StackChange | None:
    """The change of a stack; None where there is none."""
    if before is None or after is None:
        present = after or before
        return None if present is None else _one_sided(present, new=before is None)
    identity = tuple(differences(_identity(before), _identity(after)))
    if identity:
        moved = _one_sided(after, new=True)
        told = (
            f"Another stack takes its place. No deployment removes {before.stack_name}: it stays until it is deleted."
        )
        return StackChange(
            name=after.name,
            stack_name=after.stack_name,
            effect=Effect.REPLACED,
            resources=moved.resources,
            reasons=(told,),
            template=identity,
            assets=moved.assets,
            documents=moved.documents,
            traffic=moved.traffic,
        )
    resources = resource_changes(before, after, values=values)
    template = tuple(differences(_sections(before), _sections(after)))
    assets = tuple(_assets(before, after))
    documents = tuple(_documents(before, after))
    if not (resources or template or assets or documents):
        return None
    return StackChange(
        name=after.name,
        stack_name=after.stack_name,
        effect=Effect.CHANGED,
        resources=resources,
        template=template,
        assets=assets,
        documents=documents,
        traffic=traffic_changes(before, after, resources),
    )


def _one_sided(stack: StackSnapshot, *, new: bool) -> StackChange:
    """A stack that comes, or one that the app no longer has."""
    nothing = StackSnapshot(
        name=stack.name,
        stack_name=stack.stack_name,
        account=stack.account,
        region=stack.region,
        tags={},
        template={},
        resources={},
        documents={},
        assets={},
    )
    before, after = (nothing, stack) if new else (stack, nothing)
    resources: tuple[ResourceChange, ...] = resource_changes(before, after)
    told = f"The app no longer has it. No deployment removes it: {stack.stack_name} stays until it is deleted."
    return StackChange(
        name=stack.name,
        stack_name=stack.stack_name,
        effect=Effect.NEW if new else Effect.REMOVED,
        resources=resources,
        reasons=() if new else (told,),
        template=tuple(differences(_sections(before), _sections(after))),
        assets=tuple(_assets(before, after)),
        documents=tuple(_documents(before, after)),
        traffic=traffic_changes(before, after, resources),
    )


def _identity(stack: StackSnapshot) -> dict[str, Json]:
    return {"StackName": stack.stack_name, "Account": stack.account, "Region": stack.region}


def _sections(stack: StackSnapshot) -> dict[str, Json]:
    return {**stack.template, **({"StackTags": dict(stack.tags)} if stack.tags else {})}


def _assets(before: StackSnapshot, after: StackSnapshot) -> Iterator[AssetChange]:
    for path in sorted(before.assets.keys() | after.assets.keys()):
        old, new = before.assets.get(path), after.assets.get(path)
        if old == new:
            continue
        present = new or old
        if present is not None:
            stack = after if new is not None else before
            yield _asset(
                path, present, {} if old is None else dict(old.files), {} if new is None else dict(new.files), stack
            )


def _asset(path: str, asset: Asset, old: dict[str, str], new: dict[str, str], stack: StackSnapshot) -> AssetChange:
    return AssetChange(
        path=path,
        kind=asset.kind.value,
        new=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
        removed=tuple(sorted(old.keys() - new.keys())),
        users=_users(path, stack),
    )


def _users(path: str, stack: StackSnapshot) -> tuple[str, ...]:
    return tuple(name for name, each in stack.resources.items() if path in set(assets_in(dict(each.properties))))


def _documents(before: StackSnapshot, after: StackSnapshot) -> Iterator[DocumentChange]:
    for path in sorted(before.documents.keys() | after.documents.keys()):
        old, new = before.documents.get(path, ABSENT), after.documents.get(path, ABSENT)
        members: tuple[PropertyChange, ...] = tuple(
            differences({} if old is ABSENT else old, {} if new is ABSENT else new)
        )
        if members or (old is ABSENT) != (new is ABSENT):
            yield DocumentChange(path=path, members=members, before=old, after=new)


def finding_changes(before: Findings | None, after: Findings | None) -> FindingChanges:
    """Policy findings that come and go; nothing is known where one side ran without validation."""
    if before is None or after is None:
        return FindingChanges(known=False, new=(), gone=(), accepted=(), no_longer_accepted=())
    old = {(each.stack, each.path, each.rule): each for each in before.accepted}
    new = {(each.stack, each.path, each.rule): each for each in after.accepted}
    return FindingChanges(
        known=True,
        new=tuple(sorted(set(after.open) - set(before.open))),
        gone=tuple(sorted(set(before.open) - set(after.open))),
        accepted=tuple(new[key] for key in sorted(new.keys() - old.keys())),
        no_longer_accepted=tuple(old[key] for key in sorted(old.keys() - new.keys())),
        reworded=tuple(new[key] for key in sorted(new.keys() & old.keys()) if new[key] != old[key]),
    )
