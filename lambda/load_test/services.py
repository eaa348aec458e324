"""Where everything is, and the services that are asked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..shared.clients import client

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient


@dataclass(frozen=True)
class Place:
    """Where everything is.

    Attributes:
        bucket: where plans, payloads and results lie.
        job_role: the role that jobs run with.
        names: how the names of jobs, of packages and of what jobs make begin.
    """

    bucket: str
    job_role: str
    names: str

    @classmethod
    def of_environment(cls) -> Place:
        """From the function's variables."""
        return cls(os.environ["ARTIFACT_BUCKET"], os.environ["JOB_ROLE"], os.environ["NAMES"])


@dataclass(frozen=True)
class Clients:
    """The services that are asked."""

    s3: S3Client
    sagemaker: SageMakerClient
    cloudwatch: CloudWatchClient

    @classmethod
    def of_session(cls) -> Clients:
        """With the function's role."""
        return cls(s3=client("s3"), sagemaker=client("sagemaker"), cloudwatch=client("cloudwatch"))
