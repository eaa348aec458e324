"""Changes of one stack's resources: properties, what follows from them, and updates that CloudFormation refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tritonstack.cloudformation.replacement import CUSTOM, ReplacementRules, replacement_rules
from tritonstack.review.change import ABSENT, Effect, PropertyChange, Replaces, ResourceChange, no_longer_kept
from tritonstack.review.reading import NAME, moved_policies, renames
from tritonstack.review.snapshot import Json, Resource, StackSnapshot, assets_in, is_function, references

Path = tuple[str | int, ...]
_NAMES = ("Sid", "VariantName", "Name", "Id", "Key", "AlarmName", "ContainerHostname")
"""Members that name an item of a list, in the order in which they are tried."""


def differences(before: Json, after: Json, path: Path = ()) -> Iterator[PropertyChange]:
    """Where two values differ, as deep in as they can be told apart; nothing where they are equal.

    Items of lists are matched by the member that names them, where all have one and no two the same; else by place.
    """
    if _equal(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and not is_function(before) and not is_function(after):
        yield from _of_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    else:
        yield PropertyChange(path=path, before=before, after=after)


def leaves(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every scalar, intrinsic function and empty container inside a value, with its path as ``differences`` has it."""
    if isinstance(value, dict) and value and not is_function(value):
        for name, each in value.items():
            yield from leaves(each, (*path, name))
    elif isinstance(value, list) and value:
        for place, each in zip(places(value), value, strict=True):
            yield from leaves(each, (*path, place))
    else:
        yield path, value


def places(items: Sequence[Json]) -> list[str | int]:
    """What a path calls each item of a list: its own name in brackets, or its number; a single one has its number."""
    names = _names(items) if len(items) > 1 else None
    return list(range(len(items))) if names is None else [f"[{name}]" for name in names]


def _of_maps(before: Mapping[str, Json], after: Mapping[str, Json], path: Path) -> Iterator[PropertyChange]:
    for name in sorted(before.keys() | after.keys()):
        inner = (*path, name)
        if name not in before:
            yield PropertyChange(path=inner, before=ABSENT, after=after[name])
        elif name not in after:
            yield PropertyChange(path=inner, before=before[name], after=ABSENT)
        else:
            yield from differences(before[name], after[name], inner)


def _of_lists(before: list[Json], after: list[Json], path: Path) -> Iterator[PropertyChange]:
    old, new = _matched_places(before, after)
    by_old, by_new = dict(zip(old, before, strict=True)), dict(zip(new, after, strict=True))
    found = False
    for place in [*old, *(each for each in new if each not in by_old)]:
        inner = (*path, place)
        if place not in by_new:
            changes: Iterator[PropertyChange] = iter([PropertyChange(path=inner, before=by_old[place], after=ABSENT)])
        elif place not in by_old:
            changes = iter([PropertyChange(path=inner, before=ABSENT, after=by_new[place])])
        else:
            changes = differences(by_old[place], by_new[place], inner)
        for change in changes:
            found = True
            yield change
    if not found:  # the same items in another order
        yield PropertyChange(path=path, before=before, after=after)


def _matched_places(before: list[Json], after: list[Json]) -> tuple[list[str | int], list[str | int]]:
    """The items' names, where both sides have them and at least one in common; else their numbers."""
    if len(before) > 1 or len(after) > 1:
        old, new = _names(before), _names(after)
        if old is not None and new is not None and set(old) & set(new):
            return [f"[{name}]" for name in old], [f"[{name}]" for name in new]
    return list(range(len(before))), list(range(len(after)))


def _names(items: Sequence[Json]) -> list[str] | None:
    """The items' own names; None where not all have one, or two the same."""
    for member in _NAMES:
        names = [each.get(member) if isinstance(each, dict) else None for each in items]
        texts = [name for name in names if isinstance(name, str)]
        if items and len(texts) == len(items) == len(set(texts)):
            return texts
    return None


def _equal(before: Json, after: Json) -> bool:
    """Equality as JSON has it: ``1`` is not ``true``."""
    if isinstance(before, bool) != isinstance(after, bool):
        return False
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_equal(before[name], after[name]) for name in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_equal, before, after))
    return bool(before == after)


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


Certainty = Literal["yes", "maybe"]
_NAMED, _ASSET = "named", "asset"
"""A logical id or a parameter, with every attribute of it; an asset or a document."""
_OF_SSM = "AWS::SSM::Parameter::Value<"
SSM_PARAMETER = "AWS::SSM::Parameter"


@dataclass(kw_only=True)
class _Pending:
    """A resource on both sides, as far as it is known what happens to it."""

    before: Resource
    after: Resource
    rules: ReplacementRules | None
    text: list[PropertyChange]
    following: dict[tuple[tuple[str | int, ...], str], PropertyChange] = field(default_factory=dict)

    @property
    def properties(self) -> list[PropertyChange]:
        """What changes of it, as far as it is known."""
        return [*self.text, *self.following.values()]

    @property
    def replaces(self) -> Replaces:
        """What its changes so far do."""
        found = {each.replaces for each in self.properties}
        if Replaces.YES in found or self.before.type != self.after.type:
            return Replaces.YES
        return Replaces.MAYBE if Replaces.MAYBE in found else Replaces.NO


def resource_changes(
    before: StackSnapshot, after: StackSnapshot, *, values: Mapping[str, Certainty] | None = None
) -> tuple[ResourceChange, ...]:
    """Every resource that a deployment of ``after`` over ``before`` changes, by path and logical id.

    ``values``: names of SSM parameters that get another value from another stack, and how certain that is.
    """
    renamed = renames(before.resources, after.resources)
    moved = moved_policies(before.resources, after.resources)
    pending = {
        name: _pending(before.resources[name], resource)
        for name, resource in after.resources.items()
        if name in before.resources
    }
    _follow(pending, moved=_moved(before, after, values or {}))
    changes = [change for each in pending.values() if (change := _common(each)) is not None]
    for name, resource in after.resources.items():
        if name in moved:
            changes.append(_moved_policy(before.resources[moved[name]], resource))
        elif name in renamed:
            changes.append(_renamed(before.resources[renamed[name]], resource))
        elif name not in before.resources:
            reasons = refusals(before=None, after=resource, properties=(), gone=_gone(before, after))
            effect = Effect.REFUSED if reasons else Effect.NEW
            changes.append(_change(resource, effect, after=resource, reasons=reasons))
    for name, resource in before.resources.items():
        if name not in after.resources and name not in {*moved.values(), *renamed.values()}:
            effect = Effect.RETAINED if resource.kept_on_removal else Effect.REMOVED
            changes.append(_change(resource, effect, before=resource))
    return tuple(sorted(changes, key=lambda each: (each.path, each.logical_id)))


def _pending(before: Resource, after: Resource) -> _Pending:
    rules = replacement_rules(after.type)
    text = [replace(each, replaces=_replaces(rules, each)) for each in differences(before.properties, after.properties)]
    return _Pending(before=before, after=after, rules=rules, text=text)


def _replaces(rules: ReplacementRules | None, change: PropertyChange) -> Replaces:
    if rules is None:
        return Replaces.NO if change.path[0] == "Tags" else Replaces.MAYBE
    values = [None if value is ABSENT else value for value in (change.before, change.after)]
    answer = Replaces(rules.of(change.path, *([] if change.follows is not None else values)))
    return Replaces.MAYBE if answer is Replaces.YES and not change.certain else answer


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


def _moved(
    before: StackSnapshot, after: StackSnapshot, values: Mapping[str, Certainty]
) -> dict[tuple[str, str], Certainty]:
    """What has another value though its name is the same: parameters, assets and documents."""
    moved: dict[tuple[str, str], Certainty] = {}
    for name, parameter in after.template.get("Parameters", {}).items():
        if str(parameter.get("Type", "")).startswith(_OF_SSM) and parameter.get("Default") in values:
            moved[name, _NAMED] = values[parameter["Default"]]
    old, new = before.template.get("Parameters", {}), after.template.get("Parameters", {})
    for name in old.keys() & new.keys():
        if old[name].get("Default") != new[name].get("Default") or old[name].get("Type") != new[name].get("Type"):
            moved.setdefault((name, _NAMED), "maybe")  # a parameter in SSM may hold the same value under another name
    for path in before.documents.keys() & after.documents.keys():
        if any(differences(before.documents[path], after.documents[path])):
            moved[path, _ASSET] = "yes"
    for path in before.assets.keys() & after.assets.keys():
        if before.assets[path] != after.assets[path]:
            moved[path, _ASSET] = "yes"
    return moved


def _follow(pending: Mapping[str, _Pending], *, moved: dict[tuple[str, str], Certainty]) -> None:
    """Add what follows to every resource, until nothing more does.

    A replaced resource has another ``Ref`` and other attributes. The function of a custom resource that is updated may
    answer with others.
    """
    places = {name: list(_uses(each)) for name, each in pending.items()}
    while True:
        for name, each in pending.items():
            if each.replaces is not Replaces.NO:
                certain: Certainty = "yes" if each.replaces is Replaces.YES else "maybe"
                if moved.get((name, _NAMED)) != "yes":
                    moved[name, _NAMED] = certain
            elif each.properties and _is_custom(each.after):
                moved.setdefault((name, _NAMED), "maybe")
        came = [_take(each, places[name], moved) for name, each in pending.items()]
        if not any(came):
            return


@dataclass(frozen=True, kw_only=True)
class _Use:
    """A place in a resource's properties that refers to something, where the text is the same on both sides."""

    path: tuple[str | int, ...]
    value: Json
    name: str
    kind: str

    def certainty(self, moved: Mapping[tuple[str, str], Certainty]) -> Certainty | None:
        """Whether the value moves; None where it does not."""
        return moved.get((self.name, self.kind))


def _uses(each: _Pending) -> Iterator[_Use]:
    changed = [change.path for change in each.text]
    for path, value in leaves(each.after.properties):
        if any(path[: len(prefix)] == prefix for prefix in changed):
            continue
        for name in references(value):
            yield _Use(path=path, value=value, name=name, kind=_NAMED)
        for asset in assets_in(value):
            yield _Use(path=path, value=value, name=asset, kind=_ASSET)


def _take(each: _Pending, places: Iterable[_Use], moved: Mapping[tuple[str, str], Certainty]) -> bool:
    """Add the changes that follow, or make them certain. Returns whether anything came new."""
    came = False
    for use in places:
        certainty = use.certainty(moved)
        if certainty is None:
            continue
        certain = certainty == "yes"
        change = PropertyChange(path=use.path, before=use.value, after=use.value, follows=use.name, certain=certain)
        change = replace(change, replaces=_replaces(each.rules, change))
        known = each.following.get((use.path, use.name))
        if known is None or (certain and not known.certain):
            each.following[use.path, use.name] = change
            came = True
    return came


def _common(each: _Pending) -> ResourceChange | None:
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
        reasons.append("Its function is called, and decides by the physical id that it answers whether it is replaced.")
    if each.rules is None and each.replaces is Replaces.MAYBE:
        reasons.append(f"CloudFormation's schemas do not say what replaces a {after.type}.")
    reasons += no_longer_kept(before, after).values()
    refused = refusals(before=before, after=after, properties=properties)
    if refused:
        effect = Effect.REFUSED
    elif not properties and before.type == after.type:
        effect = Effect.TEMPLATE_ONLY
    else:
        certain = any(change.certain for change in properties)  # order and policies alone touch nothing
        in_place = Effect.CHANGED if certain else Effect.MAY_CHANGE
        of = {Replaces.YES: Effect.REPLACED, Replaces.MAYBE: Effect.MAY_BE_REPLACED, Replaces.NO: in_place}
        effect = of[each.replaces]
    return ResourceChange(
        logical_id=after.logical_id,
        type=after.type,
        path=after.path,
        effect=effect,
        properties=properties,
        attributes=attributes,
        reasons=(*refused, *reasons),
        before=before,
        after=after,
    )


def _renamed(before: Resource, after: Resource) -> ResourceChange:
    refused = refusals(before=None, after=after, properties=(), gone=[before])
    old = "" if before.kept_on_removal else " and removes the old one"
    told = f"Its logical id was {before.logical_id}: CloudFormation makes a new resource{old}."
    return ResourceChange(
        logical_id=after.logical_id,
        type=after.type,
        path=after.path,
        effect=Effect.REFUSED if refused else Effect.REPLACED,
        reasons=(*refused, told),
        before=before,
        after=after,
        renamed_from=before.logical_id,
    )


def _moved_policy(before: Resource, after: Resource) -> ResourceChange:
    """An inline policy under another name. What that lets its role do is the business of ``permissions``."""
    told = f"Its logical id was {before.logical_id}. The new one is there before the old one goes."
    return ResourceChange(
        logical_id=after.logical_id,
        type=after.type,
        path=after.path,
        effect=Effect.RENAMED,
        properties=tuple(each for each in differences(before.properties, after.properties) if each.path[0] != NAME),
        reasons=(told,),
        before=before,
        after=after,
        renamed_from=before.logical_id,
    )


def _change(
    resource: Resource,
    effect: Effect,
    *,
    before: Resource | None = None,
    after: Resource | None = None,
    reasons: tuple[str, ...] = (),
) -> ResourceChange:
    return ResourceChange(
        logical_id=resource.logical_id,
        type=resource.type,
        path=resource.path,
        effect=effect,
        reasons=reasons,
        before=before,
        after=after,
    )


def _gone(before: StackSnapshot, after: StackSnapshot) -> list[Resource]:
    return [each for name, each in before.resources.items() if name not in after.resources]


def _is_custom(resource: Resource) -> bool:
    return resource.type.startswith("Custom::") or resource.type == "AWS::CloudFormation::CustomResource"
