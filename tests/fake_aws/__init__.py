"""The fake of AWS: boto3 clients whose requests are responded to in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.config import Config

from tests.fake_aws.responding import DENIED, SILENCE, AwsError, Responding, Response, client_error, pages
from tests.fake_aws.s3 import PAGE, S3, BucketContent, release_set
from tests.fake_aws.ssm import Ssm

__all__ = [
    "ARTIFACTS",
    "DENIED",
    "PAGE",
    "SILENCE",
    "UNREACHABLE",
    "AwsError",
    "BucketContent",
    "FakeAws",
    "Response",
    "client_error",
    "pages",
    "release_set",
    "unreachable",
]

ARTIFACTS = "artifacts"
"""The bucket of :attr:`FakeAws.artifacts`."""
UNREACHABLE = "http://127.0.0.1:9"
"""A URL that nothing listens at (the discard service)."""


@dataclass
class FakeAws(S3, Ssm, Responding):
    """An account with S3, Systems Manager and STS, and any operation that a test has a response for.

    It stands where the product takes a ``boto3.Session``. Further services: subclasses with a method ``_<Operation>``
    for each, which takes the request's members, or entries of ``responses``.

    Attributes:
        account: the caller's.
    """

    account: str = "123456789012"

    @classmethod
    def with_artifacts(cls, *environments: str) -> FakeAws:
        """An account with the artifacts of environments, ``dev`` by default, in the bucket ``artifacts``."""
        names = [f"/tritonstack/{name}/_artifacts/bucket-name" for name in environments or ("dev",)]
        return cls(parameters=dict.fromkeys(names, ARTIFACTS))

    @property
    def artifacts(self) -> BucketContent:
        """The objects of the bucket ``artifacts``."""
        return self.buckets[ARTIFACTS]

    def _GetCallerIdentity(self) -> dict[str, str]:
        return {"Account": self.account, "Arn": f"arn:aws:iam::{self.account}:user/tests", "UserId": "AIDATESTS"}


def unreachable(service: str) -> Any:
    """A client of a service that nothing responds for."""
    return FakeAws(urls={service: UNREACHABLE}).client(service, config=Config(retries={"total_max_attempts": 1}))
