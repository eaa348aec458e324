"""Endpoints in templates: their variants, and the effect of a deployment on their traffic.

Sources: SageMaker developer guide, "Blue/Green Deployments", "Use rolling deployments", "Exclusions" (guardrails need
the same variant names before and after); API reference, UpdateEndpoint (RetainAllVariantProperties).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tritonstack.aws.sagemaker_rules import traffic_shares
from tritonstack.review.change import Effect, ResourceChange, Update
from tritonstack.review.document import TrafficEntry
from tritonstack.review.endpoints import (
    ENDPOINT,
    config_of,
    endpoint_name,
    pool_types,
    scaling_read_by,
    variants_in,
    variants_of_config,
)
from tritonstack.review.intrinsics import physical_name, readable, references
from tritonstack.review.snapshot import Json, Resource, StackSnapshot

_ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
_KINDS = {"ALL_AT_ONCE": Update.ALL_AT_ONCE, "CANARY": Update.CANARY, "LINEAR": Update.LINEAR}
_HOW = {"DeploymentConfig", "RetainAllVariantProperties", "ExcludeRetainedVariantProperties", "RetainDeploymentConfig"}
"""Properties of an endpoint that say how it is updated."""


_Happens = tuple[bool | None, Update, tuple[str, ...]]
"""Whether requests of an endpoint are touched, how it is updated, and sentences on it."""


def traffic_changes(
    before: StackSnapshot, after: StackSnapshot, changes: Sequence[ResourceChange]
) -> tuple[TrafficEntry, ...]:
    """The traffic change of every endpoint of a stack, unchanged ones included, by logical id.

    ``changes``: what ``resource_changes`` returns of the stack.
    """
    by_name = {each.logical_id: each for each in changes}
    refused = ", ".join(each.path for each in changes if each.effect is Effect.REFUSED)
    rejected = (
        f"CloudFormation rejects the change of {refused}: the deployment is rolled back, and what follows does not "
        "happen."
    )
    old, new = ({each.logical_id: each for each in side.of_type(ENDPOINT)} for side in (before, after))
    found = []
    for name, endpoint in sorted({**old, **new}.items()):
        if name not in after.resources:
            sentence = f"{endpoint_name(endpoint)} is removed: every request to it fails from then on."
            happens: _Happens = (True, Update.REMOVED, (sentence,))
        elif name not in new:  # it has another type now
            continue
        elif name not in old:
            variants = variants_of_config(config_of(endpoint, after))
            fleet = " and ".join(each.fleet for each in variants_in(after, endpoint)) or "a fleet of another stack"
            sentence = f"{endpoint_name(endpoint)} is new, on {fleet}."
            happens = (False, Update.CREATED, (sentence, *_shares_change([], variants)))
        else:
            happens = _on_both_sides(old[name], endpoint, before, after, by_name)
        touched, update, sentences = happens
        first = (rejected,) if refused and touched is not False else ()
        found.append(
            TrafficEntry(
                stack=after.name,
                endpoint=endpoint_name(endpoint),
                logical_id=name,
                touched=touched,
                update=update,
                sentences=(*first, *sentences),
            )
        )
    return tuple(found)


def _on_both_sides(
    old: Resource, new: Resource, before: StackSnapshot, after: StackSnapshot, changes: Mapping[str, ResourceChange]
) -> _Happens:
    change = changes.get(new.logical_id)
    if change is None or change.effect not in {Effect.REPLACED, Effect.MAY_BE_REPLACED, Effect.REFUSED}:
        return _kept(_UpdatedEndpoint(old, new, before, after, changes))
    names = endpoint_name(new), endpoint_name(old)
    sentence = f"Another endpoint, {names[0]}, takes the place of {names[1]}: requests to the old name fail."
    touched, update = (True, Update.REPLACED) if change.effect is Effect.REPLACED else (None, Update.UNKNOWN)
    return touched, update, (sentence, *change.reasons)


class _UpdatedEndpoint:
    """An endpoint on both sides, with its configurations and how it is updated."""

    def __init__(
        self,
        before: Resource,
        after: Resource,
        old: StackSnapshot,
        new: StackSnapshot,
        changes: Mapping[str, ResourceChange],
    ) -> None:
        self.resource, self._new = after, new
        self.change = changes.get(after.logical_id)
        config = config_of(after, new)
        self.config_change = None if config is None else changes.get(config.logical_id)
        self.old_variants, self.new_variants = variants_of_config(config_of(before, old)), variants_of_config(config)
        names = [{_text(each, "VariantName") for each in side} for side in (self.old_variants, self.new_variants)]
        self.same_variants = names[0] == names[1]
        self.deployment: Mapping[str, Any] = after.properties.get("DeploymentConfig", {})
        routing = self.deployment.get("BlueGreenUpdatePolicy", {}).get("TrafficRoutingConfiguration", {})
        # Scaling's custom resource returns what it was given where the variant stays, else all at once.
        self.routing: Mapping[str, Any] = scaling_read_by(routing, new).get("routing") or routing

    def alarm_name(self, given: Json) -> str:
        """The name of an alarm that rolls an update back; the path of its construct where the name is generated."""
        value = given.get("AlarmName", given)
        alarms = {each.logical_id: each for each in self._new.of_type(*_ALARMS)}
        named = (alarms[name] for name in references(value) if name in alarms)
        return next((physical_name(each) or each.path for each in named), readable(value))

    def retains(self, name: str) -> bool:
        """Whether an update keeps a property of the live variants, whatever the new configuration has."""
        given = self.resource.properties
        excluded = [each.get("VariantPropertyType") for each in given.get("ExcludeRetainedVariantProperties", [])]
        return given.get("RetainAllVariantProperties") is True and name not in excluded

    @property
    def update(self) -> Update:
        """How SageMaker shifts the traffic."""
        if not self.same_variants:
            return Update.ALL_AT_ONCE
        if "RollingUpdatePolicy" in self.deployment:
            return Update.ROLLING
        kind = self.routing.get("Type", "ALL_AT_ONCE")
        return _KINDS.get(kind, Update.UNKNOWN) if isinstance(kind, str) else Update.UNKNOWN


def _kept(endpoint: _UpdatedEndpoint) -> _Happens:
    """An endpoint that stays: updated to another configuration, or not."""
    name, change = endpoint_name(endpoint.resource), endpoint.change
    properties = () if change is None else change.properties
    moves = [each for each in properties if each.path[0] not in {"Tags", *_HOW}]
    if not moves and any(each.path[0] in _HOW for each in properties):
        sentence = (
            f"How {name} is updated changes, and its configuration does not. On the local AWS no traffic shifts then; "
            "whether SageMaker starts a new fleet is not documented."
        )
        return None, Update.UNKNOWN, (sentence,)
    if not moves:
        tagged = ", but for its tags" if change is not None and change.tags_only else ""
        return False, Update.NONE, (f"{name} is unchanged{tagged}.",)
    config = endpoint.config_change
    certain = any(each.follows is None for each in moves) or config is None or config.effect is Effect.REPLACED
    update = endpoint.update
    return True if certain else None, update, tuple(_update_sentences(endpoint, update, certain=certain))


def _update_sentences(endpoint: _UpdatedEndpoint, update: Update, *, certain: bool) -> Iterator[str]:
    name, config = endpoint_name(endpoint.resource), endpoint.deployment
    if certain:
        fleets = f"from {_fleet(endpoint.old_variants)} to {_fleet(endpoint.new_variants)}"
        yield f"{name} is updated: {update.value}, {fleets}."
    else:
        yield f"{name} may be updated, which is known only when deployed; if so: {update.value}."
    if update is Update.CANARY:
        yield f"First {_size(endpoint.routing.get('CanarySize'))}, then the rest{_wait(endpoint.routing)}."
    elif update is Update.LINEAR:
        yield f"In steps of {_size(endpoint.routing.get('LinearStepSize'))}{_wait(endpoint.routing)}."
    elif update is Update.ROLLING:
        policy = config["RollingUpdatePolicy"]
        yield f"In batches of {_size(policy.get('MaximumBatchSize'))}{_wait(policy)}."
    if not endpoint.same_variants and "RollingUpdatePolicy" in config:
        yield "SageMaker rejects a rolling update to a variant of another name: deploy all at once first, alone."
    elif not endpoint.same_variants and config and endpoint.routing.get("Type") != "ALL_AT_ONCE":
        yield "The variant gets another name, and guardrails need the same one: neither canary nor linear applies."
    yield from _capacity(endpoint)
    shares = tuple(_shares_change(endpoint.old_variants, endpoint.new_variants))
    yield from shares
    if shares and endpoint.same_variants and endpoint.retains("DesiredWeight"):
        yield "That takes no effect: the endpoint retains its variants' weights, too (DesiredWeight is not excluded)."
    alarms = config.get("AutoRollbackConfiguration", {}).get("Alarms", [])
    if alarms:
        yield f"These alarms roll it back: {', '.join(endpoint.alarm_name(each) for each in alarms)}."
    else:
        yield "No alarm is watched: only a fleet that does not start is rolled back."
    if endpoint.same_variants and endpoint.retains("DesiredInstanceCount"):
        yield "The number of serving instances stays: the endpoint retains its variants' properties."
    if update is not Update.ROLLING:
        yield "Both fleets run until the old one has ended: the quota must allow both."


def _capacity(endpoint: _UpdatedEndpoint) -> Iterator[str]:
    """Whether a shortage of instances fails the endpoint sooner or later than before: its types before and after."""
    old, new = (
        {name for each in side for name in pool_types(each) or (_text(each, "InstanceType"),)}
        for side in (endpoint.old_variants, endpoint.new_variants)
    )
    if new > old:
        added = ", ".join(sorted(new - old))
        yield (
            f"The risk of a lack of capacity falls: {added} may serve where AWS lacks {' and '.join(sorted(old))}. "
            "Which type serves, and its cost, is known once it is deployed (output Landed)."
        )
    elif new < old:
        yield f"The risk of a lack of capacity rises: {', '.join(sorted(old - new))} no longer steps in."


def _size(size: Json) -> str:
    if not isinstance(size, dict):
        return "a size that the template does not have"
    value = readable(size.get("Value"))
    return f"{value} %" if size.get("Type") == "CAPACITY_PERCENT" else f"{value} instances"


def _wait(policy: Mapping[str, Any]) -> str:
    seconds = policy.get("WaitIntervalInSeconds")
    return "" if not seconds else f", {readable(seconds)} s apart"


def _fleet(variants: Sequence[Mapping[str, Any]]) -> str:
    def count(variant: Mapping[str, Any]) -> str:
        initial = variant.get("InitialInstanceCount", "?")
        return str(initial) if isinstance(initial, int) else "the live count"

    found = [f"{count(each)} of {', else '.join(pool_types(each)) or _text(each, 'InstanceType')}" for each in variants]
    return " and ".join(found) or "a fleet of another stack"


def _shares_change(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which share of the requests goes to each variant, before and after, where there are several and it changes."""
    before, after = _shares(old), _shares(new)
    if before == after or max(len(before), len(after)) < 2:
        return
    parts = []
    for name in {**before, **after}:
        was, becomes = before.get(name, "none"), after.get(name, "none")
        parts.append(f"{name} {becomes}" if was == becomes or not before else f"{name} {was} → {becomes}")
    yield f"Share of the requests by weight: {', '.join(parts)}."


def _shares(variants: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Variant → its share of the requests; ``unknown`` where a weight is known only when deployed."""
    weights = [each.get("InitialVariantWeight", 1) for each in variants]  # 1: API reference, ProductionVariant
    known = all(isinstance(each, int | float) for each in weights)
    shares = [f"{share:.3g} %" for share in (100 * each for each in traffic_shares(weights))] if known else []
    names = [_text(each, "VariantName") for each in variants]
    return dict(zip(names, shares or ["unknown"] * len(names), strict=True))


def _text(variant: Mapping[str, Any], member: str) -> str:
    return readable(variant.get(member, "(none)"))
