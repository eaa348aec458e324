"""One model asked its sample request: it answers rightly, is asked again, or fails the verification."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ..shared.clients import is_gone, is_throttled
from . import samples
from .samples import VerificationError
from .services import Aws, Clock
from .unloads import stop_warming, unloads
from .work import Properties, Work

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

STATUS_SECONDS, LOADING_SECONDS = 10.0, 3.0
"""Pauses before the next look at the endpoint, and after a call whose model is still being loaded."""
TRIES, FIRST_PAUSE_SECONDS = 4, 2.0
"""Calls of one model that may fail before it is a failure, and the first pause between them; the next are three times
as long each. A model that is being loaded, and a call of too many, is waited for as long as there is time."""
OUT_OF_MEMORY = 507
PASSING_STATUSES = frozenset({0, 404, 429, 500, 502, 503, 504, OUT_OF_MEMORY})
"""Of the container, in a ModelError: 0: no whole answer; 404: unloaded in between. All others are the request's."""
PASSING_CODES = frozenset({"InternalFailure", "ServiceUnavailable", "InternalDependencyException"})
MESSAGE_LENGTH = 300


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
        if not is_gone(error):
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
    if code == "ModelNotReadyException" or (isinstance(error, ClientError) and is_throttled(error)):
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
