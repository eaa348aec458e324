"""Clients of AWS services that retry throttled and concurrent requests, and the meaning of their error codes."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
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
CONCURRENT = frozenset({"TooManyUpdates", "ConcurrentUpdateException", "OperationAborted", "OperationAbortedException"})
"""Refusals because another change of the same resource is under way: Systems Manager's (PutParameter and tags),
Application Auto Scaling's, S3's and CloudWatch Logs' (their API references). botocore does not retry these."""
THROTTLED = frozenset({"Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException", "SlowDown"})


def connect(service: str) -> Any:
    """A client with the function's role; InvokeEndpoint is attempted once, other requests are retried."""
    import boto3  # noqa: PLC0415 - without it the function still responds to CloudFormation

    if service == "sagemaker-runtime":
        return boto3.client(service, config=ONE_ATTEMPT)
    client: Any = cast("Any", boto3.client)(service, config=RETRIES)
    client.meta.events.register("needs-retry", pause_before_retry)
    return client


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

    def __init__(self, connect_to: Callable[[str], Any] | None = None) -> None:
        """``connect_to``: makes the client of a service. Default: ``connect``."""
        self._connect = connect_to or connect

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        return cast("CloudFormationClient", self._connect("cloudformation"))

    @cached_property
    def cloudwatch(self) -> CloudWatchClient:
        return cast("CloudWatchClient", self._connect("cloudwatch"))

    @cached_property
    def codebuild(self) -> CodeBuildClient:
        return cast("CodeBuildClient", self._connect("codebuild"))

    @cached_property
    def lambda_(self) -> Any:
        return self._connect("lambda")

    @cached_property
    def logs(self) -> CloudWatchLogsClient:
        return cast("CloudWatchLogsClient", self._connect("logs"))

    @cached_property
    def s3(self) -> S3Client:
        return cast("S3Client", self._connect("s3"))

    @cached_property
    def sagemaker(self) -> SageMakerClient:
        return cast("SageMakerClient", self._connect("sagemaker"))

    @cached_property
    def sagemaker_runtime(self) -> SageMakerRuntimeClient:
        return cast("SageMakerRuntimeClient", self._connect("sagemaker-runtime"))

    @cached_property
    def scaling(self) -> ApplicationAutoScalingClient:
        return cast("ApplicationAutoScalingClient", self._connect("application-autoscaling"))

    @cached_property
    def ssm(self) -> SSMClient:
        return cast("SSMClient", self._connect("ssm"))


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


def is_throttled(error: ClientError) -> bool:
    return code_of(error) in THROTTLED
