"""Logs of builds and of the network: encrypted under the artifacts' key, kept for a set time."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference, BuildLogOf, build_log_name


class BuildLog(Construct):
    """A log group that the builds of an environment write into, or its VPC.

    Its name is ours, not generated: the key's policy names it before it exists, so that no other log group can be put
    under the key.

    Attributes:
        name: the log group's name.
        arn: the ARN that permissions for its streams name.
        group: the resource, which must be there before anything writes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        of: BuildLogOf,
        days: int,
        artifacts: ArtifactBucketReference,
    ) -> None:
        """Make the log group.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            of: whose log it is: that of the builds of archives, of the engines, or of the network.
            days: how long a line is kept; one of the retentions that CloudWatch Logs takes.
            artifacts: whose key encrypts it.
        """
        super().__init__(scope, construct_id)
        self.name = build_log_name(environment=environment, of=of)
        self.group = logs.CfnLogGroup(
            self, "Group", log_group_name=self.name, retention_in_days=days, kms_key_id=artifacts.key_arn
        )
        self.group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        self.arn: str = self.group.attr_arn
