"""The services that the function talks to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..shared.clients import client

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_ssm.client import SSMClient


@dataclass(frozen=True)
class Aws:
    """The services that the function talks to."""

    s3: S3Client
    ssm: SSMClient
    cloudformation: CloudFormationClient

    @classmethod
    def of_session(cls) -> Aws:
        """With the function's role."""
        return cls(client("s3"), client("ssm"), client("cloudformation"))
