"""A verification: one run of it, from what the run before left to what it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..shared.clients import is_gone
from ..shared.names import shown
from ..shared.stack import rolls_back
from .calls import call_next
from .samples import VerificationError
from .services import Aws, Clock
from .work import Properties, Work

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient

WORK = "Work"
"""The member of the event that a run leaves for the next one."""
HANDOVER_SECONDS = 230.0
"""Before its end a run hands over: a call takes up to 70 s, the handing over 111 s where it is throttled (``RETRIES``),
and an answer 39 s."""
MOVING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses that pass by themselves: an instance is being added, or SageMaker maintains the fleet."""
STATUS_SECONDS, LOADING_SECONDS = 10.0, 3.0
"""Pauses before the next look at the endpoint, and after a call whose model is still being loaded."""


def verify(event: Mapping[str, Any], context: Any) -> dict[str, str] | None:
    """What this run can. Returns the resource's attributes; None where it handed the rest to another run."""
    aws = Aws()
    work = run(event, aws, Clock(context.get_remaining_time_in_millis() / 1000))
    if not work.done:
        rest = json.dumps({**event, WORK: asdict(work)})
        aws.lambda_.invoke(FunctionName=context.function_name, InvocationType="Event", Payload=rest)
        return None
    return {"Verified": shown(work.answered), "NotVerified": "; ".join(work.left)}


def run(event: Mapping[str, Any], aws: Aws, clock: Clock) -> Work:
    """Verify until all is done or the run nears its end. Raises VerificationError: something is not as it should be."""
    if rolls_back(event, aws.cloudformation):
        return Work(began=clock.now(), waiting=[], checked=True)
    properties = Properties.of(event["ResourceProperties"])
    work = Work(**event[WORK]) if WORK in event else begin(event, aws.s3, properties, now=clock.now())
    deadline = work.began + 60 * float(properties.minutes)
    while not work.done:
        if clock.now() >= deadline:
            raise VerificationError(too_late(work, properties))
        if clock.left() < HANDOVER_SECONDS:
            break
        if not work.checked:
            work.checked = runs_as_asked(aws.sagemaker, properties)
            if not work.checked:
                clock.sleep(STATUS_SECONDS)
        else:
            call_next(work, aws, clock, properties)
            if work.done and work.answered:  # the calls took their time, and an alarm may have moved the calls back
                work.checked = runs_as_asked(aws.sagemaker, properties)
    print(json.dumps(asdict(work)))
    return work


def begin(event: Mapping[str, Any], s3: S3Client, properties: Properties, *, now: float) -> Work:
    """The work of a first event: the archives whose digest or platform changed, by name."""
    new = release_set(s3, bucket=properties.release_set_bucket, key=properties.release_set_key)
    old: Mapping[str, str] = {}
    before = event.get("OldResourceProperties") or {}
    if event["RequestType"] == "Update" and before.get("ManifestPrefix") == properties.manifest_prefix:
        try:
            old = release_set(s3, bucket=before["ReleaseSetBucket"], key=before["ReleaseSetKey"])
        except ClientError as error:
            if not is_gone(error):
                raise
            print(json.dumps({"old release set": "gone: every model counts as changed", "error": str(error)}))
    changed = sorted(f"{model}.{digest}" for model, digest in new.items() if old.get(model) != digest)
    most = int(properties.models)
    work = Work(began=now, waiting=changed)
    work.leave(changed[most:], f"changed, and at most {most} are called (verification.models)")
    return work


def release_set(s3: S3Client, *, bucket: str, key: str) -> Mapping[str, str]:
    """Model → digest."""
    models: Mapping[str, str] = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())["models"]
    return models


def runs_as_asked(sagemaker: SageMakerClient, properties: Properties) -> bool:
    """Whether the endpoint is in service as the template asks; False while it is on its way.

    Raises VerificationError: it is in service with something else, or failed.
    """
    found = sagemaker.describe_endpoint(EndpointName=properties.endpoint_name)
    status = found["EndpointStatus"]
    if status in MOVING:
        return False
    name, why = f"endpoint {properties.endpoint_name}", found.get("FailureReason", "")
    because = f". SageMaker says: {why}" if why else ""
    if status != "InService":
        raise VerificationError(f"{name} is {status}{because}")
    config, asked = found["EndpointConfigName"], properties.endpoint_config_name
    if config != asked:
        raise VerificationError(
            f"{name} runs config {config}, not {asked}: SageMaker rolled the update back by itself{because}"
        )
    variants = {variant["VariantName"]: variant for variant in found.get("ProductionVariants", [])}
    if list(variants) != [properties.variant_name]:
        raise VerificationError(f"{name} has variant {shown(variants)}, not {properties.variant_name}")
    images = [image["SpecifiedImage"] for image in variants[properties.variant_name].get("DeployedImages", [])]
    if images and images != [properties.image]:
        raise VerificationError(f"{name} runs image {shown(images)}, not {properties.image}")
    return True


def too_late(work: Work, properties: Properties) -> str:
    """What is said when the time is over."""
    if not work.checked:
        return f"endpoint {properties.endpoint_name} did not settle within {properties.minutes} minutes"
    told = [f"{name} ({work.said.get(name, 'not called yet')})" for name in work.waiting]
    return f"{len(told)} models did not answer within {properties.minutes} minutes: {shown(told)}"
