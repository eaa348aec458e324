"""The build that makes archives: exports and proofs on a CPU, engines elsewhere, and the commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.archive_making import (
    JobArns,
    allow_archives,
    allow_engine_builds,
    allow_engine_jobs,
    allow_parameters,
    allow_weights,
)
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, acknowledge_nameless, allow_network, allow_pull
from constructs_lib.build_log import BuildLog
from constructs_lib.build_source import BuildSource
from constructs_lib.codebuild_project import codebuild_principal, log_config, vpc_config
from constructs_lib.engine_project import EngineProject
from constructs_lib.permission import allow, boundary
from constructs_lib.processing_role import ProcessingRole
from constructs_lib.triton_image import TritonImage

PYTHON = "3.11"


@dataclass(frozen=True, kw_only=True)
class BuildMachine:
    """What a build runs on.

    Attributes:
        image: the CPU image, one of CodeBuild's or one in ECR.
        compute_type: CodeBuild's machine.
        timeout_minutes: the longest that a build takes.
        queue_minutes: the longest that it stands in the queue.
        network: the VPC, or None for CodeBuild's own network.
    """

    image: str
    compute_type: str
    timeout_minutes: int
    queue_minutes: int
    network: BuildNetwork | None = None


class ModelBuild(Construct):
    """The CodeBuild project that an order is given to, its log, and its role.

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
        source: BuildSource,
        environments: Sequence[str],
        weights: Sequence[str],
        machine: BuildMachine,
        log: BuildLog,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the project.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            artifacts: the bucket that orders come from and archives go to.
            source: what it starts from.
            environments: Python environments to install, by the names that ``scripts/setup.py`` knows.
            weights: URLs of the objects in S3 that recipes take weights from.
            machine: what it runs on.
            log: where it writes.
            permissions_boundary_arn: a managed policy that bounds the role, where the account demands one.
                Default: None.
        """
        super().__init__(scope, construct_id)
        self.log = log
        self._environment = environment
        self._role = iam.Role(
            self,
            "Role",
            description=f"Builds the archives of {environment}",
            assumed_by=codebuild_principal(self),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self._role])
        source.allow_reading(self.policy)
        allow_weights(self.policy, weights)
        allow_archives(self.policy, artifacts)
        allow_parameters(self.policy, environment)
        allow(self.policy, "WriteLog", actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log.arn])
        own_image = TritonImage.of_machine(machine.image)
        if own_image is not None:
            allow_pull(self.policy, images=[own_image])
        if machine.network is not None:
            allow_network(self.policy, network=machine.network, service="codebuild")
        if own_image is not None or machine.network is not None:
            acknowledge_nameless(self.policy)
        self.project = codebuild.CfnProject(
            self,
            "Project",
            description=f"Builds the archives of {environment} that are missing in its bucket",
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                image=machine.image,
                image_pull_credentials_type="CODEBUILD" if own_image is None else "SERVICE_ROLE",
                compute_type=machine.compute_type,
            ),
            source=codebuild.CfnProject.SourceProperty(
                type="S3", location=source.location, build_spec=buildspec(environments)
            ),
            service_role=self._role.role_arn,
            encryption_key=artifacts.key_arn,
            timeout_in_minutes=machine.timeout_minutes,
            queued_timeout_in_minutes=machine.queue_minutes,
            logs_config=log_config(log),
            vpc_config=vpc_config(machine.network),
        )
        if own_image is not None:
            acknowledge(
                self.project,
                finding="AwsSolutions-CB5",
                reason="The settings name an image of the account's own in ECR, which may hold the environments that "
                "builds need where they cannot be fetched; by default the image is one of CodeBuild's.",
            )
        # CodeBuild checks the role when the project is made, and again when a build starts.
        self.project.node.add_dependency(self.policy, log.group)

    def allow_engine_project(self, engines: EngineProject) -> None:
        """The build may start builds of this project, stop them, ask after them and read what they said."""
        allow_engine_builds(self.policy, project_arn=engines.project.attr_arn, log_arn=engines.log.arn)

    def allow_processing(self, processing: ProcessingRole) -> None:
        """The build may run processing jobs of its environment's name with this role, and read what they said."""
        allow_engine_jobs(
            self.policy,
            environment=self._environment,
            role_arn=processing.role.role_arn,
            jobs=JobArns(
                jobs=processing.jobs_arn,
                log=processing.log_arn,
                group=processing.group_arn,
                streams=processing.streams_arn,
            ),
        )


def buildspec(environments: Sequence[str]) -> str:
    """What a build does, as a buildspec: environments first, unless the image brings them, then the order."""
    names = " ".join(environments)
    document = {
        "version": "0.2",
        "env": {"variables": {"PYTHONUNBUFFERED": "1"}},
        "phases": {
            "install": {
                "runtime-versions": {"python": PYTHON},
                "commands": [f"test -e .envs/main/bin/python || python3 scripts/setup.py {names}"],
            },
            "build": {"commands": ['.envs/main/bin/python -m tritonstack prepare --order "$TRITONSTACK_ORDER"']},
        },
    }
    return json.dumps(document, indent=1)
