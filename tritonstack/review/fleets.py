"""How many instances of which type an endpoint may have, read from a template alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritonstack import aws_names
from tritonstack.review.snapshot import (
    JSON_TEXT,
    EnvironmentSnapshot,
    Json,
    Resource,
    StackSnapshot,
    readable,
    references,
)

ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIG = "AWS::SageMaker::EndpointConfig"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_VARIANTS = ("ProductionVariants", "ShadowProductionVariants")
_CAPACITIES = ("MinCapacity", "MaxCapacity")

_Placed = tuple[Resource, StackSnapshot]
Count = int | str
"""Instances, or what stands in the template where no number does: ``${Instances}``."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One variant of an endpoint.

    Attributes:
        name: the variant's.
        instance_type: ``ml.g4dn.xlarge``; None where the template names none.
        initial: instances to begin with.
        minimum: the fewest that scaling or a schedule of it leaves; ``initial`` where nothing scales the variant.
        maximum: the most, likewise.
        scaled: whether something changes the number.
        reason: why there is no instance type.
    """

    name: str
    instance_type: str | None
    initial: Count
    minimum: Count
    maximum: Count
    scaled: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """One endpoint.

    Attributes:
        stack: its stack's name in the environment.
        logical_id: of the AWS::SageMaker::Endpoint.
        endpoint: its SageMaker name, as the template says it; its logical id where the name is generated.
        region: of the stack.
        variants: the variants, shadow ones included; none where its configuration lies in another stack.
    """

    stack: str
    logical_id: str
    endpoint: str
    region: str | None
    variants: tuple[Variant, ...]


def fleets_of(environment: EnvironmentSnapshot | None) -> tuple[Fleet, ...]:
    """Every endpoint of an environment, by stack and logical id."""
    if environment is None:
        return ()
    targets = [(each, stack) for stack in environment.stacks.values() for each in stack.of_type(TARGET)]
    return tuple(
        _fleet(endpoint, stack, targets)
        for _, stack in sorted(environment.stacks.items())
        for endpoint in stack.of_type(ENDPOINT)
    )


def config_of(endpoint: Resource, stack: StackSnapshot) -> Mapping[str, Json]:
    """The properties of an endpoint's configuration; none where it lies in another stack."""
    for name in references(endpoint.properties.get("EndpointConfigName")):
        resource = stack.resources.get(name)
        if resource is not None and resource.type == CONFIG:
            return resource.properties
    given = endpoint.properties.get("EndpointConfigName")
    named = [each for each in stack.of_type(CONFIG) if each.properties.get("EndpointConfigName") == given]
    return named[0].properties if given is not None and named else {}


def name_of(endpoint: Resource) -> str:
    """An endpoint's SageMaker name; its logical id where the name is generated."""
    name = endpoint.properties.get("EndpointName")
    return endpoint.logical_id if name is None else readable(name)


def _fleet(endpoint: Resource, stack: StackSnapshot, targets: Iterable[_Placed]) -> Fleet:
    config = config_of(endpoint, stack)
    limits = {_resource_id(each, endpoint): (each, of) for each, of in targets}
    given = [each for kind in _VARIANTS for each in config.get(kind, [])]
    return Fleet(
        stack=stack.name,
        logical_id=endpoint.logical_id,
        endpoint=name_of(endpoint),
        region=stack.region,
        variants=tuple(_variant(each, endpoint, stack, limits) for each in given),
    )


def _variant(
    given: Mapping[str, Any], endpoint: Resource, stack: StackSnapshot, targets: Mapping[str, _Placed]
) -> Variant:
    name = readable(given.get("VariantName", "AllTraffic"))
    kind = given.get("InstanceType")
    target = targets.get(f"endpoint/{name_of(endpoint)}/variant/{name}")
    initial = _initial(given.get("InitialInstanceCount"), stack)
    managed = given.get("ManagedInstanceScaling", {})
    if target is not None:
        minimum, maximum = _limits(*target)
    elif isinstance(managed, dict) and managed.get("Status") == "ENABLED":
        minimum, maximum = (_count(managed.get(f"{each}InstanceCount"), stack) for each in ("Min", "Max"))
    else:
        minimum = maximum = initial
    return Variant(
        name=name,
        instance_type=kind if isinstance(kind, str) else None,
        initial=initial,
        minimum=minimum,
        maximum=maximum,
        scaled=target is not None or bool(managed),
        reason="" if isinstance(kind, str) else _without_type(name, given, stack),
    )


def _without_type(name: str, given: Mapping[str, Any], stack: StackSnapshot) -> str:
    kind = given.get("InstanceType")
    if "ServerlessConfig" in given:
        return f"{name} is serverless, which costs by use"
    if "InstancePools" in given:
        return f"{name} takes one of several instance types"
    if kind is None:
        return f"{name} names no instance type"
    return f"the instance type of {name} is {_shown(kind, stack)}, which is known only when it is deployed"


def _limits(target: Resource, stack: StackSnapshot) -> tuple[Count, Count]:
    """The fewest and the most instances of a target, its scheduled actions included."""
    counts = [_count(each, stack) for each in _capacities(target.properties)]
    open_ones = [each for each in counts if isinstance(each, str)]
    if open_ones:
        minimum, maximum = (_count(target.properties.get(each), stack) for each in _CAPACITIES)
        return (
            minimum if isinstance(minimum, str) else open_ones[0],
            maximum if isinstance(maximum, str) else open_ones[0],
        )
    numbers = [each for each in counts if isinstance(each, int)]
    return min(numbers), max(numbers)


def _capacities(properties: Mapping[str, Any]) -> Iterator[Json]:
    """Every limit that ever holds: the target's, and those that its schedules set."""
    for name in _CAPACITIES:
        yield properties.get(name)
    for action in properties.get("ScheduledActions", []):
        limits = action.get("ScalableTargetAction", {})
        yield from (limits[name] for name in _CAPACITIES if name in limits)


def _resource_id(target: Resource, endpoint: Resource) -> str:
    """What a target scales, with the endpoint's name in place of a reference to it; empty for other dimensions."""
    if target.properties.get("ScalableDimension") != aws_names.VARIANT_INSTANCE_COUNT:
        return ""
    text = readable(target.properties.get("ResourceId", ""))
    return re.sub(rf"\$\{{{endpoint.logical_id}\.EndpointName\}}", lambda _: name_of(endpoint), text)


def _initial(count: Json, stack: StackSnapshot) -> Count:
    """Instances to begin with; where a custom resource tells the live number, what it tells at first."""
    initial = scaling_read_by(count, stack).get("initial")
    return initial if isinstance(initial, int) else _count(count, stack)


def scaling_read_by(value: Json, stack: StackSnapshot) -> Mapping[str, Any]:
    """What the custom resource of scaling was given, whose attribute a value reads; empty where it reads none."""
    for name in references(value):
        told = stack.resources[name].properties.get("Scaling") if name in stack.resources else None
        if isinstance(told, dict) and isinstance(told.get(JSON_TEXT), dict):
            scaling: Mapping[str, Any] = told[JSON_TEXT]
            return scaling
    return {}


def _count(value: Json, stack: StackSnapshot) -> Count:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return "no number" if value is None else _shown(value, stack)


def _shown(value: Json, stack: StackSnapshot) -> str:
    """A value that is told at deployment, with the defaults of its parameters: another default is another value."""
    parameters = stack.template.get("Parameters", {})
    defaults = [parameters[name].get("Default") for name in references(value) if name in parameters]
    told = [readable(each) for each in defaults if each is not None]
    return readable(value) + (f" (default {', '.join(told)})" if told else "")
