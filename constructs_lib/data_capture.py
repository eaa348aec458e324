"""Requests and answers of a single-model endpoint, kept in the artifact bucket."""

from __future__ import annotations

from aws_cdk import aws_sagemaker as sagemaker

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.execution_role import ExecutionRole
from constructs_lib.permission import allow
from tritonstack.settings.data_capture import DataCapture

JSON = "application/json"


def capture_data(
    config: sagemaker.CfnEndpointConfig,
    *,
    settings: DataCapture,
    prefix: str,
    role: ExecutionRole,
    artifacts: ArtifactBucketReference,
) -> None:
    """Have an endpoint's config capture data, and let the role write it.

    JSON is kept as text. Triton's binary requests are kept in base64, which SageMaker takes for every type that it is
    not told of: theirs carries the length of its header, so that no list could name it.

    Args:
        config: the config of a single-model endpoint.
        settings: how much is kept.
        prefix: where, with its trailing slash.
        role: the role that SageMaker runs the containers with.
        artifacts: the bucket.
    """
    config.data_capture_config = sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=settings.percentage,
        destination_s3_uri=f"s3://{artifacts.bucket_name}/{prefix}",
        kms_key_id=artifacts.key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=mode.capitalize())
            for mode in sorted(settings.capture)
        ],
        capture_content_type_header=sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
            json_content_types=[JSON]
        ),
    )
    captured = artifacts.objects_arn(f"{prefix}*")
    allow(role.policy, "WriteCaptured", actions=["s3:PutObject"], resources=[captured])
    acknowledge_wildcard(
        role.policy,
        resource=captured,
        reason="SageMaker names a captured file after variant, hour and a number of its own; all of them lie under "
        f"{prefix}, and nothing else does.",
    )
    allow(role.policy, "EncryptCaptured", actions=["kms:GenerateDataKey"], resources=[artifacts.key_arn])
