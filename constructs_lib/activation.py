"""Activation: an endpoint waits for its archives, and after it each model's release record names the new archive."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IConstruct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from tritonstack import naming

ARCHIVES_TYPE = "Custom::PublishedArchives"
RECORDS_TYPE = "Custom::ReleaseRecords"
RELEASE_SET_SCHEMA = 1
"""It rises when an older function could no longer read a set: to undo an update, CloudFormation puts the old function
back before that function is told of the new set. Members that an older one passes over (``commits``) do not count."""
REMOVED = "_removed"
"""The folder beside the endpoints' where the function keeps what it must bring back; no endpoint begins with ``_``."""
RELEASE_SET_SUFFIX = ".release-set"
"""An ending of its own, so that a permission can name release sets in the staging bucket and nothing else there."""


class Activation(Construct):
    """Two custom resources around an endpoint, and the function behind both.

    Before the endpoint, the archives of the release set must be there: a deployment that was not published fails in
    seconds and touches nothing that serves. After it, the release records move. The function answers CloudFormation
    itself; there is no framework between them.

    Attributes:
        function: the function behind both.
        release_set: the file that names every model's digest.
        archives: the custom resource that the endpoint waits for.
        records: the custom resource that waits for the endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        endpoint: str,
        artifacts: ArtifactBucketReference,
        archive_prefix: str,
        release_set: Mapping[str, str],
        around: IConstruct,
        commits: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the custom resource.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            endpoint: the endpoint's name in its environment.
            artifacts: where the archives lie.
            archive_prefix: the platform prefix of the archives, with its trailing slash.
            release_set: model name → digest, 16 hexadecimal digits.
            around: the endpoint, which is made to wait for the archives.
            commits: model name → the commit that its inputs come from; told in release records, and nothing else.
                Default: None.
            tags: key → value, of the release records; CloudFormation's tags reach no parameter that a function writes.
                Default: None, and the function leaves tags alone.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        record_path = naming.release_parameter(environment=environment, endpoint=endpoint, model="")
        platform = archive_prefix.rstrip("/").rpartition("/")[2]
        asset = self.release_set = self._release_set_asset(
            {"platform": platform, "models": dict(release_set), "commits": dict(commits or {})}
        )
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="activation",
            description=f"Writes the release records of {environment}/{endpoint}",
            log_retention=logs.RetentionDays.THREE_MONTHS,
            permissions_boundary_arn=permissions_boundary_arn,
        )
        self._allow_reading(asset, artifacts=artifacts, endpoint=endpoint)
        self._allow_records(record_path)
        self._allow_looking_at_the_stack()
        properties = {
            "ReleaseSetBucket": asset.s3_bucket_name,
            "ReleaseSetKey": asset.s3_object_key,
            "ArchiveBucket": artifacts.bucket_name,
            "ArchivePrefix": archive_prefix,
            "RecordPath": record_path,
        }
        self.archives = self.function.custom_resource(
            self, "Archives", resource_type=ARCHIVES_TYPE, properties=properties
        )
        if tags:
            properties = {**properties, "Tags": json.dumps(dict(tags), sort_keys=True)}
        self.records = self.function.custom_resource(self, "Records", resource_type=RECORDS_TYPE, properties=properties)
        around.node.add_dependency(self.archives)
        self.records.node.add_dependency(around)

    def _release_set_asset(self, told: Mapping[str, object]) -> s3_assets.Asset:
        document = {"schema": RELEASE_SET_SCHEMA, **told}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"set{RELEASE_SET_SUFFIX}")
            path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
            return s3_assets.Asset(self, "ReleaseSet", path=str(path))  # copied at once into the cloud assembly

    def _allow_reading(self, asset: s3_assets.Asset, *, artifacts: ArtifactBucketReference, endpoint: str) -> None:
        sets = f"arn:{cdk.Stack.of(self).partition}:s3:::{asset.s3_bucket_name}/*{RELEASE_SET_SUFFIX}"
        allow(self.function.policy, "ReadReleaseSets", actions=["s3:GetObject"], resources=[sets])
        acknowledge_wildcard(
            self.function.policy,
            resource=sets,
            reason="The release sets of earlier and later deployments must be readable in an update or a rollback; "
            f"their keys are not known here. Nothing but release sets ends in {RELEASE_SET_SUFFIX}.",
        )
        # Every platform of the endpoint: when a release change is rolled back, the set before lies under another one.
        allow(
            self.function.policy,
            "FindArchives",
            actions=["s3:ListBucket"],
            resources=[artifacts.bucket_arn],
            conditions={"StringLike": {"s3:prefix": [f"endpoints/{endpoint}/*"]}},
        )

    def _allow_records(self, path: str) -> None:
        stack = cdk.Stack.of(self)
        head, _, endpoint = path.strip("/").rpartition("/")
        folders = [
            stack.format_arn(service="ssm", resource="parameter", resource_name=name)
            for name in (f"{head}/{endpoint}", f"{head}/{REMOVED}/{endpoint}")
        ]
        records = [f"{folder}/*" for folder in folders]
        reading = ["ssm:GetParameters", "ssm:GetParameterHistory"]
        writing = ["ssm:PutParameter", "ssm:DeleteParameters", "ssm:AddTagsToResource", "ssm:RemoveTagsFromResource"]
        allow(self.function.policy, "MoveRecords", actions=[*reading, *writing], resources=records)
        allow(self.function.policy, "FindRecords", actions=["ssm:GetParametersByPath"], resources=[*folders, *records])
        for each in records:
            acknowledge_wildcard(
                self.function.policy,
                resource=each,
                reason="One parameter a model lies there: its release record, or what that held before its model left "
                "the release set. Models come and go, and no other part of the stack has a parameter there.",
            )

    def _allow_looking_at_the_stack(self) -> None:
        """An update and the rollback of one are the same event; only the stack's status tells them apart."""
        stack = cdk.Stack.of(self)
        allow(
            self.function.policy,
            "SeeRollbacks",
            actions=["cloudformation:DescribeStacks"],
            resources=[stack.stack_id],
        )
