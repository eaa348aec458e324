"""What outlives its deletion or its replacement, and what no longer does: its data could be lost."""

from __future__ import annotations

from tritonstack.review.snapshot import Json, Resource

_RANKS: dict[Json, int] = {"Delete": 0, "Snapshot": 1, "Retain": 2, "RetainExceptOnCreate": 2}
_WHEN = {"DeletionPolicy": "deleted", "UpdateReplacePolicy": "replaced"}
_SAID = {
    ("deleted", 0): "It is no longer kept: from now on it goes with its stack, or when the stack has it no more.",
    ("deleted", 1): "It is no longer kept, but for a snapshot, when its stack is deleted or has it no more.",
    ("replaced", 0): "Where it is replaced, the old one is no longer kept.",
    ("replaced", 1): "Where it is replaced, only a snapshot of the old one is kept from now on.",
}


def no_longer_kept(before: Resource, after: Resource) -> dict[str, str]:
    """``deleted`` and ``replaced``, each where less is kept then than before → what to say of it."""
    found = {}
    for policy, when in _WHEN.items():
        kept = _RANKS.get(_policy(after, policy), 0)
        if kept < _RANKS.get(_policy(before, policy), 0):
            found[when] = _SAID[when, kept]
    return found


def _policy(resource: Resource, name: str) -> Json:
    """What the template says, or what holds where it says nothing.

    Source: template reference, "DeletionPolicy attribute" and "UpdateReplacePolicy attribute".
    """
    database = resource.type == "AWS::RDS::DBInstance" and "DBClusterIdentifier" not in resource.properties
    by_snapshot = name == "DeletionPolicy" and (database or resource.type == "AWS::RDS::DBCluster")
    return resource.attributes.get(name, "Snapshot" if by_snapshot else "Delete")
