"""A bucket that archives lie in, whoever made it."""

from __future__ import annotations

from typing import Protocol

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct


class ArchiveStore(Protocol):
    """What an endpoint must know of the bucket of its archives."""

    @property
    def bucket_name(self) -> str:
        """The bucket's name."""

    @property
    def bucket_arn(self) -> str:
        """The bucket's ARN."""

    @property
    def key_arn(self) -> str | None:
        """The ARN of the key that its objects are encrypted with; None: with no key of KMS."""

    def objects_arn(self, pattern: str) -> str:
        """The ARN of the objects whose keys match ``pattern`` (``*`` matches slashes too)."""


class OwnBucket(Construct):
    """A bucket of the app that uses this library, or one that it has imported; nothing is made.

    Attributes:
        bucket: the bucket.
        key: the key that its objects are encrypted with; None: with no key of KMS.
    """

    def __init__(self, scope: Construct, construct_id: str, *, bucket: s3.IBucket, key: kms.IKey | None = None) -> None:
        """Describe the bucket.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            bucket: the bucket, in the region of the stack.
            key: the key of its objects. Default: None, the key that the bucket was made with, if any. Of a bucket that
                was imported by its name the CDK knows none.

        Raises:
            ValueError: the bucket is known to be in another region: SageMaker takes archives from its own alone.
        """
        super().__init__(scope, construct_id)
        self.bucket = bucket
        self.key = key or bucket.encryption_key
        stack = cdk.Stack.of(self)
        regions = (bucket.env.region, stack.region)
        if not any(cdk.Token.is_unresolved(region) for region in regions) and len(set(regions)) > 1:
            raise ValueError(
                f"bucket of archives: in {regions[0]}, and the stack {stack.stack_name} in {regions[1]}; SageMaker "
                "takes archives from a bucket in its own region alone"
            )
        if self.key is not None and not isinstance(self.key, kms.Key):
            cdk.Annotations.of(self).add_warning_v2(
                "tritonstack:key-policy-not-written",
                "The key of the archives is imported, so that its policy cannot be written here. It must let the "
                "execution role use kms:Decrypt. A key whose policy lets its account decide by IAM (a statement for "
                "the account's root, as the CDK and the console write it) needs nothing more.",
            )

    @property
    def bucket_name(self) -> str:
        """The bucket's name."""
        return self.bucket.bucket_name

    @property
    def bucket_arn(self) -> str:
        """The bucket's ARN."""
        return self.bucket.bucket_arn

    @property
    def key_arn(self) -> str | None:
        """The ARN of the key that its objects are encrypted with; None: with no key of KMS."""
        return None if self.key is None else self.key.key_arn

    def objects_arn(self, pattern: str) -> str:
        """The ARN of the objects whose keys match ``pattern`` (``*`` matches slashes too)."""
        return self.bucket.arn_for_objects(pattern)
