"""Subnets and security groups that go while an endpoint of another stack still runs in them.

A stack that reads another's values is deployed after it. So what goes there goes while the old fleet is in it: EC2
refuses (API reference, error codes: DependencyViolation). CloudFormation "tries to delete a resource three times before
CloudFormation skips the resource and continues the cleanup process" (re:Post, "Why is my CloudFormation stack stuck in
the UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS or UPDATE_COMPLETE_CLEANUP_IN_PROGRESS state?").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tritonstack.review.change import Effect, ResourceChange, StackChange
from tritonstack.review.intrinsics import references
from tritonstack.review.snapshot import StackSnapshot

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
    return tuple(_stack(each, before.get(each.name), used) for each in changes)


def _stack(change: StackChange, before: StackSnapshot | None, used: Used) -> StackChange:
    users = {name: stacks for (stack, name), stacks in used.items() if stack == change.name}
    if before is None or not users or change.effect is Effect.REMOVED:
        return change
    users |= {vpc: stacks for name, stacks in users.items() for vpc in _vpcs(before, name)}
    return replace(change, resources=tuple(_resource(each, users.get(each.logical_id)) for each in change.resources))


def _resource(change: ResourceChange, stacks: tuple[str, ...] | None) -> ResourceChange:
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
