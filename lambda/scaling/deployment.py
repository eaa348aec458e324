"""An endpoint's scaling in a deployment: before the endpoint's update, after it, and at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.clients import Aws
from ..shared.custom_resource import NotDoneError
from .live_variant import forget, live_variant, record, remember, scale_as_before, settled_variant
from .target import Wanted, converge, deregister, register

BEFORE, SETTLED, AFTER = "Custom::ScalingBefore", "Custom::ScalingSettled", "Custom::ScalingAfter"
ALL_AT_ONCE = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
"""Without a canary's or a linear step's size, which belongs to its own type (API reference, TrafficRoutingConfig)."""
ROLLING = "ROLLING"


def act(event: Mapping[str, Any], aws: Aws, *, in_force: Wanted) -> dict[str, Any]:
    """Carry out one event; see ``handler.py``. Returns the resource's attributes.

    ``in_force``: the scaling of the template that CloudFormation moves to, or back to.
    """
    wanted = Wanted.of(event["ResourceProperties"]["Scaling"])
    kind, request = event["ResourceType"], event["RequestType"]
    if request == "Delete":
        if kind == SETTLED and wanted.variant != in_force.variant:
            settle(aws, in_force, gone=wanted.variant)
        return {}
    old = Wanted.of(event["OldResourceProperties"]["Scaling"]) if request == "Update" else None
    if kind == BEFORE:
        return before(aws, wanted, old)
    if kind == AFTER:
        after(aws, wanted)
    return {}


def before(aws: Aws, wanted: Wanted, old: Wanted | None) -> dict[str, Any]:
    """Prepare the endpoint's update. Returns the initial instance count and the traffic routing."""
    live = settled_variant(aws, wanted.endpoint)
    if live is None:
        return {"InitialInstanceCount": str(wanted.initial), "TrafficRouting": wanted.routing}
    if live.variant == wanted.variant:
        came_back = old is not None and old.variant != wanted.variant
        if came_back:
            converge(aws, wanted)
            forget(aws, live)
        elif old is not None:
            register(aws, wanted)
        kept = old is not None and (came_back or old.initial == wanted.initial)
        count = live.begun_with if kept else wanted.initial
        return {"InitialInstanceCount": str(count), "TrafficRouting": wanted.routing}
    if old is None:
        raise NotDoneError(
            f"endpoint {wanted.endpoint} has no scaling yet, and its variant would change from {live.variant} to "
            f"{wanted.variant} in the same deployment, which could not be undone if it failed later. Deploy one of the "
            "two, then the other."
        )
    if ROLLING in (wanted.routing.get("Type"), old.routing.get("Type")):
        raise NotDoneError(
            f"endpoint {wanted.endpoint}: its variant would change from {live.variant} to {wanted.variant}, and a "
            "rolling update, on the way back too, needs the same variant before and after. Deploy another `kind` of "
            "rollout alone, then the new type, then kind: rolling again."
        )
    remember(aws, live, back_to=wanted.variant)
    deregister(aws, wanted.endpoint, live.variant)
    # Guardrails need the same variant name in both configs (developer guide, "Exclusions").
    count = max(wanted.initial, min(live.count, wanted.maximum))
    return {"InitialInstanceCount": str(count), "TrafficRouting": ALL_AT_ONCE}


def after(aws: Aws, wanted: Wanted) -> None:
    """Register what is wanted; where another variant is live, a rollback is yet to replace it: deregister it."""
    live = live_variant(aws, wanted.endpoint)
    if live is not None and live.variant == wanted.variant:
        converge(aws, wanted)
    elif live is not None:
        deregister(aws, wanted.endpoint, live.variant)


def settle(aws: Aws, wanted: Wanted, *, gone: str) -> None:
    """Finish a deployment: deregister the variant that is gone, register all of the live one."""
    live = live_variant(aws, wanted.endpoint)
    if live is None or live.variant != gone:
        deregister(aws, wanted.endpoint, gone)
    if live is not None and live.variant == wanted.variant:
        converge(aws, wanted)
        scale_as_before(aws, wanted, live)
        record(aws, live, 0)
