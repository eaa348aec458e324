"""What a deployment does to the calls that an endpoint answers.

Sources: developer guide, "Blue/Green Deployments", "Use rolling deployments", "Exclusions" (guardrails need the same
variant names before and after) and API reference, UpdateEndpoint (RetainAllVariantProperties).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tritonstack.review.change import (
    Effect,
    FleetChange,
    PropertyChange,
    Replaces,
    ResourceChange,
    TrafficChange,
    Update,
)
from tritonstack.review.fleets import scaling_read_by
from tritonstack.review.snapshot import Json, Resource, StackSnapshot, readable, references

ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIG = "AWS::SageMaker::EndpointConfig"
_CAPACITY = {"InitialInstanceCount", "InitialVariantWeight", "DesiredInstanceCount"}
_KINDS = {"ALL_AT_ONCE": Update.ALL_AT_ONCE, "CANARY": Update.CANARY, "LINEAR": Update.LINEAR}
_WEIGHT = (
    FleetChange.INSTANCE_TYPE,
    FleetChange.VARIANTS,
    FleetChange.CONTAINER,
    FleetChange.OTHER,
    FleetChange.CAPACITY,
)
_HOW = {"DeploymentConfig", "RetainAllVariantProperties", "ExcludeRetainedVariantProperties", "RetainDeploymentConfig"}
"""Properties of an endpoint that say how it is updated."""


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """One endpoint, its configuration before and after, how it is updated, and every change of its stack."""

    before: Resource
    after: Resource
    deployment: Mapping[str, Any]
    old_config: Mapping[str, Json]
    new_config: Mapping[str, Json]
    config_change: ResourceChange | None
    change: ResourceChange | None

    @property
    def old_variants(self) -> list[dict[str, Any]]:
        return list(self.old_config.get("ProductionVariants", []))

    @property
    def new_variants(self) -> list[dict[str, Any]]:
        return list(self.new_config.get("ProductionVariants", []))

    @property
    def same_variants(self) -> bool:
        """Whether the names are the same, which guardrails need."""
        return {_text(each, "VariantName") for each in self.old_variants} == {
            _text(each, "VariantName") for each in self.new_variants
        }


def traffic_changes(
    before: StackSnapshot, after: StackSnapshot, changes: Sequence[ResourceChange]
) -> tuple[TrafficChange, ...]:
    """What happens to every endpoint of a stack, the untouched ones included, by logical id.

    ``changes``: what ``resource_changes`` says of the stack.
    """
    by_name = {each.logical_id: each for each in changes}
    found = [
        _gone(each) for name, each in before.resources.items() if each.type == ENDPOINT and name not in after.resources
    ]
    for name, endpoint in after.resources.items():
        if endpoint.type != ENDPOINT:
            continue
        old = before.resources.get(name)
        change = by_name.get(name)
        if old is None or old.type != ENDPOINT:
            found.append(_new(endpoint, after))
        elif change is not None and change.effect in {Effect.REPLACED, Effect.MAY_BE_REPLACED, Effect.REFUSED}:
            found.append(_replaced(old, endpoint, change))
        else:
            found.append(_kept(_sides(old, endpoint, before, after, by_name)))
    refused = [each.path for each in changes if each.effect is Effect.REFUSED]
    return tuple(_refused(each, refused) for each in sorted(found, key=lambda each: each.logical_id))


def _refused(change: TrafficChange, paths: Sequence[str]) -> TrafficChange:
    """The change, which does not come where CloudFormation takes something of its stack not."""
    if not paths or change.touched is False:
        return change
    told = (
        f"CloudFormation refuses the change of {', '.join(paths)}: the deployment is rolled back, and what follows "
        "does not come."
    )
    return replace(change, sentences=(told, *change.sentences))


def _gone(endpoint: Resource) -> TrafficChange:
    return TrafficChange(
        endpoint=_name(endpoint),
        logical_id=endpoint.logical_id,
        touched=True,
        update=Update.REMOVED,
        fleet=(),
        sentences=(f"{_name(endpoint)} goes: every call to it fails from then on.",),
    )


def _new(endpoint: Resource, stack: StackSnapshot) -> TrafficChange:
    variants = list(_config(endpoint, stack).get("ProductionVariants", []))
    return TrafficChange(
        endpoint=_name(endpoint),
        logical_id=endpoint.logical_id,
        touched=False,
        update=Update.CREATED,
        fleet=(),
        sentences=(f"{_name(endpoint)} is new, on {_fleet(variants)}: nobody calls it yet.",),
    )


def _replaced(before: Resource, after: Resource, change: ResourceChange) -> TrafficChange:
    certain = change.effect is Effect.REPLACED
    return TrafficChange(
        endpoint=_name(after),
        logical_id=after.logical_id,
        touched=True if certain else None,
        update=Update.REPLACED if certain else Update.UNKNOWN,
        fleet=(),
        sentences=(
            f"Another endpoint, {_name(after)}, takes the place of {_name(before)}: callers of the old name fail.",
            *change.reasons,
        ),
    )


def _kept(sides: _Sides) -> TrafficChange:
    """An endpoint that stays: updated to another configuration, or not."""
    touched = _touched(sides)
    fleet: tuple[FleetChange, ...] = ()
    if touched is False:
        update, sentences = Update.NONE, [_untouched(sides)]
    elif not _moves(sides):
        update, sentences = Update.UNKNOWN, [_how_alone(sides)]
    else:
        fleet = tuple(each for each in _WEIGHT if each in set(_fleet_changes(sides)))
        update = _update(sides)
        sentences = list(_told(sides, fleet, update, certain=bool(touched)))
    return TrafficChange(
        endpoint=_name(sides.after),
        logical_id=sides.after.logical_id,
        touched=touched,
        update=update,
        fleet=fleet,
        sentences=tuple(sentences),
    )


def _moves(sides: _Sides) -> list[PropertyChange]:
    """Changes of the endpoint that are more than its tags, and how it is updated."""
    properties = () if sides.change is None else sides.change.properties
    return [each for each in properties if each.path[0] not in {"Tags", *_HOW}]


def _touched(sides: _Sides) -> bool | None:
    """Whether the endpoint moves to another configuration; None where that is known only when it is deployed."""
    moves = _moves(sides)
    if not moves:
        how = () if sides.change is None else sides.change.properties
        return None if any(each.path[0] in _HOW for each in how) else False
    if any(each.follows is None for each in moves) or sides.config_change is None:
        return True
    return True if sides.config_change.effect is Effect.REPLACED else None


def _how_alone(sides: _Sides) -> str:
    """The one change whose effect no page of AWS tells."""
    return (
        f"How {_name(sides.after)} is updated changes, and its configuration does not. On the local AWS no calls move "
        "then; whether SageMaker starts a new fleet is not documented."
    )


def _fleet_changes(sides: _Sides) -> Iterator[FleetChange]:
    old, new = sides.old_variants, sides.new_variants
    if [_text(each, "InstanceType") for each in old] != [_text(each, "InstanceType") for each in new]:
        yield FleetChange.INSTANCE_TYPE
    elif not sides.same_variants or len(old) != len(new):
        yield FleetChange.VARIANTS
    for each in sides.config_change.properties if sides.config_change else ():
        member = each.path[-1]
        if member == "ModelName" or "ModelName" in each.path:
            yield FleetChange.CONTAINER
        elif member in _CAPACITY:
            if each.replaces is not Replaces.NO:
                yield FleetChange.CAPACITY
        elif member not in {"InstanceType", "VariantName"} and each.path[0] != "Tags":
            yield FleetChange.OTHER


def _update(sides: _Sides) -> Update:
    """How SageMaker moves the calls."""
    config = sides.deployment
    if not sides.same_variants:
        return Update.ALL_AT_ONCE
    if "RollingUpdatePolicy" in config:
        return Update.ROLLING
    routing = _routing(config)
    kind = routing.get("Type", "ALL_AT_ONCE")
    return _KINDS.get(kind, Update.UNKNOWN) if isinstance(kind, str) else Update.UNKNOWN


def _told(sides: _Sides, fleet: Sequence[FleetChange], update: Update, *, certain: bool) -> Iterator[str]:
    name, config = _name(sides.after), sides.deployment
    of = ", ".join(each.value for each in fleet) or "its configuration"
    if certain:
        fleets = f"from {_fleet(sides.old_variants)} to {_fleet(sides.new_variants)}"
        yield f"{name} is updated ({of}): {update.value}, {fleets}."
    else:
        yield f"{name} may be updated ({of}), which is known only when it is deployed; if so: {update.value}."
    yield from _steps(config, update)
    if not sides.same_variants and config:
        if "RollingUpdatePolicy" in config:
            yield "SageMaker refuses a rolling update to a variant of another name: deploy all at once first, alone."
        elif _routing(config).get("Type") != "ALL_AT_ONCE":
            yield "The variant gets another name, and guardrails need the same one: neither canary nor linear applies."
    alarms = config.get("AutoRollbackConfiguration", {}).get("Alarms", [])
    if alarms:
        names = ", ".join(readable(each.get("AlarmName", each)) for each in alarms)
        yield f"These alarms take it back: {names}."
    else:
        yield "No alarm is watched: only a fleet that does not start is taken back."
    retained = sides.same_variants and sides.after.properties.get("RetainAllVariantProperties") is True
    if FleetChange.CAPACITY in fleet and retained:
        yield "The number of instances that serve stays: the endpoint keeps what its variants have."
    if update is not Update.ROLLING:
        yield "Both fleets run until the old one has ended: the quota must allow both."


def _steps(config: Mapping[str, Any], update: Update) -> Iterator[str]:
    routing = _routing(config)
    if update is Update.CANARY:
        yield f"First {_size(routing.get('CanarySize'))}, then the rest{_wait(routing)}."
    elif update is Update.LINEAR:
        yield f"In steps of {_size(routing.get('LinearStepSize'))}{_wait(routing)}."
    elif update is Update.ROLLING:
        policy = config["RollingUpdatePolicy"]
        yield f"In batches of {_size(policy.get('MaximumBatchSize'))}{_wait(policy)}."


def _size(size: Json) -> str:
    if not isinstance(size, dict):
        return "a size that the template does not say"
    value = readable(size.get("Value"))
    return f"{value} %" if size.get("Type") == "CAPACITY_PERCENT" else f"{value} instances"


def _wait(policy: Mapping[str, Any]) -> str:
    seconds = policy.get("WaitIntervalInSeconds")
    return "" if not seconds else f", {readable(seconds)} s apart"


def _untouched(sides: _Sides) -> str:
    tagged = sides.change is not None and sides.change.tags_only
    return f"{_name(sides.after)} goes on as it is" + (", with other tags." if tagged else ".")


def _sides(
    before: Resource, after: Resource, old: StackSnapshot, new: StackSnapshot, changes: Mapping[str, ResourceChange]
) -> _Sides:
    config = _config_name(after, new)
    return _Sides(
        before=before,
        after=after,
        deployment=_deployment(after, new),
        old_config=_config(before, old),
        new_config=_config(after, new),
        config_change=None if config is None else changes.get(config),
        change=changes.get(after.logical_id),
    )


def _config_name(endpoint: Resource, stack: StackSnapshot) -> str | None:
    """The logical id of an endpoint's configuration; None where it lies in another stack."""
    names = references(endpoint.properties.get("EndpointConfigName"))
    return next((name for name in names if name in stack.resources and stack.resources[name].type == CONFIG), None)


def _config(endpoint: Resource, stack: StackSnapshot) -> Mapping[str, Json]:
    name = _config_name(endpoint, stack)
    return {} if name is None else stack.resources[name].properties


def _deployment(endpoint: Resource, stack: StackSnapshot) -> Mapping[str, Any]:
    """Its DeploymentConfig. Traffic routing that is known only when it is deployed is that of an update which keeps the
    variant: the custom resource of scaling answers with it, and with all at once where the variant is another."""
    config: dict[str, Any] = endpoint.properties.get("DeploymentConfig", {})
    told = scaling_read_by(_routing(config), stack).get("routing")
    if not isinstance(told, dict):
        return config
    return {**config, "BlueGreenUpdatePolicy": {**config["BlueGreenUpdatePolicy"], "TrafficRoutingConfiguration": told}}


def _routing(config: Mapping[str, Any]) -> Mapping[str, Any]:
    routing: Mapping[str, Any] = config.get("BlueGreenUpdatePolicy", {}).get("TrafficRoutingConfiguration", {})
    return routing


def _name(endpoint: Resource) -> str:
    name = endpoint.properties.get("EndpointName")
    return endpoint.logical_id if name is None else readable(name)


def _fleet(variants: Sequence[Mapping[str, Any]]) -> str:
    told = [f"{_count(each)} of {_text(each, 'InstanceType')}" for each in variants]
    return " and ".join(told) or "a fleet of another stack"


def _count(variant: Mapping[str, Any]) -> str:
    count = variant.get("InitialInstanceCount", "?")
    return str(count) if isinstance(count, int) else "the live count"


def _text(variant: Mapping[str, Any], member: str) -> str:
    return readable(variant.get(member, "(none)"))
