"""The bucket that holds an environment's model archives, or another one, and how other stacks find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, get_args

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_lib.bucket_emptying import BucketEmptying
from constructs_lib.outputs import read_parameter, write_parameter
from constructs_lib.permission import allow_group, arn, regional_service
from tritonstack import naming
from tritonstack.arns import bucket_arn
from tritonstack.config import Environment
from tritonstack.config.environment import CREATED
from tritonstack.iam_statements import Value


class OwnBucket(Construct):
    """A bucket of the app that uses this library, or one that it has imported; nothing is made.

    Attributes:
        bucket: the bucket.
        key: the key that its objects are encrypted with; None: with no KMS key.
    """

    def __init__(self, scope: Construct, construct_id: str, *, bucket: s3.IBucket, key: kms.IKey | None = None) -> None:
        """Describe the bucket.

        Args:
            bucket: the bucket, in the region of the stack.
            key: the key of its objects. Default: None, the key that the bucket was made with, if any. The CDK
                has none for a bucket that was imported by its name.

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
    def key_arns(self) -> list[str]:
        """The ARNs of all keys that its objects may be encrypted with."""
        return [] if self.key is None else [self.key.key_arn]

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
        """The ARN of the key that its objects are encrypted with; None: with no KMS key."""
        return None if self.key is None else self.key.key_arn

    def objects_arn(self, pattern: str) -> str:
        """The ARN of the objects whose keys match ``pattern`` (``*`` matches slashes too)."""
        return self.bucket.arn_for_objects(pattern)


RETAINED = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""``RetainExceptOnCreate``: outlives its stack, but not a creation that is rolled back. What such a creation leaves is
empty, and the next attempt makes another."""
KEY_DELETION_DAYS = 7
"""Shortest waiting period that KMS allows before it deletes a key (``PendingWindowInDays``, 7 to 30)."""
STAGING_DAYS = 7
"""Orders, waits and jobs, which a build removes itself. A build takes less than a day; the files of one that was cut
off stay a week, for people to look at."""
BuildLogOf = Literal["builds", "engines", "network", "load-tests"]


class ArtifactBucket(Construct):
    """A versioned bucket under a customer key, its access logs, and two SSM parameters that name bucket and key.

    Current archives never expire: an endpoint reads them at every cold start, however old they are. Expired are files
    that builds left in staging, versions that were replaced or deleted, uploads that were never completed, and access
    logs.

    Attributes:
        key: the customer KMS key, rotated every year where it is made here.
        earlier_key_arn: of the key that objects are still encrypted with while the key is changed; None: there is none.
        bucket: the archives' bucket.
        access_logs: the bucket of the access logs. SSE-S3, because S3 delivers logs to no other kind of default
            encryption without a grant to its service (S3 user guide: "Enabling Amazon S3 server access logging").
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        """Make the bucket of an environment, and a key unless its settings name one."""
        super().__init__(scope, construct_id)
        self.node.set_context(LOGS_BY_POLICY, True)  # also in an app that does not set this feature flag
        settings = environment.artifacts
        policy = RETAINED if settings.retain else cdk.RemovalPolicy.DESTROY
        incomplete = s3.LifecycleRule(
            id="abort-incomplete-uploads",
            abort_incomplete_multipart_upload_after=cdk.Duration.days(settings.incomplete_upload_days),
        )
        captured = {
            naming.captured_prefix(endpoint=each.name): each.data_capture.days
            for each in environment.endpoints
            if each.data_capture is not None
        }
        makes_key = settings.key_arn is None or settings.earlier_key == CREATED
        created = self._created_key(environment) if makes_key else None
        self.key: kms.IKey = created or kms.Key.from_key_arn(self, "Key", settings.key_arn or "")
        self.earlier_key_arn = settings.earlier_key
        if created is not None and settings.key_arn is not None:
            # The created key keeps its logical id, so that CloudFormation leaves it as it is.
            self.key, self.earlier_key_arn = kms.Key.from_key_arn(self, "OwnKey", settings.key_arn), created.key_arn
        self.access_logs = access_log_bucket(
            self,
            lifecycle_rules=[
                s3.LifecycleRule(id="expire-access-logs", expiration=cdk.Duration.days(settings.access_log_days)),
                incomplete,
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
                    id="expire-noncurrent-versions",
                    noncurrent_version_expiration=cdk.Duration.days(settings.noncurrent_days),
                ),
                s3.LifecycleRule(
                    id="expire-staging", prefix=naming.STAGING, expiration=cdk.Duration.days(STAGING_DAYS)
                ),
                *(
                    s3.LifecycleRule(
                        id=f"expire-{prefix.strip('/').replace('/', '-')}",
                        prefix=prefix,
                        expiration=cdk.Duration.days(days),
                    )
                    for prefix, days in sorted(captured.items())
                ),
                incomplete,
            ],
            removal_policy=policy,
        )
        if not settings.retain:
            # Deleted in the reverse order: emptying the archives still writes access logs.
            buckets = {"AccessLogs": self.access_logs, "Archives": self.bucket}
            BucketEmptying(self, "Emptying", buckets=buckets, key=created)
        values = {"bucket-name": self.bucket.bucket_name, "key-arn": self.key.key_arn}
        if self.earlier_key_arn is not None:
            values["earlier-key-arn"] = self.earlier_key_arn
        for value, text in values.items():
            name = naming.artifact_parameter(environment=environment.environment, value=value)
            write_parameter(self, value, name=name, text=text)

    def _created_key(self, environment: Environment) -> kms.Key:
        """A key whose policy allows exactly the services that need it."""
        name, retain = environment.environment, environment.artifacts.retain
        key = kms.Key(
            self,
            "Key",
            description=f"Model archives of {name}",
            enable_key_rotation=True,
            pending_window=None if retain else cdk.Duration.days(KEY_DELETION_DAYS),
            removal_policy=RETAINED if retain else cdk.RemovalPolicy.DESTROY,
        )
        stack = cdk.Stack.of(self)
        # Log groups by name, not roles or stacks: whether there are builds is decided in another stack. The actions are
        # those of the CloudWatch Logs user guide ("Encrypt log data in CloudWatch Logs using AWS KMS").
        groups = [arn(stack, "logs", "log-group", name) for name in _log_groups(environment)]
        allow_service(
            key,
            "EncryptBuildLogs",
            regional_service(stack, "logs"),
            [
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:Encrypt",
                "kms:GenerateDataKey",
                "kms:GenerateDataKeyWithoutPlaintext",
                "kms:ReEncryptFrom",
                "kms:ReEncryptTo",
            ],
            conditions={"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": groups}},
        )
        # CloudWatch publishes to an encrypted topic with its own rights, which SNS passes on to KMS (SNS developer
        # guide, "Managing Amazon SNS encryption keys": event sources, and the conditions against a confused deputy).
        alarms = arn(stack, "cloudwatch", "alarm", f"{name}-*")
        allow_service(
            key,
            "PublishAlarms",
            "cloudwatch.amazonaws.com",
            ["kms:Decrypt", "kms:GenerateDataKey"],
            conditions={"StringEquals": {"aws:SourceAccount": stack.account}, "ArnLike": {"aws:SourceArn": alarms}},
        )
        return key


LOGS_BY_POLICY = "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy"
"""Feature flag: S3 may write access logs by the bucket's policy rather than by ACL, which AWS advises against."""


def allow_service(
    key: kms.Key,
    sid: str,
    service: str,
    actions: Sequence[str],
    *,
    conditions: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Add a statement to a key's policy that allows an AWS service (``events.amazonaws.com``) to use the key."""
    key.add_to_resource_policy(
        iam.PolicyStatement(
            sid=sid,
            principals=[iam.ServicePrincipal(service)],
            actions=list(actions),
            resources=["*"],  # in a key's policy: this key
            conditions=conditions,
        )
    )


def access_log_bucket(
    scope: Construct, *, lifecycle_rules: Sequence[s3.LifecycleRule], removal_policy: cdk.RemovalPolicy
) -> s3.Bucket:
    """A bucket for access logs of other buckets. The scope needs ``LOGS_BY_POLICY`` in its context."""
    return s3.Bucket(
        scope,
        "AccessLogs",
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        lifecycle_rules=list(lifecycle_rules),
        removal_policy=removal_policy,
    )


class ArtifactBucketReference(Construct):
    """The artifact bucket as another stack sees it: through SSM parameters, so that no export ties the stacks together.

    A value becomes a parameter of the stack when it is first read: CloudFormation warns of one that nothing refers to.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: str, earlier_key: str | None = None
    ) -> None:
        """A reference to the bucket of ``environment``. ``earlier_key``: its setting; None: there is no such key."""
        super().__init__(scope, construct_id)
        self._environment = environment
        self._has_earlier_key = earlier_key is not None

    @cached_property
    def bucket_name(self) -> str:
        """The bucket's name, known at deployment."""
        return self._read("BucketName", "bucket-name")

    @cached_property
    def key_arn(self) -> str:
        """The ARN of the key that new objects are encrypted with."""
        return self._read("KeyArn", "key-arn")

    @cached_property
    def key_arns(self) -> list[str]:
        """The ARNs of all keys that objects may be encrypted with: roles may use each."""
        return [self.key_arn, *([self._read("EarlierKeyArn", "earlier-key-arn")] if self._has_earlier_key else [])]

    def _read(self, construct_id: str, value: str) -> str:
        name = naming.artifact_parameter(environment=self._environment, value=value)
        return read_parameter(self, construct_id, name=name)

    @property
    def bucket_arn(self) -> str:
        """The bucket's ARN."""
        return bucket_arn(self.bucket_name, partition=cdk.Stack.of(self).partition)

    def objects_arn(self, pattern: str) -> str:
        """The ARN of the objects whose keys match ``pattern`` (``*`` matches slashes too)."""
        return f"{self.bucket_arn}/{pattern}"


ArchiveStore = OwnBucket | ArtifactBucketReference
"""The bucket of an endpoint's archives: its name, its key, ARNs for permissions."""


def _log_groups(environment: Environment) -> list[str]:
    """Log groups that the key encrypts: of builds, network and endpoints always, the others where there are any.

    Those of endpoints also without ``logs.endpoint_days``: a group that had the key is readable only while CloudWatch
    Logs may use it, and this policy changes before the serving stacks, which remove the key from their groups.
    """
    name = environment.environment
    groups = [
        naming.log_group(environment=name, of=of)
        for of in get_args(BuildLogOf)
        if of != "load-tests" or environment.load_test is not None
    ]
    return [*groups, naming.endpoint_log_group(f"{name}-*")]


def grant_group(
    policy: iam.Policy, group: str, *, artifacts: ArchiveStore, prefixes: Sequence[str] = (), **values: Value
) -> None:
    """Add a group of ``iam_statements.yaml`` that names the bucket and the keys of its objects.

    ``prefixes``: key prefixes whose objects the group reads or lists, each with its trailing slash.
    """
    allow_group(
        policy,
        group,
        bucket=artifacts.bucket_arn,
        key=artifacts.key_arns or None,
        prefixes=prefixes,
        **values,
    )
