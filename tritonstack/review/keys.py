"""Keys that objects of the artifacts are encrypted with, and that roles may no longer use."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import naming
from tritonstack.review.intrinsics import readable
from tritonstack.review.snapshot import EnvironmentSnapshot, Json

STEPS = "tritonstack docs updates#change-the-key"


def lost_keys(before: EnvironmentSnapshot, after: EnvironmentSnapshot) -> tuple[str, ...]:
    """A sentence for each key that objects may be encrypted with before a change, and that roles may not use after it.

    Empty where the artifacts stack is new or is left as it is.
    """
    if naming.ARTIFACTS not in before.stacks or naming.ARTIFACTS not in after.stacks:
        return ()
    then, now = dict(_keys(before)), dict(_keys(after))
    found = []
    present, earlier = then.get("key-arn"), then.get("earlier-key-arn")
    if present is not None and present not in now.values():
        found.append(
            f"{readable(present)} is no longer the key of the artifacts, and not artifacts.earlier_key: no role may "
            f"decrypt what it encrypted, so no model that is not loaded can be ({STEPS})"
        )
    if earlier is not None and earlier not in now.values():
        found.append(
            f"{readable(earlier)} is no longer artifacts.earlier_key: every object must have been written anew under "
            f"the present key ({STEPS})"
        )
    return tuple(found)


def _keys(environment: EnvironmentSnapshot) -> Iterator[tuple[str, Json]]:
    """``key-arn``, ``earlier-key-arn`` → the key that the artifacts stack hands to the others."""
    for parameter in environment.stacks[naming.ARTIFACTS].of_type("AWS::SSM::Parameter"):
        name = str(parameter.properties.get("Name", ""))
        for value in ("key-arn", "earlier-key-arn"):
            if name.endswith(f"/_artifacts/{value}"):
                yield value, parameter.properties.get("Value")
