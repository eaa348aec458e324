"""The bucket that holds an environment's model archives, or another one, and how other stacks find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, get_args

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from tritonstack import aws_names, naming


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


class BucketEmptying(Construct):
    """A custom resource for each bucket that empties and deletes it with the stack, and the one function behind them.

    Order of a deletion: the bucket's policy, and with it S3's right to deliver access logs; what is in the bucket and
    the bucket itself, in one step that is repeated until it succeeds; CloudFormation's resource, which finds it gone.

    Attributes:
        function: the function behind them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        buckets: dict[str, s3.Bucket],
        key: kms.Key | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the custom resources.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            buckets: construct id of the custom resource → bucket. They are deleted in the reverse of this order.
            key: the key that must outlive the emptying. Default: None.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="bucket_emptying",
            description="Empties and deletes buckets that go with their stack",
            log_retention=logs.RetentionDays.ONE_WEEK,
            permissions_boundary_arn=permissions_boundary_arn,
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
                resource_type="Custom::EmptiedBucket",
                properties={"Bucket": bucket.bucket_name},
                after=[_low_level(bucket), *([key] if key else []), *([before] if before else [])],
            )
            before = resource
            if bucket.policy is not None:
                bucket.policy.node.add_dependency(resource)

    def _allow_emptying(self, bucket: s3.Bucket) -> None:
        name = bucket.node.id
        allow(
            self.function.policy,
            f"Delete{name}",
            actions=[
                "s3:DeleteBucket",
                "s3:GetBucketTagging",
                "s3:ListBucketMultipartUploads",
                "s3:ListBucketVersions",
            ],
            resources=[bucket.bucket_arn],
        )
        objects = bucket.arn_for_objects("*")
        allow(
            self.function.policy,
            f"Empty{name}",
            actions=["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"],
            resources=[objects],
        )
        acknowledge_wildcard(
            self.function.policy,
            resource=objects,
            reason="The bucket is deleted with its stack, and all that is in it goes first, whatever its key. "
            "Buckets that are retained have no such function.",
        )


def _low_level(bucket: s3.Bucket) -> s3.CfnBucket:
    """The bucket without its policy."""
    found = bucket.node.default_child
    if not isinstance(found, s3.CfnBucket):
        raise TypeError(f"{bucket.node.path}: a bucket without a resource")
    return found


KEY_DELETION_DAYS = 7
"""The shortest waiting period that KMS allows before a key is gone (``PendingWindowInDays``, 7 to 30)."""
STAGING_PREFIX, STAGING_DAYS = "staging/", 7
"""Orders, waits and jobs, which a build removes itself. A build takes less than a day; what one that was cut off left
is kept for a week, so that somebody can still look at it."""
BuildLogOf = Literal["builds", "engines", "network", "load-tests"]
ON_REQUEST = frozenset({"load-tests"})
"""Logs that the key's policy names only where they are asked for."""


def build_log_name(*, environment: str, of: BuildLogOf) -> str:
    """The log group of an environment's builds, of its engines, of its network's flows, or of its load tests."""
    return naming.log_group(environment=environment, of=of)


def endpoint_log_name(endpoint_name: str) -> str:
    """The log group of the containers of an endpoint, by its name at SageMaker."""
    return f"{aws_names.ENDPOINT_LOG_GROUPS}{endpoint_name}"


class ArtifactBucket(Construct):
    """A versioned bucket under a customer key, its access logs, and two SSM parameters that name them.

    Current archives never expire: an endpoint reads them at every cold start, however old they are. What does expire is
    what builds left in staging, versions that were replaced or deleted, uploads that were never completed, and access
    logs.

    Attributes:
        key: the customer KMS key, rotated every year where it is made here.
        bucket: the archives' bucket.
        access_logs: the bucket of the access logs. SSE-S3, because S3 delivers logs to no other kind of default
            encryption without a grant to its service (docs: "Enabling Amazon S3 server access logging").
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        retain: bool,
        noncurrent_days: int,
        incomplete_upload_days: int,
        access_log_days: int,
        key_arn: str | None = None,
        endpoint_logs: bool = False,
        load_test_logs: bool = False,
        captured: Mapping[str, int] | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the bucket.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name, part of the parameters' names.
            retain: keep buckets and key when the stack is deleted. Otherwise they are emptied and deleted with it.
            noncurrent_days: days until a replaced or deleted version is gone.
            incomplete_upload_days: days until an uncompleted multipart upload is gone.
            access_log_days: days until an access log is gone.
            key_arn: a key that exists, whose policy is its owner's; None makes one.
            endpoint_logs: whether the key that is made encrypts the logs of endpoints too. Default: False.
            load_test_logs: likewise of those of load tests. Default: False.
            captured: key prefix of captured requests and answers → days until they are gone. Default: None.
            permissions_boundary_arn: a managed policy that bounds the role of the function that empties the buckets.
                Default: None.
        """
        super().__init__(scope, construct_id)
        # Logs by bucket policy rather than by ACL, also in an app that does not set this feature flag.
        self.node.set_context("@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy", True)
        policy = cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY
        log_groups = _log_groups(environment, endpoints=endpoint_logs, load_tests=load_test_logs)
        self.key = self._key(key_arn, environment=environment, retain=retain, log_groups=log_groups)
        self.access_logs = s3.Bucket(
            self,
            "AccessLogs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(id="expire-access-logs", expiration=cdk.Duration.days(access_log_days)),
                _abort_incomplete_uploads(incomplete_upload_days),
            ],
            removal_policy=policy,
        )
        self.bucket = s3.Bucket(
            self,
            "Archives",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            versioned=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            server_access_logs_bucket=self.access_logs,
            server_access_logs_prefix="archives/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="expire-noncurrent-versions", noncurrent_version_expiration=cdk.Duration.days(noncurrent_days)
                ),
                s3.LifecycleRule(
                    id="expire-staging", prefix=STAGING_PREFIX, expiration=cdk.Duration.days(STAGING_DAYS)
                ),
                *_expire_captured(captured or {}),
                _abort_incomplete_uploads(incomplete_upload_days),
            ],
            removal_policy=policy,
        )
        if not retain:
            # Deleted in the reverse order: emptying the archives still writes access logs.
            buckets = {"AccessLogs": self.access_logs, "Archives": self.bucket}
            BucketEmptying(
                self,
                "Emptying",
                buckets=buckets,
                key=self.key if isinstance(self.key, kms.Key) else None,
                permissions_boundary_arn=permissions_boundary_arn,
            )
        self._record(environment=environment, value="bucket-name", is_=self.bucket.bucket_name)
        self._record(environment=environment, value="key-arn", is_=self.key.key_arn)

    @staticmethod
    def from_parameters(scope: Construct, construct_id: str, *, environment: str) -> ArtifactBucketReference:
        """The bucket of another stack of the same environment, found through its SSM parameters at deployment."""
        return ArtifactBucketReference(scope, construct_id, environment=environment)

    @staticmethod
    def from_bucket(
        scope: Construct, construct_id: str, *, bucket: s3.IBucket, key: kms.IKey | None = None
    ) -> OwnBucket:
        """A bucket that the app has or imports, as the place of archives; nothing is made.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            bucket: the bucket, in the region of the stack.
            key: the key of its objects. Default: None, the key that the bucket was made with, if any.
        """
        return OwnBucket(scope, construct_id, bucket=bucket, key=key)

    def _key(self, key_arn: str | None, *, environment: str, retain: bool, log_groups: Sequence[str]) -> kms.IKey:
        """The key that is named, or one that is made with a policy that lets in exactly the services that need it."""
        if key_arn is not None:
            return kms.Key.from_key_arn(self, "Key", key_arn)
        key = kms.Key(
            self,
            "Key",
            description=f"Model archives of {environment}",
            enable_key_rotation=True,
            pending_window=None if retain else cdk.Duration.days(KEY_DELETION_DAYS),
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
        )
        self._allow_logs(key, log_groups)
        self._allow_alarms(key, environment)
        return key

    def _allow_logs(self, key: kms.Key, log_groups: Sequence[str]) -> None:
        """CloudWatch Logs may use the key for the logs of builds and of the network, and for no other log group.

        Those of the environment's endpoints are added where their groups are the stacks' own.

        The statement names neither role nor stack: whether there are builds is another stack's business. The actions
        are those that CloudWatch Logs asks for (user guide: "Encrypt log data in CloudWatch Logs using AWS KMS").
        """
        stack = cdk.Stack.of(self)
        groups = [
            stack.format_arn(
                service="logs",
                resource="log-group",
                resource_name=name,
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            for name in log_groups
        ]
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="EncryptBuildLogs",
                principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
                actions=[
                    "kms:Decrypt",
                    "kms:DescribeKey",
                    "kms:Encrypt",
                    "kms:GenerateDataKey",
                    "kms:GenerateDataKeyWithoutPlaintext",
                    "kms:ReEncryptFrom",
                    "kms:ReEncryptTo",
                ],
                resources=["*"],  # in a key's policy: this key
                conditions={"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )

    def _allow_alarms(self, key: kms.Key, environment: str) -> None:
        """CloudWatch may use the key to tell of this environment's alarms, and for nothing else.

        It publishes to an encrypted topic with its own rights, which SNS passes on to KMS (SNS developer guide,
        "Managing Amazon SNS encryption keys": event sources, and the conditions against a confused deputy).
        """
        stack = cdk.Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{environment}-*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="TellOfAlarms",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],  # in a key's policy: this key
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": alarms},
                },
            )
        )

    def _record(self, *, environment: str, value: str, is_: str) -> None:
        name = naming.artifact_parameter(environment=environment, value=value)
        ssm.CfnParameter(self, f"Parameter-{value}", name=name, type="String", value=is_)


class ArtifactBucketReference(Construct):
    """The artifact bucket as another stack sees it: through SSM parameters, so that no export ties the stacks together.

    Attributes:
        bucket_name: the bucket's name, known at deployment.
        key_arn: the ARN of the key that its objects are encrypted with.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: str) -> None:
        """Read both parameters of ``environment``."""
        super().__init__(scope, construct_id)
        self.bucket_name = self._read("BucketName", environment=environment, value="bucket-name")
        self.key_arn = self._read("KeyArn", environment=environment, value="key-arn")

    @property
    def bucket_arn(self) -> str:
        """The bucket's ARN."""
        return f"arn:{cdk.Stack.of(self).partition}:s3:::{self.bucket_name}"

    def objects_arn(self, pattern: str) -> str:
        """The ARN of the objects whose keys match ``pattern`` (``*`` matches slashes too)."""
        return f"{self.bucket_arn}/{pattern}"

    def _read(self, construct_id: str, *, environment: str, value: str) -> str:
        parameter = cdk.CfnParameter(
            self,
            construct_id,
            type="AWS::SSM::Parameter::Value<String>",
            default=naming.artifact_parameter(environment=environment, value=value),
        )
        return parameter.value_as_string


def _log_groups(environment: str, *, endpoints: bool, load_tests: bool) -> list[str]:
    """The log groups that the key encrypts: of builds and network always, the others where they are asked for."""
    names = [
        build_log_name(environment=environment, of=of)
        for of in get_args(BuildLogOf)
        if load_tests or of not in ON_REQUEST
    ]
    return [*names, endpoint_log_name(f"{environment}-*")] if endpoints else names


def _expire_captured(captured: Mapping[str, int]) -> list[s3.LifecycleRule]:
    """A rule a prefix; what replaces nothing is expired by age."""
    return [
        s3.LifecycleRule(
            id=f"expire-{prefix.strip('/').replace('/', '-')}", prefix=prefix, expiration=cdk.Duration.days(days)
        )
        for prefix, days in sorted(captured.items())
    ]


def _abort_incomplete_uploads(days: int) -> s3.LifecycleRule:
    return s3.LifecycleRule(
        id="abort-incomplete-uploads", abort_incomplete_multipart_upload_after=cdk.Duration.days(days)
    )
