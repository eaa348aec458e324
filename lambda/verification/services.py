"""The services that the function talks to, and the time that a run has."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from botocore.config import Config

from ..shared.clients import RETRIES, client

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient
    from mypy_boto3_sagemaker_runtime.client import SageMakerRuntimeClient

ONE_TRY = Config(retries={"total_max_attempts": 1, "mode": "standard"}, connect_timeout=5, read_timeout=70)
"""An invocation may take 60 s, and AWS advises ten more, so that its own error arrives (SageMaker developer guide)."""


def connect(service: str) -> Any:
    """A client with the function's own credentials; a call of a model is tried once, for the tries here to count."""
    return client(service, config=ONE_TRY if service == "sagemaker-runtime" else RETRIES)


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
