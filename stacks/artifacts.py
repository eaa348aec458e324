"""The stack that outlives every endpoint: the bucket of the model archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucket
from constructs_lib.outputs import publish_outputs
from tritonstack import naming
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
        self.artifacts = ArtifactBucket(
            self,
            "Artifacts",
            environment=environment.environment,
            retain=environment.artifacts.retain,
            noncurrent_days=environment.artifacts.noncurrent_days,
            incomplete_upload_days=environment.artifacts.incomplete_upload_days,
            access_log_days=environment.artifacts.access_log_days,
            key_arn=environment.artifacts.key_arn,
            endpoint_logs=environment.logs.endpoint_days is not None,
            load_test_logs=environment.load_test is not None,
            captured={
                naming.captured_prefix(endpoint=each.name): each.data_capture.days
                for each in environment.endpoints
                if each.data_capture is not None
            },
        )
        cdk.CfnOutput(self, "BucketName", value=self.artifacts.bucket.bucket_name, description="Bucket of the archives")
        cdk.CfnOutput(
            self, "KeyArn", value=self.artifacts.key.key_arn, description="KMS key that encrypts the archives"
        )
        outputs: ArtifactsFields = {"bucket": self.artifacts.bucket.bucket_name, "key_arn": self.artifacts.key.key_arn}
        publish_outputs(self, environment=environment, kind="artifacts", outputs=outputs)
