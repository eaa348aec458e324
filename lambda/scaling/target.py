"""The variant as a target of Application Auto Scaling, with its policies and scheduled actions."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from ..shared.clients import code_of
from .services import Aws
from .wanted import Wanted

OURS = "tritonstack-"
"""So begin the names of our policies; others on the variant are left alone."""
NAMESPACE: Final = "sagemaker"
DIMENSION: Final = "sagemaker:variant:DesiredInstanceCount"
CONCURRENT_TRIES, PAUSE_SECONDS = 6, 5


def converge(aws: Aws, wanted: Wanted) -> None:
    """Whatever the variant lacks is put; policies of ours that are not wanted go."""
    register(aws, wanted)
    target = _target(wanted.endpoint, wanted.variant)
    pages = aws.scaling.get_paginator("describe_scaling_policies").paginate(**target)
    there = {policy["PolicyName"]: policy for page in pages for policy in page["ScalingPolicies"]}
    for name, configuration in wanted.policies.items():
        if name not in there or not holds(configuration, there[name].get("TargetTrackingScalingPolicyConfiguration")):
            _call(
                aws.scaling.put_scaling_policy,
                **target,
                PolicyName=name,
                PolicyType="TargetTrackingScaling",
                TargetTrackingScalingPolicyConfiguration=configuration,
            )
            print(json.dumps({"put": name, "variant": wanted.variant}))
    for name in there.keys() - wanted.policies.keys():
        if name.startswith(OURS):
            _unless_gone(aws.scaling.delete_scaling_policy, PolicyName=name, **target)
            print(json.dumps({"deleted": name, "variant": wanted.variant}))


def holds(wanted: Any, found: Any) -> bool:
    """Whether ``found`` has every member of ``wanted``, at any depth.

    A Describe operation also returns members that nobody set (``DisableScaleIn: false``), and lists in its own order.
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


def register(aws: Aws, wanted: Wanted) -> None:
    """Make the variant a target, with its scheduled actions, unless it is one: its limits may be a schedule's."""
    target = _target(wanted.endpoint, wanted.variant)
    found = aws.scaling.describe_scalable_targets(
        ServiceNamespace=NAMESPACE, ResourceIds=[target["ResourceId"]], ScalableDimension=DIMENSION
    )
    if not found["ScalableTargets"]:
        _call(aws.scaling.register_scalable_target, **target, MinCapacity=wanted.minimum, MaxCapacity=wanted.maximum)
        print(json.dumps({"registered": wanted.variant}))
        for schedule in wanted.schedules:
            _schedule(aws, target, schedule)


def _schedule(aws: Aws, target: Mapping[str, Any], schedule: Mapping[str, Any]) -> None:
    try:
        _call(aws.scaling.put_scheduled_action, **target, **schedule)
    except ClientError as error:
        if not (schedule["Schedule"].startswith("at(") and code_of(error) == "ValidationException"):
            raise  # a time that is past is no failure
        print(json.dumps({"not scheduled again": schedule, "because": str(error)}))


def deregister(aws: Aws, endpoint: str, variant: str) -> None:
    """The variant is no target any more; its policies and scheduled actions go with it."""
    _unless_gone(aws.scaling.deregister_scalable_target, **_target(endpoint, variant))
    print(json.dumps({"deregistered": variant}))


def _unless_gone(call: Any, **request: Any) -> None:
    try:
        _call(call, **request)
    except ClientError as error:
        if code_of(error) != "ObjectNotFoundException":
            raise


def _call(call: Any, **request: Any) -> None:
    """Call, again where a change of the same target is still under way."""
    for _ in range(CONCURRENT_TRIES - 1):
        try:
            call(**request)
        except ClientError as error:
            if code_of(error) != "ConcurrentUpdateException":
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return
    call(**request)


def _target(endpoint: str, variant: str) -> dict[str, Any]:
    place = {"ServiceNamespace": NAMESPACE, "ScalableDimension": DIMENSION}
    return {**place, "ResourceId": f"endpoint/{endpoint}/variant/{variant}"}
