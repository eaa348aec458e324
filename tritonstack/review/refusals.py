"""Updates that CloudFormation does not take: a deployment that has one fails and is rolled back."""

from __future__ import annotations

from collections.abc import Sequence

from tritonstack.cloudformation.replacement import CUSTOM, replacement_rules
from tritonstack.review.change import PropertyChange, Replaces
from tritonstack.review.snapshot import Resource

_NEVER_UPDATED = {"AWS::CloudFormation::WaitCondition", "AWS::CloudFormation::WaitConditionHandle"}


def refusals(
    *,
    before: Resource | None,
    after: Resource,
    properties: Sequence[PropertyChange],
    gone: Sequence[Resource] = (),
) -> tuple[str, ...]:
    """Why CloudFormation refuses the change, in sentences; empty where it takes it.

    Args:
        before: the resource before; None where it is new.
        after: the resource after.
        properties: what changes of it.
        gone: resources of the same stack that go in the same deployment.
    """
    if before is None:
        return tuple(_taken_names(after, gone))
    reasons = []
    if after.type in _NEVER_UPDATED and properties:
        # Template reference, AWS::CloudFormation::WaitCondition: "Update requires: Updates are not supported."
        reasons.append(f"CloudFormation cannot update a {after.type}: give it another logical id.")
    if _custom(after) and any(each.path == ("ServiceToken",) and each.replaces is Replaces.YES for each in properties):
        # Template reference, AWS::CloudFormation::CustomResource, ServiceToken: "Updates are not supported"; the
        # service says "Modifying service token is not allowed."
        reasons.append("CloudFormation does not let the ServiceToken of a custom resource change.")
    reasons += _kept_name(after, properties, same_type=before.type == after.type)
    return tuple(reasons)


def _kept_name(resource: Resource, properties: Sequence[PropertyChange], *, same_type: bool) -> list[str]:
    """A name of the template's choice that is kept by a resource that must be replaced.

    Source: CloudFormation user guide, "Name type".
    """
    name = _name(resource)
    replaced = any(each.replaces is Replaces.YES for each in properties)
    if (
        name is None
        or not same_type
        or not replaced
        or any(each.path[0] == _name_member(resource) for each in properties)
    ):
        return []
    return [f"It must be replaced and keeps its name {name}, which CloudFormation refuses: give it another name."]


def _taken_names(resource: Resource, gone: Sequence[Resource]) -> list[str]:
    """A new resource with the name of one that goes only after it is made."""
    name = _name(resource)
    taken = [
        each.logical_id for each in gone if each.type == resource.type and name is not None and _name(each) == name
    ]
    return [
        f"Its name {name} is that of {logical_id}, which goes only after this one is made: it exists already."
        for logical_id in taken
    ]


def _name(resource: Resource) -> str | None:
    """The name that the template gives it, where that is plain text."""
    member = _name_member(resource)
    value = None if member is None else resource.properties.get(member)
    return value if isinstance(value, str) else None


def _name_member(resource: Resource) -> str | None:
    rules = replacement_rules(resource.type)
    return None if rules is None else rules.name


def _custom(resource: Resource) -> bool:
    return resource.type.startswith("Custom::") or resource.type == CUSTOM
