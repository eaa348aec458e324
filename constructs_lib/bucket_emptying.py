"""Buckets that are deleted with their stack: a custom resource empties each first."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from tritonstack import naming


class BucketEmptying(Construct):
    """A custom resource for each bucket that empties and deletes it with the stack, and the one function behind them.

    Order of a deletion: the bucket's policy, and with it S3's right to deliver access logs; what is in the bucket and
    the bucket itself, in one step that is repeated until it succeeds; CloudFormation's resource, which finds it gone.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, buckets: dict[str, s3.Bucket], key: kms.Key | None = None
    ) -> None:
        """Make the custom resources.

        ``buckets``: construct id of the custom resource → bucket; they are deleted in the reverse of this order.
        ``key``: must outlive the emptying.
        """
        super().__init__(scope, construct_id)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="bucket_emptying",
            description="Empties and deletes buckets that go with their stack",
            log_retention=logs.RetentionDays.ONE_WEEK,
        )
        for bucket in buckets.values():
            self._allow_emptying(bucket)
        before = None
        for name, bucket in buckets.items():
            cdk.Tags.of(bucket).add(naming.DELETED_WITH_STACK_TAG, "true")
            # What depends on others is deleted before them: bucket, key and function are still there.
            # Deleting the stack again goes on from where a function that ran out of time stopped.
            resource = self.function.custom_resource(
                self,
                name,
                resource_type=naming.EMPTIED_TYPE,
                properties={"Bucket": bucket.bucket_name},
                after=[bucket_resource(bucket), *([key] if key else []), *([before] if before else [])],
            )
            before = resource
            if bucket.policy is not None:
                bucket.policy.node.add_dependency(resource)

    def _allow_emptying(self, bucket: s3.Bucket) -> None:
        name = bucket.node.id
        allow(
            self.function.policy,
            f"Delete{name}",
            ["s3:DeleteBucket", "s3:GetBucketTagging", "s3:ListBucketMultipartUploads", "s3:ListBucketVersions"],
            [bucket.bucket_arn],
        )
        objects = bucket.arn_for_objects("*")
        allow(
            self.function.policy,
            f"Empty{name}",
            ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"],
            [objects],
            wildcard="The bucket is deleted with its stack, and all that is in it goes first, whatever its key. "
            "Buckets that are retained have no such function.",
        )


def bucket_resource(bucket: s3.Bucket) -> s3.CfnBucket:
    """The CloudFormation resource of a bucket, without its policy."""
    found = bucket.node.default_child
    if not isinstance(found, s3.CfnBucket):
        raise TypeError(f"{bucket.node.path}: a bucket without a resource")
    return found
