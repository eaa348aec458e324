"""The stack of builds, which a deployment starts for missing archives before an endpoint uses them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.artifact_bucket import ArtifactBucketReference, BuildLogOf, grant_group
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildSource,
    acknowledge_role_paths,
    buildspec,
    cpu_project,
    log_config,
    vpc_config,
)
from constructs_lib.joined_network import BuildNetwork, allow_any_network, allow_network
from constructs_lib.model_build import BuildSignals, EngineJobs, allow_engine_jobs, allow_preparing
from constructs_lib.outputs import publish_outputs, write_parameter
from constructs_lib.permission import acknowledge_nameless, allow_group, service_role
from constructs_lib.triton_model import TritonImage, allow_pull
from tritonstack import naming
from tritonstack.config import Environment
from tritonstack.config.builds import QUEUE_MINUTES
from tritonstack.engines.engine_builds import Builder
from tritonstack.preparation.deployed_builds import DeployedBuilds

if TYPE_CHECKING:
    from tritonstack.outputs.contract import BuildsFields

PREPARE = '.envs/main/bin/python -m tritonstack prepare --order "$TRITONSTACK_ORDER"'
"""The command of a build: make the archives that its order names."""
ENGINE_BUILDSPEC = {
    "version": "0.2",
    "phases": {"build": {"commands": ["python3 engine_step.py job.json"]}},
    "artifacts": {"base-directory": "output", "files": ["**/*"]},
}
"""What a build does with its source, a job folder: the engine step, whose output folder is the artifact."""


class BuildsStack(cdk.Stack):
    """The builds of one environment, for all its endpoints; its values are SSM parameters, so nothing is exported.

    Attributes:
        engines: the project of the GPU machine; None where CodeBuild builds no engine.
        processing: the role of processing jobs; None where SageMaker Processing builds no engine.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: Environment, builds: DeployedBuilds
    ) -> None:
        """Make the stack for one environment, and what its deployments build (``builds``)."""
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{environment.environment}-builds",
            description=f"Builds of the archives of {environment.environment}",
        )
        self._environment = environment
        self._artifacts = ArtifactBucketReference(
            self, "Artifacts", environment=environment.environment, earlier_key=environment.artifacts.earlier_key
        )
        self._network, self._jobs_network = self._networks(environment)
        source = BuildSource(self, "Source", models=builds.models)
        log = self._log("Log", "builds")
        self.project, policy = self._archive_project(builds, source=source, log=log)
        self.engines = self._engine_project(policy, _of_kind(builds.builders, "codebuild"))
        self.processing = self._processing_role(policy, _of_kind(builds.builders, "processing"))
        jobs = None if self.processing is None else EngineJobs.of(self, environment=environment.environment)
        self.signals = BuildSignals(
            self,
            "Signals",
            environment=environment.environment,
            artifacts=self._artifacts,
            staging_bucket=source.asset.s3_bucket_name,
            project=self.project,
            log=log,
            engines=self.engines,
            jobs=jobs,
        )
        if environment.role_path is not None:
            acknowledge_role_paths(self)
        self._record("project-name", self.project.ref)
        self._record("log-group-name", log.name)
        self._record("function-arn", self.signals.function.arn)
        self._record("undelivered-queue-name", self.signals.undelivered.attr_queue_name)
        cdk.CfnOutput(self, "ProjectName", value=self.project.ref, description="Project that builds archives")
        cdk.CfnOutput(self, "LogGroupName", value=log.name, description="Log group of its builds")
        outputs: BuildsFields = {
            "project": self.project.ref,
            "engine_project": None if self.engines is None else self.engines.ref,
            "processing_role_arn": None if self.processing is None else self.processing.role_arn,
            "function_arn": self.signals.function.arn,
            "log_group": log.name,
        }
        publish_outputs(self, environment=environment, kind="builds", outputs=outputs)

    def _log(self, construct_id: str, of: BuildLogOf) -> BuildLog:
        environment = self._environment
        return BuildLog(
            self,
            construct_id,
            environment=environment.environment,
            of=of,
            days=environment.builds.log_days,
            artifacts=self._artifacts,
        )

    def _archive_project(
        self, builds: DeployedBuilds, *, source: BuildSource, log: BuildLog
    ) -> tuple[codebuild.CfnProject, iam.Policy]:
        """The project that makes the archives of an order, and the one policy of its role."""
        environment, settings = self._environment.environment, self._environment.builds
        scope = Construct(self, "ModelBuild")
        role, policy = service_role(scope, "codebuild", description=f"Builds the archives of {environment}")
        source.allow_reading(policy)
        allow_preparing(policy, environment=environment, artifacts=self._artifacts, weights=builds.weights)
        project = cpu_project(
            scope,
            description=f"Builds the archives of {environment} that are missing in its bucket",
            build_spec=buildspec(PREPARE, environments=builds.environments),
            role=role,
            policy=policy,
            source=source,
            machine=settings,
            network=self._network,
            hub=settings.hub,
            artifacts=self._artifacts,
            log=log,
        )
        return project, policy

    def _networks(self, environment: Environment) -> tuple[BuildNetwork | None, BuildNetwork | None]:
        """The network of CodeBuild's builds, and that of processing jobs.

        These join only a network of ``builds.network``: without one they have none at all, and need none.
        """
        explicit = environment.builds.network
        if explicit is not None:
            network = BuildNetwork(
                vpc_id=explicit.vpc_id,
                subnet_ids=explicit.subnet_ids,
                security_group_ids=explicit.security_group_ids,
                subnet_owner=explicit.owner_account,
            )
            return network, network
        joined = environment.joined_network
        if joined is None or environment.builds.outside_network:
            return None, None
        from constructs_lib.network import NetworkReference  # noqa: PLC0415 - EC2's types, which most need not

        reference = NetworkReference(self, "Network", environment=environment.environment, settings=joined)
        return reference.of_builds(), None

    def _engine_project(self, of_builds: iam.Policy, builders: Sequence[Builder]) -> codebuild.CfnProject | None:
        """The project whose builds each bring source, artifacts and image of their own: one engine's job."""
        if not builders:
            return None
        environment, artifacts = self._environment.environment, self._artifacts
        log, images = self._log("EngineLog", "engines"), _images(builders)
        scope = Construct(self, "EngineProject")
        role, policy = service_role(
            scope, "codebuild", description=f"Builds TensorRT engines of {environment} in CodeBuild"
        )
        grant_group(policy, "codebuild-engines", artifacts=artifacts, prefixes=[naming.JOBS])
        allow_pull(policy, images=images)
        allow_group(policy, "write-log", log=log.arn)
        if self._network is not None:
            allow_network(policy, network=self._network, of="codebuild")
        acknowledge_nameless(policy)
        project = codebuild.CfnProject(
            scope,
            "Project",
            description=f"Builds TensorRT engines of {environment}; source, artifacts and image come with each build",
            artifacts=codebuild.CfnProject.ArtifactsProperty(
                type="S3",
                location=artifacts.bucket_name,
                path=naming.JOBS.rstrip("/"),
                name="output",
                namespace_type="NONE",
                packaging="NONE",
                encryption_disabled=False,
            ),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_GPU_CONTAINER",
                image=sorted(image.uri for image in images)[0],
                image_pull_credentials_type="SERVICE_ROLE",
                compute_type=builders[0].machine.name,
            ),
            source=codebuild.CfnProject.SourceProperty(
                type="S3",
                location=f"{artifacts.bucket_name}/{naming.JOBS}",
                build_spec=json.dumps(ENGINE_BUILDSPEC, indent=1),
            ),
            service_role=role.role_arn,
            encryption_key=artifacts.key_arn,
            timeout_in_minutes=self._environment.builds.engine_timeout_minutes,
            queued_timeout_in_minutes=QUEUE_MINUTES,
            logs_config=log_config(log),
            vpc_config=vpc_config(self._network),
        )
        project.node.add_dependency(policy, log.group)
        acknowledge(
            project,
            finding="AwsSolutions-CB5",
            reason="An engine runs only on the TensorRT that built it, so it is built in the very Triton image that "
            "serves it; no image that CodeBuild provides has that TensorRT.",
        )
        allow_group(of_builds, "engine-builds", project=project.attr_arn, log=log.arn)
        self._record("engine-project-name", project.ref)
        return project

    def _processing_role(self, of_builds: iam.Policy, builders: Sequence[Builder]) -> iam.Role | None:
        """The role of Processing jobs that build engines: reads its job, writes its output, pulls images, logs."""
        if not builders:
            return None
        environment, artifacts = self._environment.environment, self._artifacts
        role, policy = service_role(
            Construct(self, "ProcessingRole"),
            "sagemaker",
            description=f"Builds TensorRT engines of {environment} in SageMaker Processing",
        )
        grant_group(policy, "processing-engines", artifacts=artifacts, prefixes=[naming.JOBS])
        allow_pull(policy, images=_images(builders))
        logs = EngineJobs.of(self, environment=environment).logs
        allow_group(policy, "processing-output", environment=environment, job_logs=logs)
        if self._jobs_network is not None:
            allow_any_network(policy, of="processing")
        acknowledge_nameless(policy)
        allow_engine_jobs(of_builds, environment=environment, role_arn=role.role_arn)
        self._record("processing-role-arn", role.role_arn)
        return role

    def _record(self, value: str, text: str) -> None:
        name = naming.builds_parameter(environment=self._environment.environment, value=value)
        write_parameter(self, value, name=name, text=text)


def _of_kind(builders: Sequence[Builder], kind: str) -> list[Builder]:
    return [builder for builder in builders if builder.kind == kind]


def _images(builders: Sequence[Builder]) -> list[TritonImage]:
    return [TritonImage.from_uri(uri) for uri in sorted({builder.image for builder in builders})]
