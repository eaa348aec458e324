"""Three custom resources that keep an endpoint's registered scaling in step with the variant that is live.

The variant's name carries the instance type, so a change of type is a new variant. SageMaker refuses an update that
takes away a variant which is registered with Application Auto Scaling; deregistering takes policies and scheduled
actions along; and CloudFormation tells a resource of a rollback only if the update had touched it. So these look at
what is live, whatever brought them here. The native ScalableTarget and ScalingPolicy resources stand between them:

* ``Custom::ScalingBefore``, before the endpoint's config: deregisters a live variant that the update takes away, waits
  for an endpoint that is being changed, and answers with the first number of instances.
* ``Custom::ScalingSettled``, before the endpoint too: its physical id carries the variant, so that a Delete of the id
  that is no longer in force comes last of all, when the endpoint stays as it is. A variant that came back then gets the
  number of instances that it had, too: its config begins with another.
* ``Custom::ScalingAfter``, after the policies: what is registered becomes what is wanted.

A is the old variant, B the new one; "converge V": if V lacks its target, policies or scheduled actions they are put,
and policies of ours that are not V's go.

================================  ====================  ==============  ================  ======================
What happens                      Before                native          After             Settled (Delete, last)
================================  ====================  ==============  ================  ======================
A created                         nothing is live       makes A         converge A        -
A again, other targets            target there? (else   replaces the    converge A (old   -
                                  it is registered)     policies        policies go)
A to B                            deregister A          makes B,        converge B        of A: converge B
                                                        deletes A (1)
… fails at the endpoint, A lives  deregister A; back:   untouched       untouched         of B: converge A (2)
                                  converge A
… fails later, B lives            deregister A; back:   makes B;        converge B;       of B: converge A (2)
                                  deregister B          deletes B (1)   back: converge A
… fails at a native resource      as one line above     as above        untouched         of B: converge A (2)
… cancelled: A or B lives         waits, then as above  untouched       untouched         of B: converge A (2)
other targets, then fails later   target there?         back in the     converge A;       -
                                                        books only (3)  back: converge A
SageMaker rolls back in silence   deregister A; back:   refused for B   untouched         of B: converge A (2)
                                  converge A
scaling taken away                nothing               deletes A       nothing           of A itself: nothing
scaling is new, and A to B        refused (4)           untouched       untouched         of B itself: nothing
stack deleted                     nothing               deletes A       nothing           of A itself: nothing
================================  ====================  ==============  ================  ======================

A rollback is an update to the template before, in the order of the dependencies. From the last resource on
it would do as well, for whichever of Before and After sees B live while A is wanted deregisters it; unless it was a
native resource that failed.

1. What is gone already is no failure to CloudFormation, nor here.
2. What is wanted at that time the function's own variable tells (``SCALING``): CloudFormation has put back the one of
   the template that is in force before it sends any event.
3. A policy that was put again has a new ARN, and CloudFormation keeps the old one in its books. It never updates by
   it: a policy's name carries the hash of its targets, so that a change of them is a new policy; and what it cannot
   find when it deletes, it takes for deleted.
4. A failure after the endpoint could not be undone: nothing would deregister B before the endpoint moves back to A.

Every step may be repeated. Standard library and boto3 only.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.client import SageMakerClient

BEFORE, SETTLED, AFTER = "Custom::ScalingBefore", "Custom::ScalingSettled", "Custom::ScalingAfter"
COUNT_TAG = "tritonstack:scaled-to"
"""On the endpoint: ``<variant>/<instances>`` before a move, for a config that is moved back to has its own count."""
OURS = "tritonstack-"
"""So begin the names of our policies; others on the variant are left alone."""
NAMESPACE = "sagemaker"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})
CONCURRENT_TRIES = 6
WAIT_SECONDS, LOOK_SECONDS, ANSWER_SECONDS, REASON_LENGTH = 600, 5, 30, 2000
CHANGING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
NOT_SERVING = frozenset({"Failed", "Deleting", "Creating", "OutOfService"})
ALL_AT_ONCE = "ALL_AT_ONCE"


class ScalingError(Exception):
    """What keeps scaling from being changed, said so that it can be mended."""


@dataclass(frozen=True)
class Wanted:
    """What a template wants.

    Attributes:
        endpoint: its name.
        variant: its production variant.
        minimum: the least number of instances, and ``maximum`` the greatest.
        initial: the number to start with.
        policies: name → target tracking configuration.
        schedules: scheduled actions, as PutScheduledAction takes them.
        routing: how an update shifts traffic (``CANARY``), where the variant stays.
    """

    endpoint: str
    variant: str
    minimum: int
    maximum: int
    initial: int
    policies: Mapping[str, Any]
    schedules: tuple[Mapping[str, Any], ...]
    routing: str

    @classmethod
    def of(cls, text: str) -> Wanted:
        """Read it from the JSON text that the construct wrote."""
        given = json.loads(text)
        return cls(**{**given, "schedules": tuple(given["schedules"])})


@dataclass(frozen=True)
class Live:
    """The variant that takes the calls, its desired number of instances, and the one that its config began with."""

    arn: str
    variant: str
    count: int
    begun_with: int


@dataclass(frozen=True)
class Aws:
    """SageMaker, and Application Auto Scaling, for whose client no types are at hand."""

    sagemaker: SageMakerClient
    scaling: Any

    @classmethod
    def of_session(cls) -> Aws:
        """With the function's role."""
        return cls(boto3.client("sagemaker", config=RETRIES), boto3.client("application-autoscaling", config=RETRIES))


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what the event asks and answer CloudFormation, whatever happened."""
    try:
        print(json.dumps({name: event.get(name) for name in ("RequestType", "ResourceType", "ResourceProperties")}))
        data = act(event, Aws.of_session(), in_force=Wanted.of(os.environ["SCALING"]))
        answer(event, status="SUCCESS", reason="", data=data, log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        reason = str(error) if isinstance(error, ScalingError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"failed": reason}))
        answer(event, status="FAILED", reason=reason, data={}, log_stream=context.log_stream_name)


def act(event: Mapping[str, Any], aws: Aws, *, in_force: Wanted) -> dict[str, str]:
    """Do what one event asks; see the module. Returns the resource's attributes.

    Args:
        event: CloudFormation's.
        aws: the services.
        in_force: what the template wants that CloudFormation moves to, or back to.
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


def before(aws: Aws, wanted: Wanted, old: Wanted | None) -> dict[str, str]:
    """Make way for what is wanted. Returns the number of instances to start with, and how traffic may shift."""
    live = settled_variant(aws, wanted.endpoint)
    if live is None:
        return {"InitialInstanceCount": str(wanted.initial), "RoutingType": wanted.routing}
    if live.variant == wanted.variant:
        came_back = old is not None and old.variant != wanted.variant
        if came_back:
            converge(aws, wanted)
            forget(aws, live)
        elif old is not None:
            register(aws, wanted)
        kept = old is not None and (came_back or old.initial == wanted.initial)
        count = live.begun_with if kept else wanted.initial
        return {"InitialInstanceCount": str(count), "RoutingType": wanted.routing}
    if old is None:
        raise ScalingError(
            f"endpoint {wanted.endpoint} has no scaling yet, and its variant would change from {live.variant} to "
            f"{wanted.variant} in the same deployment, which could not be undone if it failed later. Deploy one of the "
            "two, then the other."
        )
    remember(aws, live, back_to=wanted.variant)
    deregister(aws, wanted.endpoint, live.variant)
    # Guardrails need the same variant name in both configs (developer guide, "Exclusions").
    count = max(wanted.initial, min(live.count, wanted.maximum))
    return {"InitialInstanceCount": str(count), "RoutingType": ALL_AT_ONCE}


def after(aws: Aws, wanted: Wanted) -> None:
    """Make what is registered what is wanted; where another variant is live, a rollback is yet to take it away."""
    live = live_variant(aws, wanted.endpoint)
    if live is not None and live.variant == wanted.variant:
        converge(aws, wanted)
    elif live is not None:
        deregister(aws, wanted.endpoint, live.variant)


def settle(aws: Aws, wanted: Wanted, *, gone: str) -> None:
    """The deployment is over: nothing of the variant that is gone stays registered, all of the live one is."""
    live = live_variant(aws, wanted.endpoint)
    if live is None or live.variant != gone:
        deregister(aws, wanted.endpoint, gone)
    if live is not None and live.variant == wanted.variant:
        converge(aws, wanted)
        scale_as_before(aws, wanted, live)
        _remember(aws, live, 0)


def remember(aws: Aws, live: Live, *, back_to: str) -> None:
    """Write down to how many instances the variant that goes was scaled, or the one before it, if that comes back."""
    variant, count = _remembered(aws, live)  # of the live variant where an event is repeated
    _remember(aws, live, max(live.count, count if variant in {back_to, live.variant} else 0))


def forget(aws: Aws, live: Live) -> None:
    """A variant that never left has its instances: what was written down would count at the next move, long after."""
    variant, count = _remembered(aws, live)
    if variant == live.variant and 0 < count <= live.count:
        _remember(aws, live, 0)


def _remember(aws: Aws, live: Live, count: int) -> None:
    aws.sagemaker.add_tags(ResourceArn=live.arn, Tags=[{"Key": COUNT_TAG, "Value": f"{live.variant}/{count}"}])


def scale_as_before(aws: Aws, wanted: Wanted, live: Live) -> None:
    """A variant that came in place of another has no fewer instances than that had, within its own limits."""
    count = min(_remembered(aws, live)[1], wanted.maximum)
    if live.count < count:
        scaled = {"VariantName": live.variant, "DesiredInstanceCount": count}
        aws.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=wanted.endpoint,
            DesiredWeightsAndCapacities=[scaled],  # type: ignore[list-item]  # a dictionary of the right members
        )
        print(json.dumps({"scaled": live.variant, "from": live.count, "to": count}))


def _remembered(aws: Aws, live: Live) -> tuple[str, int]:
    """What ``remember`` wrote: variant and instances; nothing and 0 where it never did."""
    tags = aws.sagemaker.list_tags(ResourceArn=live.arn, MaxResults=100)["Tags"]
    found = [tag["Value"] for tag in tags if tag["Key"] == COUNT_TAG]
    variant, _, count = found[0].partition("/") if found else ("", "", "0")
    return variant, int(count)


def settled_variant(aws: Aws, endpoint: str) -> Live | None:
    """The live variant once the endpoint changes no more, or after ten minutes: then CloudFormation's update tells."""
    until = time.monotonic() + WAIT_SECONDS
    while _describe(aws, endpoint).get("EndpointStatus") in CHANGING and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return live_variant(aws, endpoint)


def live_variant(aws: Aws, endpoint: str) -> Live | None:
    """The variant that takes the calls; None where there is no endpoint, or none that ever served."""
    found = _describe(aws, endpoint)
    if found.get("EndpointStatus", "Failed") in NOT_SERVING or not found.get("ProductionVariants"):
        return None
    variant = found["ProductionVariants"][0]
    config = aws.sagemaker.describe_endpoint_config(EndpointConfigName=found["EndpointConfigName"])
    begun = [each for each in config["ProductionVariants"] if each["VariantName"] == variant["VariantName"]]
    count = variant["DesiredInstanceCount"]
    return Live(
        found["EndpointArn"],
        variant["VariantName"],
        count,
        begun[0].get("InitialInstanceCount", count) if begun else count,
    )


def _describe(aws: Aws, endpoint: str) -> Mapping[str, Any]:
    try:
        return aws.sagemaker.describe_endpoint(EndpointName=endpoint)
    except ClientError as error:
        if "Could not find" not in error.response["Error"]["Message"]:  # SageMaker has no code of its own for it
            raise
        return {}


def converge(aws: Aws, wanted: Wanted) -> None:
    """Whatever the variant lacks is put; policies of ours that are not wanted go."""
    register(aws, wanted)
    target = _target(wanted.endpoint, wanted.variant)
    pages = aws.scaling.get_paginator("describe_scaling_policies").paginate(**target)
    there = {policy["PolicyName"]: policy for page in pages for policy in page["ScalingPolicies"]}
    for name, configuration in wanted.policies.items():
        if there.get(name, {}).get("TargetTrackingScalingPolicyConfiguration") != configuration:
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
        if not (schedule["Schedule"].startswith("at(") and error.response["Error"]["Code"] == "ValidationException"):
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
        if error.response["Error"]["Code"] != "ObjectNotFoundException":
            raise


def _call(call: Any, **request: Any) -> None:
    """Call, again where a change of the same target is still under way."""
    for _ in range(CONCURRENT_TRIES - 1):
        try:
            call(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConcurrentUpdateException":
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return
    call(**request)


def _target(endpoint: str, variant: str) -> dict[str, Any]:
    place = {"ServiceNamespace": NAMESPACE, "ScalableDimension": DIMENSION}
    return {**place, "ResourceId": f"endpoint/{endpoint}/variant/{variant}"}


def physical_id(event: Mapping[str, Any]) -> str:
    """That of Settled changes with the variant, and with nothing else; those of the others never change."""
    try:
        wanted = Wanted.of(event["ResourceProperties"]["Scaling"])
    except (KeyError, TypeError, ValueError):
        return str(event.get("PhysicalResourceId", "unknown"))
    if event["RequestType"] == "Delete":
        return str(event["PhysicalResourceId"])
    of = f"{wanted.endpoint}/{wanted.variant}" if event["ResourceType"] == SETTLED else wanted.endpoint
    return f"{event['ResourceType']}:{of}"


def answer(event: Mapping[str, Any], *, status: str, reason: str, data: Mapping[str, str], log_stream: str) -> None:
    """Tell CloudFormation the outcome by the presigned URL in the event."""
    body = {
        "Status": status,
        "Reason": f"{reason[:REASON_LENGTH]} (log stream {log_stream})" if reason else "",
        "PhysicalResourceId": physical_id(event),
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
        "Data": dict(data),
    }
    request = urllib.request.Request(  # noqa: S310 - the URL comes from CloudFormation
        event["ResponseURL"], data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310
        print(json.dumps({"answered": status, "http": response.status}))
