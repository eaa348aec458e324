"""Changes of one stack's resources: properties, what follows from them, and updates that CloudFormation rejects."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tritonstack.cloudformation.resource_schemas import CUSTOM, ReplacementRules, Replaces, replacement_rules
from tritonstack.review.change import ABSENT, Effect, PropertyChange, ResourceChange
from tritonstack.review.differences import Path, differences, leaves
from tritonstack.review.intrinsics import assets_in, physical_name, references
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot

Certainty = Literal["yes", "maybe"]
SSM_PARAMETER = "AWS::SSM::Parameter"
_OF_SSM = "AWS::SSM::Parameter::Value<"
_POLICY_NAME = "PolicyName"
_NEVER_UPDATED = {"AWS::CloudFormation::WaitCondition", "AWS::CloudFormation::WaitConditionHandle"}
_KEPT = {"Delete": 0, "Snapshot": 1, "Retain": 2, "RetainExceptOnCreate": 2}
_NO_LONGER_KEPT = {
    ("deleted", 0): "It is no longer kept: it is deleted with its stack, or when it leaves the template.",
    ("deleted", 1): "Only a snapshot of it is kept when its stack is deleted, or when it leaves the template.",
    ("replaced", 0): "When it is replaced, the old one is no longer kept.",
    ("replaced", 1): "When it is replaced, only a snapshot of the old one is kept.",
}


def resource_changes(
    before: StackSnapshot, after: StackSnapshot, *, values: Mapping[str, Certainty] | None = None
) -> tuple[ResourceChange, ...]:
    """Every resource that a deployment of ``after`` over ``before`` changes, by path and logical id.

    ``values``: names of SSM parameters that get another value from another stack, and how certain that is.
    """
    same = renames(before.resources, after.resources)
    policies = _renamed_policies(before.resources, after.resources)
    pending = {
        name: _Pending.of(before.resources[name], resource)
        for name, resource in after.resources.items()
        if name in before.resources
    }
    _follow(pending, moved=_moved(before, after, values or {}))
    changes = [change for each in pending.values() if (change := _on_both_sides(each)) is not None]
    removed = [each for name, each in before.resources.items() if name not in after.resources]
    for name, resource in after.resources.items():
        if name in policies:
            changes.append(_renamed_policy(before.resources[policies[name]], resource))
        elif name in same:
            changes.append(_under_another_id(before.resources[same[name]], resource))
        elif name not in before.resources:
            reasons = tuple(_taken_names(resource, removed))
            changes.append(
                _change(resource, Effect.REFUSED if reasons else Effect.NEW, reasons=reasons, after=resource)
            )
    for resource in removed:
        if resource.logical_id not in {*policies.values(), *same.values()}:
            effect = Effect.RETAINED if resource.kept_on_removal else Effect.REMOVED
            changes.append(_change(resource, effect, before=resource))
    return tuple(sorted(changes, key=lambda each: (each.path, each.logical_id)))


def moved_values(changes: Iterable[ResourceChange]) -> dict[str, Certainty]:
    """Names of SSM parameters that keep their names and get other values, and how certain that is."""
    found: dict[str, Certainty] = {}
    for each in changes:
        name = None if each.after is None else each.after.properties.get("Name")
        if each.type != SSM_PARAMETER or each.before is None or not isinstance(name, str):
            continue
        values = [change for change in each.properties if change.path[0] == "Value"]
        if values and each.before.properties.get("Name") == name:
            found[name] = "yes" if any(change.certain for change in values) else "maybe"
    return found


def renames(before: Mapping[str, Resource], after: Mapping[str, Resource]) -> dict[str, str]:
    """New logical id → old one, of resources with the same type and properties, where no other pair is possible.

    CloudFormation identifies resources by their logical ids: it makes a new one all the same.
    """

    def content(resource: Resource) -> str:
        # A name that the CDK derives from the logical id (an inline policy's) counts as the same.
        text = json.dumps(resource.properties, sort_keys=True)
        return f"{resource.type}\n{text.replace(json.dumps(resource.logical_id), '(logical id)')}"

    return _pairs(before, after, content)


def renamed_ids(before: EnvironmentSnapshot, after: EnvironmentSnapshot) -> dict[tuple[str, str], Resource]:
    """Stack and old logical id → the resource after the change, of the ``renames`` of all its stacks."""
    return {
        (name, old): after.stacks[name].resources[new]
        for name in before.stacks.keys() & after.stacks.keys()
        for new, old in renames(before.stacks[name].resources, after.stacks[name].resources).items()
    }


def _pairs(
    before: Mapping[str, Resource], after: Mapping[str, Resource], key: Callable[[Resource], str]
) -> dict[str, str]:
    """New logical id → old one, of the resources on one side alone that are the only ones there with their key."""
    gone, come = defaultdict(list), defaultdict(list)
    for name in before.keys() - after.keys():
        gone[key(before[name])].append(name)
    for name in after.keys() - before.keys():
        come[key(after[name])].append(name)
    return {names[0]: gone[of][0] for of, names in come.items() if len(names) == 1 and len(gone.get(of, ())) == 1}


def _renamed_policies(before: Mapping[str, Resource], after: Mapping[str, Resource]) -> dict[str, str]:
    """New logical id → old one, of inline policies that the same principals have under another name.

    Pairs of one construct first, then of one principal, whatever the statements are. A pair that keeps its name is left
    out: IAM would take the two for one policy.
    """
    old, new = (
        {name: each for name, each in side.items() if each.type == "AWS::IAM::Policy"} for side in (before, after)
    )

    def principals(policy: Resource) -> str:
        return json.dumps([policy.properties.get(name) for name in ("Roles", "Users", "Groups")], sort_keys=True)

    def construct(policy: Resource) -> str:
        return f"{principals(policy)}\n{policy.path.rpartition('/')[0]}"

    found: dict[str, str] = {}
    for key in (construct, principals):
        left = {name: each for name, each in old.items() if name not in found.values()}
        for name, was in _pairs(left, {name: each for name, each in new.items() if name not in found}, key).items():
            if new[name].properties.get(_POLICY_NAME) != old[was].properties.get(_POLICY_NAME):
                found[name] = was
    return found


_NAMED, _ASSET = "named", "asset"
"""A logical id or a parameter, with every attribute of it; an asset or a document."""
_Moved = dict[tuple[str, str], Certainty]


@dataclass(kw_only=True)
class _Pending:
    """A resource on both sides, and its changes found so far.

    ``uses``: path, value, name and kind of every reference at a place whose text is the same on both sides.
    """

    before: Resource
    after: Resource
    rules: ReplacementRules | None
    text: list[PropertyChange]
    uses: list[tuple[Path, Json, str, str]]
    following: dict[tuple[Path, str], PropertyChange] = field(default_factory=dict)

    @classmethod
    def of(cls, before: Resource, after: Resource) -> _Pending:
        rules = replacement_rules(after.type)
        text = [
            replace(each, replaces=_replaces(rules, each)) for each in differences(before.properties, after.properties)
        ]
        uses = []
        for path, value in leaves(after.properties):
            if not any(path[: len(change.path)] == change.path for change in text):
                uses += [(path, value, name, _NAMED) for name in references(value)]
                uses += [(path, value, asset, _ASSET) for asset in assets_in(value)]
        return cls(before=before, after=after, rules=rules, text=text, uses=uses)

    @property
    def properties(self) -> list[PropertyChange]:
        return [*self.text, *self.following.values()]

    @property
    def replaces(self) -> Replaces:
        found = {each.replaces for each in self.properties}
        if "yes" in found or self.before.type != self.after.type:
            return "yes"
        return "maybe" if "maybe" in found else "no"

    def take(self, moved: _Moved) -> bool:
        """Add the changes that follow, or make them certain. Returns whether anything is new."""
        came = False
        for path, value, name, kind in self.uses:
            certainty = moved.get((name, kind))
            known = self.following.get((path, name))
            if certainty is None or (known is not None and (known.certain or certainty == "maybe")):
                continue
            change = PropertyChange(path=path, before=value, after=value, follows=name, certain=certainty == "yes")
            self.following[path, name] = replace(change, replaces=_replaces(self.rules, change))
            came = True
        return came


def _replaces(rules: ReplacementRules | None, change: PropertyChange) -> Replaces:
    if rules is None:
        return "no" if change.path[0] == "Tags" else "maybe"
    values = [None if value is ABSENT else value for value in (change.before, change.after)]
    replaces = rules.of(change.path, *([] if change.follows is not None else values))
    return "maybe" if replaces == "yes" and not change.certain else replaces


def _moved(before: StackSnapshot, after: StackSnapshot, values: Mapping[str, Certainty]) -> _Moved:
    """Parameters, assets and documents of the same name and another value."""
    moved: _Moved = {}
    old, new = before.template.get("Parameters", {}), after.template.get("Parameters", {})
    for name, parameter in new.items():
        if str(parameter.get("Type", "")).startswith(_OF_SSM) and parameter.get("Default") in values:
            moved[name, _NAMED] = values[parameter["Default"]]
        elif name in old and any(old[name].get(each) != parameter.get(each) for each in ("Default", "Type")):
            moved[name, _NAMED] = "maybe"  # another SSM parameter may have the same value
    for path in before.documents.keys() & after.documents.keys():
        if any(differences(before.documents[path], after.documents[path])):
            moved[path, _ASSET] = "yes"
    for path in before.assets.keys() & after.assets.keys():
        if before.assets[path] != after.assets[path]:
            moved[path, _ASSET] = "yes"
    return moved


def _follow(pending: Mapping[str, _Pending], *, moved: _Moved) -> None:
    """Add what follows to every resource, until nothing more does.

    A replaced resource has another ``Ref`` and other attributes. The function of a custom resource that is updated may
    return others.
    """
    came = True
    while came:
        for name, each in pending.items():
            if each.replaces == "yes":
                moved[name, _NAMED] = "yes"
            elif each.replaces == "maybe" or (each.properties and _is_custom(each.after)):
                moved.setdefault((name, _NAMED), "maybe")
        came = sum(each.take(moved) for each in pending.values()) > 0


def _on_both_sides(each: _Pending) -> ResourceChange | None:
    """The change of a resource on both sides; None where there is none."""
    before, after = each.before, each.after
    properties = tuple(sorted(each.properties, key=lambda change: (change.name, change.follows or "")))
    attributes = tuple(differences(dict(before.attributes), dict(after.attributes)))
    if not properties and not attributes and before.type == after.type:
        return None
    reasons: list[str] = []
    if before.type != after.type:
        reasons.append(f"Its type was {before.type}: CloudFormation makes another resource.")
    if _is_custom(after) and properties:
        reasons.append("Its function is called; the physical id that it returns decides whether it is replaced.")
    if each.rules is None and each.replaces == "maybe":
        reasons.append(f"CloudFormation's schemas do not say what replaces a {after.type}.")
    kept = _no_longer_kept(before, after)
    refused = tuple(_refusals(each))
    certain = any(change.certain for change in properties)  # order and policies alone touch nothing
    if refused:
        effect = Effect.REFUSED
    elif each.replaces != "no":
        effect = Effect.REPLACED if each.replaces == "yes" else Effect.MAY_BE_REPLACED
    else:
        effect = Effect.CHANGED if certain else Effect.MAY_CHANGE if properties else Effect.TEMPLATE_ONLY
    return _change(
        after,
        effect,
        reasons=(*refused, *reasons, *kept.values()),
        before=before,
        after=after,
        properties=properties,
        attributes=attributes,
        no_longer_kept=tuple(kept),
    )


def _no_longer_kept(before: Resource, after: Resource) -> dict[str, str]:
    """``deleted`` and ``replaced``, each where less is kept then than before → a sentence."""
    found = {}
    for policy, when in (("DeletionPolicy", "deleted"), ("UpdateReplacePolicy", "replaced")):
        was, now = (_KEPT.get(str(each.attributes.get(policy)), 0) for each in (before, after))
        if now < was:
            found[when] = _NO_LONGER_KEPT[when, now]
    return found


def _refusals(each: _Pending) -> Iterator[str]:
    """Why CloudFormation rejects the change of a resource on both sides."""
    resource, properties = each.after, each.properties
    replaced = [change.path for change in properties if change.replaces == "yes"]
    if resource.type in _NEVER_UPDATED and properties:
        # Template reference, AWS::CloudFormation::WaitCondition: "Update requires: Updates are not supported."
        yield f"CloudFormation cannot update a {resource.type}: give it another logical id."
    if _is_custom(resource) and ("ServiceToken",) in replaced:
        # Template reference, AWS::CloudFormation::CustomResource, ServiceToken: "Updates are not supported"; the
        # service's error is "Modifying service token is not allowed."
        yield "CloudFormation does not let the ServiceToken of a custom resource change."
    name = physical_name(resource)
    renamed = each.rules is not None and any(change.path[0] == each.rules.name for change in properties)
    if name is not None and replaced and not renamed and each.before.type == resource.type:
        # CloudFormation user guide, "Name type".
        yield f"It must be replaced and keeps its name {name}, which CloudFormation rejects: give it another name."


def _taken_names(resource: Resource, removed: Iterable[Resource]) -> Iterator[str]:
    """Why a new resource cannot be made: a resource that is removed only afterwards has its name."""
    name = physical_name(resource)
    for each in removed:
        if name is not None and each.type == resource.type and physical_name(each) == name:
            yield f"Its name {name} is that of {each.logical_id}, which is removed only after this one is made."


def _under_another_id(before: Resource, after: Resource) -> ResourceChange:
    refused = tuple(_taken_names(after, [before]))
    old = "" if before.kept_on_removal else " and removes the old one"
    reason = f"Its logical id was {before.logical_id}: CloudFormation makes a new resource{old}."
    effect = Effect.REFUSED if refused else Effect.REPLACED
    reasons = (*refused, reason)
    return _change(after, effect, reasons=reasons, before=before, after=after, renamed_from=before.logical_id)


def _renamed_policy(before: Resource, after: Resource) -> ResourceChange:
    """An inline policy under another name. ``permissions`` compares its statements."""
    reason = f"Its logical id was {before.logical_id}. The new one is there before the old one goes."
    found = differences(before.properties, after.properties)
    return _change(
        after,
        Effect.RENAMED,
        reasons=(reason,),
        before=before,
        after=after,
        properties=tuple(each for each in found if each.path[0] != _POLICY_NAME),
        renamed_from=before.logical_id,
    )


def _change(resource: Resource, effect: Effect, **members: Any) -> ResourceChange:
    return ResourceChange(
        logical_id=resource.logical_id, type=resource.type, path=resource.path, effect=effect, **members
    )


def _is_custom(resource: Resource) -> bool:
    return resource.type.startswith("Custom::") or resource.type == CUSTOM
