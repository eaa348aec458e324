"""A variant's scalable target at Application Auto Scaling, with its policies and scheduled actions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from ..shared.clients import Aws, code_of, ignoring

OURS = "tritonstack-"
"""Prefix of our policies' names; others on the variant are left alone."""
NAMESPACE: Final = "sagemaker"
DIMENSION: Final = "sagemaker:variant:DesiredInstanceCount"
GONE = frozenset({"ObjectNotFoundException"})


@dataclass(frozen=True)
class WantedVariant:
    """A production variant's scaling as a template describes it."""

    endpoint: str
    variant: str
    minimum: int  # numbers of instances; ``initial``: to start with
    maximum: int
    initial: int
    policies: Mapping[str, Any]  # name → target tracking configuration
    schedules: tuple[Mapping[str, Any], ...]  # scheduled actions, as PutScheduledAction takes them


@dataclass(frozen=True)
class Wanted:
    """An endpoint's scaling as a template describes it."""

    endpoint: str
    variants: tuple[WantedVariant, ...]
    routing: Mapping[str, Any]  # of an update that keeps the variants: traffic routing configuration; empty for none

    @classmethod
    def of(cls, text: str) -> Wanted:
        """Read it from the JSON text of a construct of any version: 0.1.0 wrote the type alone as ``routing``.

        A rollback from a later version passes that version's text to this one: fields that it added are left out.
        The members of the first variant are in the document itself, those of others in ``beside``.
        """
        document = json.loads(text)
        routing = document["routing"]
        if isinstance(routing, str):
            routing = {"Type": routing} if routing else {}
        variants = []
        for each in (document, *document.get("beside", ())):
            given = {name: value for name, value in each.items() if name in WantedVariant.__dataclass_fields__}
            given |= {"endpoint": document["endpoint"], "schedules": tuple(given["schedules"])}
            variants.append(WantedVariant(**given))
        return cls(document["endpoint"], tuple(variants), routing)

    @property
    def names(self) -> tuple[str, ...]:
        """The variants' names."""
        return tuple(each.variant for each in self.variants)


def converge(aws: Aws, wanted: WantedVariant) -> None:
    """Put what the variant lacks, and delete policies of ours that are not wanted."""
    register(aws, wanted)
    target = _target(wanted.endpoint, wanted.variant)
    pages = aws.scaling.get_paginator("describe_scaling_policies").paginate(**target)
    existing: dict[str, Mapping[str, Any]] = {
        policy["PolicyName"]: policy for page in pages for policy in page["ScalingPolicies"]
    }
    for name, configuration in wanted.policies.items():
        found = existing.get(name, {}).get("TargetTrackingScalingPolicyConfiguration")
        if not holds(configuration, found):
            aws.scaling.put_scaling_policy(
                **target,
                PolicyName=name,
                PolicyType="TargetTrackingScaling",
                TargetTrackingScalingPolicyConfiguration=configuration,
            )
            print(json.dumps({"put": name, "variant": wanted.variant}))
    for name in existing.keys() - wanted.policies.keys():
        if name.startswith(OURS):
            with ignoring(GONE):
                aws.scaling.delete_scaling_policy(PolicyName=name, **target)
            print(json.dumps({"deleted": name, "variant": wanted.variant}))


def holds(wanted: Any, found: Any) -> bool:
    """Whether ``found`` has every member of ``wanted``, at any depth.

    A Describe operation also returns members that were not set (``DisableScaleIn: false``), and lists in its own order.
    """
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(holds(value, found.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(wanted) == len(found)
            and all(any(holds(each, other) for other in found) for each in wanted)
        )
    return bool(wanted == found)


def register(aws: Aws, wanted: WantedVariant) -> None:
    """Register the variant with its scheduled actions, unless it is registered: its limits may be a schedule's."""
    target = _target(wanted.endpoint, wanted.variant)
    found = aws.scaling.describe_scalable_targets(
        ServiceNamespace=NAMESPACE, ResourceIds=[target["ResourceId"]], ScalableDimension=DIMENSION
    )
    if not found["ScalableTargets"]:
        aws.scaling.register_scalable_target(**target, MinCapacity=wanted.minimum, MaxCapacity=wanted.maximum)
        print(json.dumps({"registered": wanted.variant}))
        for schedule in wanted.schedules:
            _schedule(aws, target, schedule)


def _schedule(aws: Aws, target: Mapping[str, Any], schedule: Mapping[str, Any]) -> None:
    try:
        aws.scaling.put_scheduled_action(**target, **schedule)
    except ClientError as error:
        if not (schedule["Schedule"].startswith("at(") and code_of(error) == "ValidationException"):
            raise  # a time in the past is no failure
        print(json.dumps({"not scheduled again": schedule, "because": str(error)}))


def deregister(aws: Aws, endpoint: str, variant: str) -> None:
    """Deregister the variant; its policies and scheduled actions go with it."""
    with ignoring(GONE):
        aws.scaling.deregister_scalable_target(**_target(endpoint, variant))
    print(json.dumps({"deregistered": variant}))


def _target(endpoint: str, variant: str) -> Any:
    place = {"ServiceNamespace": NAMESPACE, "ScalableDimension": DIMENSION}
    return {**place, "ResourceId": f"endpoint/{endpoint}/variant/{variant}"}
