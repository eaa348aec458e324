"""The stack that outlives every endpoint: the bucket of the model archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucket
from constructs_lib.outputs import publish_outputs
from tritonstack.config import Environment

if TYPE_CHECKING:
    from tritonstack.outputs.contract import ArtifactsFields


class ArtifactsStack(cdk.Stack):
    """The artifact bucket with its key, and the parameters by which the serving stacks find both."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        """Make the stack for one environment."""
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{environment.environment}-artifacts",
            description=f"Model archives of {environment.environment}",
        )
        self.artifacts = ArtifactBucket(self, "Artifacts", environment=environment)
        cdk.CfnOutput(self, "BucketName", value=self.artifacts.bucket.bucket_name, description="Bucket of the archives")
        cdk.CfnOutput(
            self, "KeyArn", value=self.artifacts.key.key_arn, description="KMS key that encrypts the archives"
        )
        outputs: ArtifactsFields = {"bucket": self.artifacts.bucket.bucket_name, "key_arn": self.artifacts.key.key_arn}
        publish_outputs(self, environment=environment, kind="artifacts", outputs=outputs)
