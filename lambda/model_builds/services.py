"""Where everything is, and the services that are asked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..shared.clients import client

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_codebuild.client import CodeBuildClient
    from mypy_boto3_logs.client import CloudWatchLogsClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient
    from mypy_boto3_ssm.client import SSMClient


@dataclass(frozen=True)
class Place:
    """Where everything is.

    Attributes:
        bucket: where archives, orders and waits lie.
        project: the CodeBuild project that is given orders.
        records: what the names of all release records begin with.
        engine_project: the CodeBuild project of engines; nothing where there is none.
        engine_jobs: how the names of the processing jobs of engines begin; nothing where there are none.
    """

    bucket: str
    project: str
    records: str
    engine_project: str = ""
    engine_jobs: str = ""

    @classmethod
    def of_environment(cls) -> Place:
        """From the function's variables."""
        return cls(
            os.environ["ARTIFACT_BUCKET"],
            os.environ["PROJECT"],
            os.environ["RECORDS"],
            engine_project=os.environ.get("ENGINE_PROJECT", ""),
            engine_jobs=os.environ.get("ENGINE_JOBS", ""),
        )


@dataclass(frozen=True)
class Clients:
    """The services that are asked."""

    s3: S3Client
    ssm: SSMClient
    codebuild: CodeBuildClient
    sagemaker: SageMakerClient
    logs: CloudWatchLogsClient
    cloudformation: CloudFormationClient

    @classmethod
    def of_session(cls) -> Clients:
        """With the function's role."""
        return cls(
            s3=client("s3"),
            ssm=client("ssm"),
            codebuild=client("codebuild"),
            sagemaker=client("sagemaker"),
            logs=client("logs"),
            cloudformation=client("cloudformation"),
        )
