"""A custom resource between an endpoint and its release records: it fails unless what was deployed answers as expected.

``Custom::VerifiedEndpoint`` is done when

* the live endpoint runs the configuration, variant and image that the template names: SageMaker can roll an update back
  by itself, and CloudFormation then hears of a success;
* the models whose digest or platform changed, at most ``Models`` of them, have answered the sample request of their
  manifest as the manifest expects, within its tolerance.

A failure here fails the deployment before any release record moves. The undoing of an update, which is an Update too
and which only the stack's status tells, and a Delete are answered at once.

A Lambda ends after 15 minutes, and loads may take longer. Shortly before its end the function hands its *work*, which
travels in the event, to itself in an asynchronous call; ``Minutes`` after the first event it gives up. Every step may
be repeated: CloudFormation and Lambda both deliver an event more than once, nothing here changes anything, and of two
answers CloudFormation takes the first.

Warming more models than fit evicts those that were just warmed. So no further model is called once an unload was seen:
a 507, by which SageMaker learns that memory is full, or a figure of ModelUnloadingTime of a minute after the start.

Standard library and boto3 only.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from . import samples
from .samples import VerificationError
from .work import Properties, Work, shown

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient
    from mypy_boto3_sagemaker_runtime.client import SageMakerRuntimeClient

WORK = "Work"
"""The member of the event that a run leaves for the next one."""
HANDOVER_SECONDS = 100.0
"""Before its end a run hands over: a call takes up to 70 s."""
MOVING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses that pass by themselves: an instance is being added, or SageMaker maintains the fleet."""
STATUS_SECONDS, LOADING_SECONDS = 10.0, 3.0
"""Pauses before the next look at the endpoint, and after a call whose model is still being loaded."""
TRIES, FIRST_PAUSE_SECONDS = 4, 2.0
"""Calls of one model that may fail before it is a failure, and the first pause between them; the next are three times
as long each. A model that is being loaded is waited for as long as there is time."""
OUT_OF_MEMORY = 507
PASSING_STATUSES = frozenset({0, 404, 429, 500, 502, 503, 504, OUT_OF_MEMORY})
"""Of the container, in a ModelError: 0: no whole answer; 404: unloaded in between. All others are the request's."""
PASSING_CODES = frozenset(
    {"InternalFailure", "ServiceUnavailable", "InternalDependencyException", "ThrottlingException"}
)
GONE = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
"""What S3 answers for an object that is gone: without permission to list, a missing object is a refusal."""
REASON_LENGTH, MESSAGE_LENGTH, ANSWER_SECONDS = 2000, 300, 30
RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})
ONE_TRY = Config(retries={"total_max_attempts": 1, "mode": "standard"}, connect_timeout=5, read_timeout=70)
"""An invocation may take 60 s, and AWS advises ten more, so that its own error arrives (SageMaker developer guide)."""


def connect(service: str) -> Any:
    """A client with the function's own credentials; a call of a model is tried once, for the tries here to count."""
    return boto3.client(service, config=ONE_TRY if service == "sagemaker-runtime" else RETRIES)


class Aws:
    """The services that the function talks to. A client takes a second to make in so small a function: when needed."""

    @cached_property
    def s3(self) -> S3Client:
        """Release sets and manifests."""
        return cast("S3Client", connect("s3"))

    @cached_property
    def sagemaker(self) -> SageMakerClient:
        """What the endpoint runs."""
        return cast("SageMakerClient", connect("sagemaker"))

    @cached_property
    def runtime(self) -> SageMakerRuntimeClient:
        """The models."""
        return cast("SageMakerRuntimeClient", connect("sagemaker-runtime"))

    @cached_property
    def cloudwatch(self) -> CloudWatchClient:
        """Unloads."""
        return cast("CloudWatchClient", connect("cloudwatch"))

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        """The stack's status."""
        return cast("CloudFormationClient", connect("cloudformation"))

    @cached_property
    def lambda_(self) -> Any:
        """The next run."""
        return connect("lambda")


class Clock:
    """Seconds of the epoch, and what is left of this run."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: until Lambda ends the run."""
        self._end = time.time() + seconds

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def left(self) -> float:
        """Seconds until Lambda ends the run."""
        return self._end - time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what this run can, then hand the rest over, or answer CloudFormation."""
    try:
        print(json.dumps({name: event.get(name) for name in ("RequestType", "ResourceProperties", WORK)}))
        aws = Aws()
        work = run(event, aws, Clock(context.get_remaining_time_in_millis() / 1000))
        if not work.done:
            rest = json.dumps({**event, WORK: asdict(work)})
            aws.lambda_.invoke(FunctionName=context.function_name, InvocationType="Event", Payload=rest)
            return
        data = {"Verified": shown(work.answered), "NotVerified": "; ".join(work.left)[:REASON_LENGTH]}
        answer(event, status="SUCCESS", reason="", data=data, log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        reason = str(error) if isinstance(error, VerificationError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"failed": reason}))
        answer(event, status="FAILED", reason=reason, data={}, log_stream=context.log_stream_name)


def run(event: Mapping[str, Any], aws: Aws, clock: Clock) -> Work:
    """Verify until all is done or the run nears its end. Raises VerificationError: something is not as it should be."""
    if event["RequestType"] == "Delete" or (event["RequestType"] == "Update" and rolls_back(event, aws.cloudformation)):
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


def rolls_back(event: Mapping[str, Any], cloudformation: CloudFormationClient) -> bool:
    """Whether CloudFormation is undoing an update of the event's stack; the event itself does not tell."""
    stacks = cloudformation.describe_stacks(StackName=event["StackId"])["Stacks"]
    return [stack["StackStatus"] for stack in stacks] == ["UPDATE_ROLLBACK_IN_PROGRESS"]


def begin(event: Mapping[str, Any], s3: S3Client, properties: Properties, *, now: float) -> Work:
    """The work of a first event: the archives whose digest or platform changed, by name."""
    new = release_set(s3, bucket=properties.release_set_bucket, key=properties.release_set_key)
    old: Mapping[str, str] = {}
    before = event.get("OldResourceProperties") or {}
    if event["RequestType"] == "Update" and before.get("ManifestPrefix") == properties.manifest_prefix:
        try:
            old = release_set(s3, bucket=before["ReleaseSetBucket"], key=before["ReleaseSetKey"])
        except ClientError as error:
            if error.response["Error"]["Code"] not in GONE:
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


def call_next(work: Work, aws: Aws, clock: Clock, properties: Properties) -> None:
    """Send the first archive that waits its sample request. Raises VerificationError where it answers wrongly."""
    name = work.waiting[0]
    if name not in work.called and work.called and unloads(work, aws, clock, properties):
        stop_warming(work, "models were unloaded meanwhile")
        return
    key = f"{properties.manifest_prefix}{name}.json"
    manifest = json.loads(read(aws.s3, bucket=properties.archive_bucket, key=key))
    request = sample_request(aws.s3, manifest, bucket=properties.archive_bucket, key=key)
    if request is None:
        work.leave([name], f"no {samples.READY_REQUEST} beside its manifest: an earlier version built it")
        return
    work.waiting.pop(0)
    if name not in work.called:
        work.called.append(name)
    target = {"TargetModel": f"{name}.tar.gz"} if properties.multi_model == "true" else {}
    try:
        answered = aws.runtime.invoke_endpoint(
            EndpointName=properties.endpoint_name, Body=request.content, ContentType=request.content_type, **target
        )
        content, content_type = answered["Body"].read(), answered.get("ContentType", "")
    except (ClientError, BotoCoreError) as error:
        failed(work, name, error, clock, properties)
        return
    try:
        outputs = samples.decode(content, content_type)
        samples.compare(manifest["sample"]["answer"]["outputs"], outputs, tolerance=manifest["sample"]["tolerance"])
    except VerificationError as error:
        raise VerificationError(f"model {name} answers its sample request wrongly: {error}") from error
    work.answered.append(name)


def sample_request(s3: S3Client, manifest: Mapping[str, Any], *, bucket: str, key: str) -> samples.Request | None:
    """An archive's sample request; None where it cannot be sent without the archive's adapter."""
    if samples.READY_REQUEST in manifest.get("client_files", {}):
        ready = f"{key.removesuffix('.json')}/{samples.READY_REQUEST}"
        return samples.ready_request(read(s3, bucket=bucket, key=ready))
    body = manifest["sample"].get("body")
    return samples.request_of(body) if body else None


def read(s3: S3Client, *, bucket: str, key: str) -> bytes:
    """What was published beside an archive. Raises VerificationError where it is gone."""
    try:
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        if error.response["Error"]["Code"] not in GONE:
            raise
        raise VerificationError(f"s3://{bucket}/{key} is missing: publish the environment again ({error})") from error


def failed(work: Work, name: str, error: ClientError | BotoCoreError, clock: Clock, properties: Properties) -> None:
    """A call failed: pause, and let it wait for another. Raises VerificationError where that would be in vain."""
    response: Mapping[str, Any] = error.response if isinstance(error, ClientError) else {}
    code, status = response.get("Error", {}).get("Code", ""), int(response.get("OriginalStatusCode") or 0)
    said = f"{status}: {response.get('OriginalMessage')}" if code == "ModelError" else str(error)
    work.said[name] = said[:MESSAGE_LENGTH]
    print(json.dumps({"model": name, "failed": said}))
    work.waiting.append(name)
    if code == "ModelNotReadyException":
        clock.sleep(LOADING_SECONDS)
        return
    if code == "ModelError" and status == OUT_OF_MEMORY and properties.stops_at_unload == "true":
        stop_warming(work, f"memory was full when {name} was called (507), and SageMaker unloads models then")
    tries = work.failures[name] = work.failures.get(name, 0) + 1
    if tries >= TRIES or not passes(error, code=code, status=status):
        log = f"; its log: {response['LogStreamArn']}" if response.get("LogStreamArn") else ""
        raise VerificationError(
            f"model {name} does not answer its sample request ({tries} of {TRIES} calls failed): {work.said[name]}{log}"
        )
    clock.sleep(FIRST_PAUSE_SECONDS * 3.0 ** (tries - 1))


def passes(error: ClientError | BotoCoreError, *, code: str, status: int) -> bool:
    """Whether another call can end differently."""
    if not isinstance(error, ClientError):
        return True
    if code == "ModelError":
        return status in PASSING_STATUSES
    http = error.response["ResponseMetadata"].get("HTTPStatusCode", 0)
    return code in PASSING_CODES or http == 429 or http >= 500


def unloads(work: Work, aws: Aws, clock: Clock, properties: Properties) -> bool:
    """Whether the variant unloaded a model in a whole minute since the work began, as far as CloudWatch knows yet."""
    start = 60 * (int(work.began) // 60 + 1)  # the minute that it began in holds what was before, too
    if properties.stops_at_unload != "true" or clock.now() <= start:
        return False
    found = aws.cloudwatch.get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName="ModelUnloadingTime",
        Dimensions=[
            {"Name": "EndpointName", "Value": properties.endpoint_name},
            {"Name": "VariantName", "Value": properties.variant_name},
        ],
        StartTime=datetime.fromtimestamp(start, UTC),
        EndTime=datetime.fromtimestamp(clock.now(), UTC),
        Period=60,
        Statistics=["SampleCount"],
    )
    return any(point["SampleCount"] > 0 for point in found["Datapoints"])


def stop_warming(work: Work, why: str) -> None:
    """Call no archive that was not called yet."""
    work.leave([name for name in work.waiting if name not in work.called], f"not called, since {why}")


def too_late(work: Work, properties: Properties) -> str:
    """What is said when the time is over."""
    if not work.checked:
        return f"endpoint {properties.endpoint_name} did not settle within {properties.minutes} minutes"
    told = [f"{name} ({work.said.get(name, 'not called yet')})" for name in work.waiting]
    return f"{len(told)} models did not answer within {properties.minutes} minutes: {shown(told)}"


def answer(event: Mapping[str, Any], *, status: str, reason: str, data: Mapping[str, str], log_stream: str) -> None:
    """Tell CloudFormation the outcome by the presigned URL in the event; the physical id never changes."""
    properties = event.get("ResourceProperties") or {}
    body = {
        "Status": status,
        "Reason": f"{reason[:REASON_LENGTH]} (log stream {log_stream})" if reason else "",
        "PhysicalResourceId": f"{event['ResourceType']}:{properties.get('EndpointName', 'unknown')}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": dict(data),
    }
    request = urllib.request.Request(  # noqa: S310 - the URL comes from CloudFormation
        event["ResponseURL"], data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310
        print(json.dumps({"answered": status, "http": response.status}))
