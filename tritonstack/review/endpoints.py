"""Endpoints of a snapshot: their configurations, variants, instance types and counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonstack import aws_names
from tritonstack.naming import scalable_variant
from tritonstack.review.intrinsics import JSON_TEXT, readable, references
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot

ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIG = "AWS::SageMaker::EndpointConfig"
_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


def endpoint_name(endpoint: Resource) -> str:
    """An endpoint's SageMaker name; its logical id where the name is generated."""
    name = endpoint.properties.get("EndpointName")
    return endpoint.logical_id if name is None else readable(name)


def config_of(endpoint: Resource, stack: StackSnapshot) -> Resource | None:
    """An endpoint's configuration; None where it is in another stack."""
    given = endpoint.properties.get("EndpointConfigName")
    for each in stack.of_type(CONFIG):
        named = given is not None and each.properties.get("EndpointConfigName") == given
        if named or each.logical_id in references(given):
            return each
    return None


def scaling_read_by(value: Json, stack: StackSnapshot) -> Mapping[str, Any]:
    """``Scaling`` of the custom resource whose attribute a value reads; empty where it reads none."""
    for name in references(value):
        given = stack.resources[name].properties.get("Scaling") if name in stack.resources else None
        if isinstance(given, dict) and isinstance(given.get(JSON_TEXT), dict):
            scaling: Mapping[str, Any] = given[JSON_TEXT]
            return scaling
    return {}


Count = int | str
"""Instances, or the text of a value that is known only when deployed: ``${Instances}``."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One variant of an endpoint."""

    name: str  # the variant's
    instance_type: str | None  # ``ml.g4dn.xlarge``; None where the template names none
    # the fewest instances that scaling or a schedule of it leaves; the initial count where nothing scales
    minimum: Count
    maximum: Count  # the most, likewise
    reason: str = ""  # why there is no instance type
    # instance pools: every type that its instances may be of, the preferred one first; empty where there is one type
    pools: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Its instance type, or those of its pools: ``ml.g5.xlarge, else ml.g4dn.xlarge``; empty where unknown."""
        return ", else ".join(self.pools) or self.instance_type or ""

    @property
    def fleet(self) -> str:
        """Number and type of its instances: ``2 to 6 instances of ml.g4dn.xlarge``."""
        number = str(self.maximum) if self.minimum == self.maximum else f"{self.minimum} to {self.maximum}"
        what = "instance" if self.maximum == 1 else "instances"
        return f"{number} {what} of {self.kind or 'a type that is known only when deployed'}"


@dataclass(frozen=True, kw_only=True)
class SnapshotEndpoint:
    """One endpoint."""

    stack: str  # its stack's name in the environment
    logical_id: str  # of the AWS::SageMaker::Endpoint
    endpoint: str  # its SageMaker name; its logical id where the name is generated
    region: str | None  # of the stack
    variants: tuple[Variant, ...]  # none where its configuration is in another stack
    metrics: Mapping[str, Any] = field(default_factory=dict)  # MetricsConfig of its configuration


def endpoints_of(environment: EnvironmentSnapshot) -> tuple[SnapshotEndpoint, ...]:
    """Every endpoint of an environment, by stack and logical id."""
    stacks = environment.stacks
    targets = [(each, stack) for stack in stacks.values() for each in stack.of_type(_TARGET)]
    found = []
    for _, stack in sorted(stacks.items()):
        for endpoint in stack.of_type(ENDPOINT):
            config = config_of(endpoint, stack)
            found.append(
                SnapshotEndpoint(
                    stack=stack.name,
                    logical_id=endpoint.logical_id,
                    endpoint=endpoint_name(endpoint),
                    region=stack.region,
                    variants=tuple(_variant(each, endpoint, stack, targets) for each in variants_of_config(config)),
                    metrics={} if config is None else config.properties.get("MetricsConfig", {}),
                )
            )
    return tuple(found)


def variants_in(stack: StackSnapshot, endpoint: Resource) -> tuple[Variant, ...]:
    """The variants of an endpoint, with the limits that scaling of its own stack sets."""
    targets = [(each, stack) for each in stack.of_type(_TARGET)]
    return tuple(_variant(each, endpoint, stack, targets) for each in variants_of_config(config_of(endpoint, stack)))


def variants_of_config(config: Resource | None) -> list[dict[str, Any]]:
    return [] if config is None else list(config.properties.get("ProductionVariants", []))


def _variant(
    given: Mapping[str, Any],
    endpoint: Resource,
    stack: StackSnapshot,
    targets: Iterable[tuple[Resource, StackSnapshot]],
) -> Variant:
    name = readable(given.get("VariantName", "AllTraffic"))
    scaled = scalable_variant(endpoint_name=endpoint_name(endpoint), variant=name)
    own = [each for each in targets if _scales(each[0], endpoint) == scaled]
    target = next((each for each in own if each[1] is stack), own[0] if own else None)
    if target is not None:
        minimum, maximum = _limits(*target)
    else:
        count = given.get("InitialInstanceCount")
        # A custom resource returns the current count, and the initial one while there is no endpoint.
        minimum = maximum = _count(scaling_read_by(count, stack).get("initial", count), stack)
    pools = pool_types(given)
    kind, reason = pools[0] if pools else given.get("InstanceType"), ""
    if not isinstance(kind, str):
        reason = f"{name} names no instance type"
        if kind is not None:
            reason = f"the instance type of {name} is {_shown(kind, stack)}, which is known only when deployed"
        kind = None
    return Variant(
        name=name, instance_type=kind, minimum=minimum, maximum=maximum, reason=reason, pools=pools if kind else ()
    )


def pool_types(variant: Mapping[str, Any]) -> tuple[str, ...]:
    """The instance types of a ProductionVariant's pools by priority; none where one is known only when deployed."""
    rows = variant.get("InstancePools") or []
    types = [each.get("InstanceType") for each in sorted(rows, key=lambda each: str(each.get("Priority")))]
    return tuple(types) if all(isinstance(each, str) for each in types) else ()


def _limits(target: Resource, stack: StackSnapshot) -> tuple[Count, Count]:
    """The fewest and the most instances of a target, its scheduled actions included."""
    minimum, maximum = (_count(target.properties.get(each), stack) for each in ("MinCapacity", "MaxCapacity"))
    scheduled = [
        _count(limit, stack)
        for action in target.properties.get("ScheduledActions", [])
        for name, limit in action.get("ScalableTargetAction", {}).items()
        if name in {"MinCapacity", "MaxCapacity"}
    ]
    counts = (minimum, maximum, *scheduled)
    unknown = [each for each in counts if isinstance(each, str)]
    if unknown:
        return (each if isinstance(each, str) else unknown[0] for each in (minimum, maximum))  # type: ignore[return-value]
    numbers = [each for each in counts if isinstance(each, int)]
    return min(numbers), max(numbers)


def _scales(target: Resource, endpoint: Resource) -> str:
    """The resource id of a target, with the endpoint's name in place of a reference; empty for other dimensions."""
    if target.properties.get("ScalableDimension") != aws_names.VARIANT_INSTANCE_COUNT:
        return ""
    text = readable(target.properties.get("ResourceId", ""))
    return re.sub(rf"\$\{{{endpoint.logical_id}\.EndpointName\}}", lambda _: endpoint_name(endpoint), text)


def _count(value: Json, stack: StackSnapshot) -> Count:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return "no number" if value is None else _shown(value, stack)


def _shown(value: Json, stack: StackSnapshot) -> str:
    """A value that is known only when deployed, with the defaults of its parameters."""
    parameters = stack.template.get("Parameters", {})
    defaults = [parameters[name].get("Default") for name in references(value) if name in parameters]
    texts = [readable(each) for each in defaults if each is not None]
    return readable(value) + (f" (default {', '.join(texts)})" if texts else "")
