"""The build that makes archives: exports and proofs on a CPU, engines elsewhere, and the commit."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.archive_making import (
    JobArns,
    allow_archives,
    allow_engine_builds,
    allow_engine_jobs,
    allow_parameters,
    allow_weights,
)
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_log import BuildLog
from constructs_lib.build_source import BuildSource
from constructs_lib.codebuild_project import codebuild_principal
from constructs_lib.cpu_project import BuildMachine, buildspec, cpu_project
from constructs_lib.engine_project import EngineProject
from constructs_lib.permission import boundary
from constructs_lib.processing_role import ProcessingRole

PREPARE = '.envs/main/bin/python -m tritonstack prepare --order "$TRITONSTACK_ORDER"'
"""What a build does: the order."""


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
        self.project = cpu_project(
            self,
            "Project",
            description=f"Builds the archives of {environment} that are missing in its bucket",
            build_spec=buildspec(PREPARE, environments=environments),
            role=self._role,
            policy=self.policy,
            source=source,
            machine=machine,
            artifacts=artifacts,
            log=log,
        )

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
