"""An endpoint's scaling in a deployment: before the endpoint's update, after it, and at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..shared.clients import Aws
from ..shared.custom_resource import NotDoneError
from ..shared.operation import Operation, SupersededError
from .live_variant import drop, forget, live_variants, remember, scale_as_before, settled_variants
from .target import Wanted, converge, deregister, register

BEFORE, SETTLED, AFTER = "Custom::ScalingBefore", "Custom::ScalingSettled", "Custom::ScalingAfter"
ALL_AT_ONCE = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
"""Without a canary's or a linear step's size, which belongs to its own type (API reference, TrafficRoutingConfig)."""
ROLLING = "ROLLING"


def act(event: Mapping[str, Any], aws: Aws, *, in_force: Wanted) -> dict[str, Any]:
    """Carry out one event; see ``handler.py``. Returns the resource's attributes.

    ``in_force``: the scaling of the template that CloudFormation moves to, or back to. Raises SupersededError where
    CloudFormation does not wait for the event, or not any more; then the scaling in force by now is restored.
    """
    operation = Operation(event, aws.cloudformation)
    with operation.guarding(aws.scaling), operation.guarding(aws.sagemaker):
        try:
            done = _carry_out(event, aws, in_force=in_force)
            operation.require()  # a change may have come through just after the rollback began
        except SupersededError as error:
            superseded = error
        else:
            return done
    now = operation.in_force().get("Scaling")
    if now is not None:
        settle(aws, Wanted.of(now), gone=Wanted.of(event["ResourceProperties"]["Scaling"]).names)
    raise superseded


def _carry_out(event: Mapping[str, Any], aws: Aws, *, in_force: Wanted) -> dict[str, Any]:
    wanted = Wanted.of(event["ResourceProperties"]["Scaling"])
    kind, request = event["ResourceType"], event["RequestType"]
    if request == "Delete":
        if kind == SETTLED and wanted.names != in_force.names:
            settle(aws, in_force, gone=wanted.names)
        return {}
    old = Wanted.of(event["OldResourceProperties"]["Scaling"]) if request == "Update" else None
    if kind == BEFORE:
        return before(aws, wanted, old)
    if kind == AFTER:
        after(aws, wanted)
    return {}


def before(aws: Aws, wanted: Wanted, old: Wanted | None) -> dict[str, Any]:
    """Prepare the endpoint's update. Returns the initial instance counts and the traffic routing."""
    live = settled_variants(aws, wanted.endpoint)
    goes = [each for each in live.values() if each.variant not in wanted.names]
    moves = bool(live) and live.keys() != set(wanted.names)
    if moves:
        _refuse(wanted, old, live)
        remember(aws, goes, back_to=wanted.names)
        for gone in goes:
            deregister(aws, wanted.endpoint, gone.variant)
    were = {} if old is None else {each.variant: each for each in old.variants}
    counts = []
    for each in wanted.variants:
        if each.variant not in live:
            # The requests to removed variants: one new variant gets all, and of two each may get all by its weight.
            counts.append(max(each.initial, min(sum(one.count for one in goes), each.maximum)))
            continue
        came_back = bool(were) and each.variant not in were
        if came_back:
            converge(aws, each)
            forget(aws, live)
        elif were:
            register(aws, each)
        kept = came_back or (bool(were) and were[each.variant].initial == each.initial)
        counts.append(live[each.variant].begun_with if kept else each.initial)
    # Guardrails need the same variant names in both configs (developer guide, "Exclusions").
    routing = ALL_AT_ONCE if moves else wanted.routing
    found = {f"InitialInstanceCount{number or ''}": str(count) for number, count in enumerate(counts)}
    return {**found, "TrafficRouting": routing}


def _refuse(wanted: Wanted, old: Wanted | None, live: Iterable[str]) -> None:
    """Raise NotDoneError where other variants are to replace the live ones and could not be rolled back."""
    change = f"from {' and '.join(live)} to {' and '.join(wanted.names)}"
    if old is None:
        raise NotDoneError(
            f"endpoint {wanted.endpoint} has no scaling yet, and its variant would change {change} in the same "
            "deployment, which could not be undone if it failed later. Deploy one of the two, then the other."
        )
    if ROLLING in (wanted.routing.get("Type"), old.routing.get("Type")):
        raise NotDoneError(
            f"endpoint {wanted.endpoint}: its variant would change {change}, and a rolling update, on the way back "
            "too, needs the same variant before and after. Deploy another `kind` of rollout alone, then the new type, "
            "then kind: rolling again."
        )


def after(aws: Aws, wanted: Wanted) -> None:
    """Register the wanted variants; deregister another live variant, which a rollback is still to replace."""
    live = live_variants(aws, wanted.endpoint)
    for each in wanted.variants:
        if each.variant in live:
            converge(aws, each)
    for name in live.keys() - set(wanted.names):
        deregister(aws, wanted.endpoint, name)


def settle(aws: Aws, wanted: Wanted, *, gone: Collection[str]) -> None:
    """Finish a deployment: deregister the variants that are gone, register all of the live ones."""
    live = live_variants(aws, wanted.endpoint)
    for name in gone:
        if name not in live and name not in wanted.names:
            deregister(aws, wanted.endpoint, name)
    serving = [each for each in wanted.variants if each.variant in live]
    for each in serving:
        converge(aws, each)
        if each.variant not in gone:
            scale_as_before(aws, each, live[each.variant])
    if serving:
        drop(aws, live[serving[0].variant])
