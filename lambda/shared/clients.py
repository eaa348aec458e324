"""Clients of AWS services that retry throttled, concurrent and denied requests; the meaning of their error codes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling.client import ApplicationAutoScalingClient
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_codebuild.client import CodeBuildClient
    from mypy_boto3_logs.client import CloudWatchLogsClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient
    from mypy_boto3_sagemaker_runtime.client import SageMakerRuntimeClient
    from mypy_boto3_ssm.client import SSMClient

ATTEMPTS = 10
RETRIES = Config(retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS})
"""Some calls are throttled at a few a second by default; the client paces itself. Ten attempts take 111 seconds at most
(botocore waits up to 1, 2, 4, 8, 16 and then 20 seconds between them)."""
LONGEST_PAUSE = 20.0
ONE_ATTEMPT = Config(retries={"total_max_attempts": 1, "mode": "standard"}, connect_timeout=5, read_timeout=70)
"""An invocation may take 60 s, and AWS advises ten more, so that its own error arrives (SageMaker developer guide)."""
MISSING_OBJECT = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
"""S3's error codes for an object that does not exist: without permission to list, that is AccessDenied."""
CONCURRENT = frozenset(
    {
        "TooManyUpdates", "ConcurrentUpdateException", "OperationAborted", "OperationAbortedException",
        "ConditionalRequestConflict",
    }
)  # fmt: skip
"""Refusals because another change of the same resource is under way: Systems Manager's (PutParameter and tags),
Application Auto Scaling's, S3's, CloudWatch Logs' and S3's of conditional writes (their API references). botocore does
not retry these."""
MISSING = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
SERVICES = {"lambda_": "lambda", "sagemaker_runtime": "sagemaker-runtime", "scaling": "application-autoscaling"}
"""Attribute of ``Aws`` → service, where the two differ."""
THROTTLED = frozenset({"Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException", "SlowDown"})


DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
DENIED_SECONDS, DENIED_PAUSE = 60.0, 5.0
"""IAM and KMS take a while until a changed policy is in force everywhere (IAM user guide, "Changes that I make are not
always immediately visible"; KMS developer guide, "Eventual consistency"), and an update may call a function as soon as
it has changed its policy."""
KEY_DENIED = "not allowed to be used"
"""In CloudWatch Logs' InvalidParameterException where a key's policy does not let it in."""


def connect(service: str) -> Any:
    """A client with the function's role.

    InvokeEndpoint is repeated only where its permission is missing, other requests also where they are throttled.
    """
    import boto3  # noqa: PLC0415 - without it the function still responds to CloudFormation

    once = service == "sagemaker-runtime"
    client: Any = cast("Any", boto3.client)(service, config=ONE_ATTEMPT if once else RETRIES)
    client.meta.events.register("needs-retry", Denials().pause)
    if not once:
        client.meta.events.register("needs-retry", pause_before_retry)
    return client


class Denials:
    """Refusals of a client's requests for a missing permission: retried for a minute, over all of its requests."""

    def __init__(self) -> None:
        """No request was refused yet."""
        self._left = DENIED_SECONDS

    def pause(self, *, response: tuple[Any, Mapping[str, Any]] | None, event_name: str, **_: Any) -> float | None:
        """Seconds before such a refusal is retried; None for another one, and when the minute is over."""
        error: Mapping[str, str] = {} if response is None else response[1].get("Error", {})
        code, message = error.get("Code", ""), error.get("Message", "")
        # S3's for an object that does not exist, without s3:ListBucket: no policy will change it.
        missing = event_name.endswith(".GetObject") and "s3:ListBucket" in message
        denied = code in DENIED or (code == "InvalidParameterException" and KEY_DENIED in message)
        if missing or not denied or self._left <= 0:
            return None
        self._left -= DENIED_PAUSE
        print(json.dumps({"denied": message, "retried_for": self._left}))
        return DENIED_PAUSE


def pause_before_retry(*, response: tuple[Any, Mapping[str, Any]] | None, attempts: int, **_: Any) -> float | None:
    """Seconds before a refusal is retried that botocore takes for final; None where it is final."""
    if response is None or attempts >= ATTEMPTS:
        return None
    http, parsed = response
    if http.status_code != 429 and parsed.get("Error", {}).get("Code") not in CONCURRENT | THROTTLED:
        return None
    return random.random() * min(2.0 ** (attempts - 1), LONGEST_PAUSE)  # noqa: S311 - so that two do not collide again


class Aws:
    """Clients of services, each made when it is first used: that takes a second in a function of 256 MiB."""

    cloudformation: CloudFormationClient
    cloudwatch: CloudWatchClient
    codebuild: CodeBuildClient
    lambda_: Any
    logs: CloudWatchLogsClient
    s3: S3Client
    sagemaker: SageMakerClient
    sagemaker_runtime: SageMakerRuntimeClient
    scaling: ApplicationAutoScalingClient
    ssm: SSMClient

    def __init__(self, connect_to: Callable[[str], Any] | None = None) -> None:
        """``connect_to``: makes the client of a service. Default: ``connect``."""
        self._connect = connect_to or connect

    if not TYPE_CHECKING:  # else every wrong name would pass the type checker

        def __getattr__(self, name: str) -> Any:
            if name not in Aws.__annotations__:
                raise AttributeError(name)
            client = self._connect(SERVICES.get(name, name))
            setattr(self, name, client)
            return client


def code_of(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


@contextmanager
def ignoring(codes: Collection[str]) -> Iterator[None]:
    """Suppress AWS's errors with these codes in the block."""
    try:
        yield
    except ClientError as error:
        if code_of(error) not in codes:
            raise


def is_missing_object(error: ClientError) -> bool:
    """Whether S3 reports that an object does not exist."""
    return code_of(error) in MISSING_OBJECT


def unless_missing(operation: Callable[..., Any], **names: str) -> Mapping[str, Any] | None:
    """The response of a SageMaker operation; None where what is named does not exist.

    SageMaker has error codes of its own for that, and for some resources a ValidationException with such a message.
    """
    try:
        return cast("Mapping[str, Any]", operation(**names))
    except ClientError as error:
        code, message = code_of(error), str(error).lower()
        if code in MISSING or (code == "ValidationException" and ("not find" in message or "not exist" in message)):
            return None
        raise


def keys_below(s3: S3Client, *, bucket: str, prefix: str) -> set[str]:
    """The keys of the objects under a prefix, without it."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {entry["Key"].removeprefix(prefix) for page in pages for entry in page.get("Contents", [])}


def records_below(ssm: SSMClient, *, path: str) -> dict[str, str]:
    """The parameters under a path: name below it → value."""
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    return {entry["Name"].removeprefix(path): entry["Value"] for page in pages for entry in page["Parameters"]}
