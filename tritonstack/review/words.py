"""Changes in plain words, for a terminal: what the test of snapshots and a command's output say."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.review.change import (
    ABSENT,
    Absent,
    AssetChange,
    Changes,
    DocumentChange,
    Effect,
    EnvironmentChange,
    PropertyChange,
    ResourceChange,
    StackChange,
)
from tritonstack.review.intrinsics import readable
from tritonstack.review.snapshot import Json

_LONGEST = 120


def lines(changes: Changes) -> list[str]:
    """Every change, a resource or a property a line; nothing where nothing changes."""
    return [line for each in changes.environments for line in _environment(each)]


def property_words(change: PropertyChange) -> str:
    """One property: ``ProductionVariants[0].InstanceType: ml.g4dn.xlarge → ml.g5.xlarge``."""
    if change.follows is not None:
        return f"{change.name}: {'follows' if change.certain else 'may follow'} {change.follows}"
    if change.before is ABSENT:
        return f"{change.name}: new, {_short(change.after)}"
    if change.after is ABSENT:
        return f"{change.name}: gone, was {_short(change.before)}"
    return f"{change.name}: {_short(change.before)} → {_short(change.after)}"


def _environment(environment: EnvironmentChange) -> Iterator[str]:
    if environment.effect in {Effect.NEW, Effect.REMOVED}:
        yield f"environment {environment.name}: {environment.effect.value}"
    for stack in environment.stacks:
        yield f"{environment.name}/{stack.name}: {stack.effect.value}"
        yield from (f"  {line}" for line in _stack(stack))
    findings = environment.findings
    told = {
        "found": findings.new,
        "no longer found": findings.gone,
        "accepted": findings.accepted,
        "no longer accepted": findings.no_longer_accepted,
        "accepted for another reason": findings.reworded,
    }
    for word, those in told.items():
        for each in those:
            yield f"{environment.name}/{each.stack} {each.path}: policy finding {word}: {each.rule}"


def _stack(stack: StackChange) -> Iterator[str]:
    yield from stack.reasons
    for resource in stack.resources:
        yield from _resource(resource)
    yield from (property_words(each) for each in stack.template)
    for asset in stack.assets:
        yield _asset(asset)
    for document in stack.documents:
        yield from _document(document)


def _resource(resource: ResourceChange) -> Iterator[str]:
    yield f"{resource.path} ({resource.type}): {resource.effect.value}"
    yield from (f"  {each}" for each in (*resource.reasons, *map(property_words, resource.properties)))
    yield from (f"  {property_words(each)}" for each in resource.attributes)


def _asset(asset: AssetChange) -> str:
    told = {"changed": asset.changed, "new": asset.new, "gone": asset.removed}
    files = "; ".join(f"{word}: {', '.join(names)}" for word, names in told.items() if names)
    return f"{asset.path}: {asset.kind} changed ({files or 'what it is'})"


def _document(document: DocumentChange) -> Iterator[str]:
    for each in document.members:
        yield f"{document.path}: {property_words(each)}"
    if not document.members:
        yield f"{document.path}: {'new' if document.before is ABSENT else 'gone'}"


def _short(value: Json | Absent) -> str:
    text = readable(value) if value != "" else '""'
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
