"""A model's sample request sent to the endpoint: verified, to be sent again, or a failure of the verification."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ..shared.clients import THROTTLED, Aws, is_missing_object
from . import samples, streams
from .samples import VerificationError
from .work import Properties, Work

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

LOADING_SECONDS = 3.0
"""The pause after a request whose model is being loaded, or that was throttled: repeated as long as there is time."""
ATTEMPTS, FIRST_PAUSE_SECONDS = 4, 2.0
"""Requests of one model that may fail before it is a failure, and the first pause between them; each further pause is
three times as long."""
OUT_OF_MEMORY = 507
TRANSIENT_STATUSES = frozenset({0, 404, 429, 500, 502, 503, 504, OUT_OF_MEMORY})
"""Of the container, in a ModelError: 0: no whole response; 404: unloaded in between. All others are final."""
TRANSIENT_CODES = frozenset(
    {"InternalFailure", "ServiceUnavailable", "InternalDependencyException", *streams.STREAM_ERRORS}
)
KEPT_LENGTH, REASON_LENGTH = 300, 1000
"""Characters of a message: as kept for each model until the end, and in the reason of a failure, which must have all of
AWS's sentence on a missing right (a response to CloudFormation holds 4096 bytes)."""


def invoke_next(work: Work, aws: Aws, properties: Properties) -> None:
    """Send the next archive its sample request. Raises VerificationError where the response is not as expected."""
    name = work.waiting[0]
    if name not in work.invoked and work.invoked and has_unloaded(work, aws, properties):
        stop_warming(work, "models were unloaded meanwhile")
        return
    keys = [f"{prefix}{name}.json" for prefix in work.prefixes(properties)]
    manifests = [json.loads(read(aws.s3, bucket=properties.archive_bucket, key=key)) for key in keys]
    key, manifest = keys[0], manifests[0]  # the samples of one digest are the same for every GPU
    request = sample_request(aws.s3, manifest, bucket=properties.archive_bucket, key=key)
    if request is None:
        work.leave([name], f"no {samples.READY_REQUEST} with its manifest: an earlier version built it")
        return
    work.waiting.pop(0)
    if name not in work.invoked:
        work.invoked.append(name)
    body, content_type = request
    target = {"TargetModel": f"{name}.tar.gz"} if properties.multi_model == "true" else {}
    if (variant := properties.variant_of.get(name.partition(".")[0])) is not None:
        target = {"TargetVariant": variant}
    expected = manifest["sample"]["answer"]["outputs"]
    try:
        if properties.streams == "true":
            streamed = streams.request_of(body, content_type)
            content = streams.read_stream(aws.sagemaker_runtime, properties.endpoint_name, streamed, target)
        else:
            response = aws.sagemaker_runtime.invoke_endpoint(
                EndpointName=properties.endpoint_name, Body=body, ContentType=content_type, **target
            )
            content, content_type = response["Body"].read(), response.get("ContentType", "")
    except (ClientError, BotoCoreError) as error:
        failed(work, name, error, properties)
        return
    try:
        streaming = properties.streams == "true"
        outputs = streams.decode(content, expected) if streaming else samples.decode(content, content_type)
        compare_any([each["sample"] for each in manifests], outputs)
    except VerificationError as error:
        raise VerificationError(f"model {name} answers its sample request wrongly: {error}") from error
    work.verified.append(name)


def compare_any(expected: Sequence[Mapping[str, Any]], outputs: Mapping[str, samples.Output]) -> None:
    """Raise VerificationError unless a response is what one of the samples expects; the error is the first's.

    Several where instances of several GPUs may respond.
    """
    errors = []
    for sample in expected:
        try:
            samples.compare(sample["answer"]["outputs"], outputs, tolerance=sample["tolerance"])
        except VerificationError as error:
            errors.append(error)
        else:
            return
    raise errors[0]


def sample_request(s3: S3Client, manifest: Mapping[str, Any], *, bucket: str, key: str) -> samples.Request | None:
    """An archive's sample request; None where it needs the archive's adapter."""
    if samples.READY_REQUEST in manifest.get("client_files", {}):
        ready = f"{key.removesuffix('.json')}/{samples.READY_REQUEST}"
        return samples.ready_request(read(s3, bucket=bucket, key=ready))
    body = manifest["sample"].get("body")
    return samples.request_of(body) if body else None


def read(s3: S3Client, *, bucket: str, key: str) -> bytes:
    """An object that was published with an archive. Raises VerificationError where it is missing."""
    try:
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        if not is_missing_object(error):
            raise
        raise VerificationError(f"s3://{bucket}/{key} is missing: publish the environment again ({error})") from error


def failed(work: Work, name: str, error: ClientError | BotoCoreError, properties: Properties) -> None:
    """Pause after a failed request, and queue another. Raises VerificationError where that cannot succeed."""
    response: Mapping[str, Any] = error.response if isinstance(error, ClientError) else {}
    code, status = response.get("Error", {}).get("Code", ""), int(response.get("OriginalStatusCode") or 0)
    message = f"{status}: {response.get('OriginalMessage')}" if code == "ModelError" else str(error)
    work.errors[name] = message[:KEPT_LENGTH]
    print(json.dumps({"model": name, "failed": message}))
    work.waiting.append(name)
    if code in {"ModelNotReadyException", *THROTTLED}:
        time.sleep(LOADING_SECONDS)
        return
    if code == "ModelError" and status == OUT_OF_MEMORY and properties.stops_at_unload == "true":
        stop_warming(work, f"memory was full when {name} was invoked (507), and SageMaker unloads models then")
    attempts = work.failures[name] = work.failures.get(name, 0) + 1
    if attempts >= ATTEMPTS or not is_transient(error, code=code, status=status):
        log = f"; its log: {response['LogStreamArn']}" if response.get("LogStreamArn") else ""
        raise VerificationError(
            f"model {name} does not respond to its sample request ({attempts} of {ATTEMPTS} requests failed): "
            f"{message[:REASON_LENGTH]}{log}"
        )
    time.sleep(FIRST_PAUSE_SECONDS * 3.0 ** (attempts - 1))


def is_transient(error: ClientError | BotoCoreError, *, code: str, status: int) -> bool:
    """Whether another request may succeed."""
    if not isinstance(error, ClientError):
        return True
    if code == "ModelError":
        return status in TRANSIENT_STATUSES
    http = error.response["ResponseMetadata"].get("HTTPStatusCode", 0)
    return code in TRANSIENT_CODES or http == 429 or http >= 500


def has_unloaded(work: Work, aws: Aws, properties: Properties) -> bool:
    """Whether CloudWatch has an unload of the variant in a whole minute since the work began."""
    start = 60 * (int(work.began) // 60 + 1)  # the minute in which it began includes earlier unloads
    if properties.stops_at_unload != "true" or time.time() <= start:
        return False
    found = aws.cloudwatch.get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName="ModelUnloadingTime",
        Dimensions=[
            {"Name": "EndpointName", "Value": properties.endpoint_name},
            {"Name": "VariantName", "Value": properties.variant_name},
        ],
        StartTime=datetime.fromtimestamp(start, UTC),
        EndTime=datetime.fromtimestamp(time.time(), UTC),
        Period=60,
        Statistics=["SampleCount"],
    )
    return any(point["SampleCount"] > 0 for point in found["Datapoints"])


def stop_warming(work: Work, why: str) -> None:
    """Invoke no archive that was not invoked yet."""
    work.leave([name for name in work.waiting if name not in work.invoked], f"not invoked, since {why}")
