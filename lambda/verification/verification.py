"""One run of a verification: continues from the run before, and hands over to the next."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws
from ..shared.custom_resource import name_list
from ..shared.operation import Operation
from ..shared.release_set import ReleaseSetGoneError, release_set_document
from .calls import invoke_next
from .samples import VerificationError
from .work import Properties, Work

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient

WORK = "Work"
"""The member of the event that a run adds for the next one."""
HANDOVER_SECONDS = 230.0
"""A run hands over so long before its end: a request takes up to 70 s, the handover 111 s where it is throttled
(``RETRIES``), and a response to CloudFormation 39 s."""
TRANSIENT = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses that end by themselves: an instance is being added, or SageMaker maintains the fleet."""
STATUS_SECONDS = 10.0
"""The pause before the endpoint is described again."""


def verify(event: Mapping[str, Any], context: Any) -> dict[str, str] | None:
    """Verify as far as this run can. Returns the resource's attributes; None where another run continues."""
    aws = Aws()
    work = run(event, aws, until=time.time() + context.get_remaining_time_in_millis() / 1000 - HANDOVER_SECONDS)
    if not work.done:
        rest = json.dumps({**event, WORK: asdict(work)})
        aws.lambda_.invoke(FunctionName=context.function_name, InvocationType="Event", Payload=rest)
        return None
    done = {"Verified": name_list(work.verified), "NotVerified": "; ".join(work.left)}
    pools = Properties.of(event["ResourceProperties"]).prefix_of_type
    return {**done, "Landed": landed(work)} if pools else done


def run(event: Mapping[str, Any], aws: Aws, *, until: float) -> Work:
    """Verify until all is done or the time of this run is over.

    Raises VerificationError, or SupersededError where CloudFormation does not wait for the event any more.
    """
    if Operation(event, aws.cloudformation).undoes:
        return Work(began=time.time(), waiting=[], checked=True)
    properties = Properties.of(event["ResourceProperties"])
    work = Work(**event[WORK]) if WORK in event else begin(event, aws.s3, properties, now=time.time())
    deadline = work.began + 60 * float(properties.minutes)
    while not work.done:
        if time.time() >= deadline:
            raise VerificationError(too_late(work, properties))
        if time.time() > until:
            break
        if not work.checked:
            work.checked = runs_as_deployed(aws.sagemaker, properties, work)
            if not work.checked:
                time.sleep(STATUS_SECONDS)
        else:
            invoke_next(work, aws, properties)
            if work.done and work.verified:  # meanwhile an alarm may have rolled the update back
                work.checked = runs_as_deployed(aws.sagemaker, properties, work)
    leave_idle_types(work, properties)
    print(json.dumps(asdict(work)))
    return work


def begin(event: Mapping[str, Any], s3: S3Client, properties: Properties, *, now: float) -> Work:
    """The work of a first event: the archives whose digest or platform changed, by name."""
    new = release_set_document(s3, bucket=properties.release_set_bucket, key=properties.release_set_key)["models"]
    old: Mapping[str, str] = {}
    before = event.get("OldResourceProperties") or {}
    same = before.get("ManifestPrefix") == properties.manifest_prefix and before.get("Pools", "{}") == properties.pools
    if event["RequestType"] == "Update" and same:
        try:
            old = release_set_document(s3, bucket=before["ReleaseSetBucket"], key=before["ReleaseSetKey"])["models"]
        except ReleaseSetGoneError as error:
            print(json.dumps({"every model counts as changed": str(error)}))
    changed = sorted(f"{model}.{digest}" for model, digest in new.items() if old.get(model) != digest)
    most = int(properties.models)
    work = Work(began=now, waiting=changed)
    work.leave(changed[most:], f"changed, and at most {most} are invoked (verification.models)")
    return work


def landed(work: Work) -> str:
    """The live instances of each type of the pools: ``2 x ml.g4dn.xlarge``."""
    return name_list([f"{count} x {name}" for name, count in work.landed.items() if count]) or "not looked at"


def leave_idle_types(work: Work, properties: Properties) -> None:
    """Name the types of the pools that no request could reach: a caller cannot choose the type."""
    if work.done and work.landed and work.verified:
        idle = [name for name in properties.prefix_of_type if not work.landed.get(name)]
        work.left += [f"{name}: no instance of it is live, so only its build proved its archives" for name in idle]


def runs_as_deployed(sagemaker: SageMakerClient, properties: Properties, work: Work) -> bool:
    """Whether the endpoint is in service as the template names it; False while it is being changed.

    Of instance pools it notes what the endpoint landed on.

    Raises VerificationError: it is in service with something else, or failed.
    """
    found = sagemaker.describe_endpoint(EndpointName=properties.endpoint_name)
    status = found["EndpointStatus"]
    if status in TRANSIENT:
        return False
    name, why = f"endpoint {properties.endpoint_name}", found.get("FailureReason", "")
    because = f". SageMaker reports: {why}" if why else ""
    if status != "InService":
        raise VerificationError(f"{name} is {status}{because}")
    config, expected = found["EndpointConfigName"], properties.endpoint_config_name
    if config != expected:
        raise VerificationError(
            f"{name} runs config {config}, not {expected}: SageMaker rolled the update back by itself{because}"
        )
    variants = {variant["VariantName"]: variant for variant in found.get("ProductionVariants", [])}
    wanted = properties.variant_of.values() or [properties.variant_name]
    if sorted(variants) != sorted(wanted):
        raise VerificationError(f"{name} has variant {name_list(variants)}, not {name_list(wanted)}")
    for variant in variants.values():
        pools = variant.get("InstancePools", [])
        work.landed = {each["InstanceType"]: each["CurrentInstanceCount"] for each in pools}
        images = [image["SpecifiedImage"] for image in variant.get("DeployedImages", [])]
        if images and images != [properties.image]:
            raise VerificationError(f"{name} runs image {name_list(images)}, not {properties.image}")
    return True


def too_late(work: Work, properties: Properties) -> str:
    """The failure when the time is over."""
    if not work.checked:
        return f"endpoint {properties.endpoint_name} did not settle within {properties.minutes} minutes"
    late = [f"{name} ({work.errors.get(name, 'not invoked yet')})" for name in work.waiting]
    return f"{len(late)} models did not respond within {properties.minutes} minutes: {name_list(late)}"
