"""The CodeBuild project that builds TensorRT engines on its GPU machine, in the Triton image that serves them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import (
    JOBS,
    BuildNetwork,
    acknowledge_nameless,
    allow_jobs,
    allow_network,
    allow_pull,
)
from constructs_lib.build_log import BuildLog
from constructs_lib.codebuild_project import codebuild_principal, log_config, vpc_config
from constructs_lib.permission import allow, boundary
from constructs_lib.triton_image import TritonImage


class EngineProject(Construct):
    """A project whose builds each bring source, artifacts and image of their own: one engine's job.

    Attributes:
        project: the project.
        policy: the one policy of its role.
        log: where it writes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        artifacts: ArtifactBucketReference,
        images: Sequence[TritonImage],
        compute_type: str,
        timeout_minutes: int,
        queue_minutes: int,
        log: BuildLog,
        network: BuildNetwork | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the project.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            artifacts: where jobs lie.
            images: the Triton images that engines are built in, at least one.
            compute_type: CodeBuild's machine, which has the GPU.
            timeout_minutes: the longest that one engine takes.
            queue_minutes: the longest that it stands in the queue.
            log: where it writes.
            network: the VPC, or None for CodeBuild's own network.
            permissions_boundary_arn: a managed policy that bounds the role, where the account demands one.
                Default: None.
        """
        super().__init__(scope, construct_id)
        self.log = log
        role = iam.Role(
            self,
            "Role",
            description=f"Builds TensorRT engines of {environment} in CodeBuild",
            assumed_by=codebuild_principal(self),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[role])
        allow_jobs(self.policy, artifacts=artifacts)
        allow(
            self.policy,
            "FindJobs",
            actions=["s3:GetBucketAcl", "s3:GetBucketLocation"],
            resources=[artifacts.bucket_arn],
        )
        # As CodeBuild asks for the key of a project; it encrypts what the build leaves.
        allow(
            self.policy,
            "UseKey",
            actions=[
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:Encrypt",
                "kms:GenerateDataKey",
                "kms:ReEncryptFrom",
                "kms:ReEncryptTo",
            ],
            resources=[artifacts.key_arn],
        )
        allow_pull(self.policy, images=images)
        allow(self.policy, "WriteLog", actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log.arn])
        if network is not None:
            allow_network(self.policy, network=network, service="codebuild")
        acknowledge_nameless(self.policy)
        self.project = codebuild.CfnProject(
            self,
            "Project",
            description=f"Builds TensorRT engines of {environment}; source, artifacts and image come with each build",
            artifacts=codebuild.CfnProject.ArtifactsProperty(
                type="S3",
                location=artifacts.bucket_name,
                path=JOBS.rstrip("/"),
                name="output",
                namespace_type="NONE",
                packaging="NONE",
                encryption_disabled=False,
            ),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_GPU_CONTAINER",
                image=sorted(image.uri for image in images)[0],
                image_pull_credentials_type="SERVICE_ROLE",
                compute_type=compute_type,
            ),
            source=codebuild.CfnProject.SourceProperty(
                type="S3", location=f"{artifacts.bucket_name}/{JOBS}", build_spec=buildspec()
            ),
            service_role=role.role_arn,
            encryption_key=artifacts.key_arn,
            timeout_in_minutes=timeout_minutes,
            queued_timeout_in_minutes=queue_minutes,
            logs_config=log_config(log),
            vpc_config=vpc_config(network),
        )
        self.project.node.add_dependency(self.policy, log.group)
        acknowledge(
            self.project,
            finding="AwsSolutions-CB5",
            reason="An engine runs only on the TensorRT that built it, so it is built in the very Triton image that "
            "serves it; no image that CodeBuild provides has that TensorRT.",
        )


def buildspec() -> str:
    """What a build does with its source, a job folder: the engine step, whose output folder is the artifact."""
    document = {
        "version": "0.2",
        "phases": {"build": {"commands": ["python3 engine_step.py job.json"]}},
        "artifacts": {"base-directory": "output", "files": ["**/*"]},
    }
    return json.dumps(document, indent=1)
