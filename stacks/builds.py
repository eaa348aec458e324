"""The stack of builds: what a deployment starts for the archives that are missing, before an endpoint uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucket
from constructs_lib.codebuild_project import BuildLog, BuildMachine, BuildSource, EngineProject, acknowledge_role_path
from constructs_lib.model_build import BuildSignals, ModelBuild, ProcessingRole, allow_engine_builds, allow_engine_jobs
from constructs_lib.outputs import publish_outputs, write_parameter
from constructs_lib.permission import BuildNetwork
from constructs_lib.triton_model import TritonImage
from tritonstack import naming
from tritonstack.config import Environment
from tritonstack.config.builds import QUEUE_MINUTES
from tritonstack.engines.order import DeployedBuilds
from tritonstack.engines.plan import Builder

if TYPE_CHECKING:
    from tritonstack.outputs.contract import BuildsFields


class BuildsStack(cdk.Stack):
    """The builds of one environment, for all its endpoints; its values are SSM parameters, so nothing is exported.

    Attributes:
        build: the project that is given orders.
        engines: the project of the GPU machine; None where CodeBuild builds no engine.
        processing: the role of processing jobs; None where SageMaker Processing builds no engine.
        signals: the function that starts builds and signals their end.
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
        self._artifacts = ArtifactBucket.from_parameters(self, "Artifacts", environment=environment.environment)
        self._network, self._jobs_network = self._networks(environment)
        source = BuildSource(self, "Source", models=builds.models)
        settings = environment.builds
        self.build = ModelBuild(
            self,
            "ModelBuild",
            environment=environment.environment,
            artifacts=self._artifacts,
            source=source,
            environments=builds.environments,
            weights=builds.weights,
            machine=BuildMachine(
                image=settings.image,
                compute_type=settings.compute_type,
                timeout_minutes=settings.timeout_minutes,
                queue_minutes=QUEUE_MINUTES,
                network=self._network,
                variables=settings.hub.variables,
                parameters=settings.hub.parameters,
            ),
            log=BuildLog(
                self,
                "Log",
                environment=environment.environment,
                of="builds",
                days=settings.log_days,
                artifacts=self._artifacts,
            ),
        )
        self.engines = self._engine_project(_of_kind(builds.builders, "codebuild"))
        self.processing = self._processing_role(_of_kind(builds.builders, "processing"))
        self.signals = BuildSignals(
            self,
            "Signals",
            environment=environment.environment,
            artifacts=self._artifacts,
            staging_bucket=source.asset.s3_bucket_name,
            build=self.build,
            engines=self.engines,
            processing=self.processing,
        )
        if environment.role_path is not None:
            for project in (self.build, self.engines):
                if project is not None:
                    acknowledge_role_path(project.project)
        self._record("project-name", self.build.project.ref)
        self._record("log-group-name", self.build.log.name)
        self._record("function-arn", self.signals.function.arn)
        self._record("undelivered-queue-name", self.signals.undelivered.attr_queue_name)
        cdk.CfnOutput(self, "ProjectName", value=self.build.project.ref, description="Project that builds archives")
        cdk.CfnOutput(self, "LogGroupName", value=self.build.log.name, description="Log group of its builds")
        outputs: BuildsFields = {
            "project": self.build.project.ref,
            "engine_project": None if self.engines is None else self.engines.project.ref,
            "processing_role_arn": None if self.processing is None else self.processing.role.role_arn,
            "function_arn": self.signals.function.arn,
            "log_group": self.build.log.name,
        }
        publish_outputs(self, environment=environment, kind="builds", outputs=outputs)

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
        from constructs_lib.network import Network  # noqa: PLC0415 - EC2's types, which most need not

        reference = Network.from_parameters(self, "Network", environment=environment.environment, settings=joined)
        return reference.of_builds(), None

    def _engine_project(self, builders: Sequence[Builder]) -> EngineProject | None:
        if not builders:
            return None
        environment, settings = self._environment, self._environment.builds
        project = EngineProject(
            self,
            "EngineProject",
            environment=environment.environment,
            artifacts=self._artifacts,
            images=_images(builders),
            compute_type=builders[0].machine.name,
            timeout_minutes=settings.engine_timeout_minutes,
            queue_minutes=QUEUE_MINUTES,
            log=BuildLog(
                self,
                "EngineLog",
                environment=environment.environment,
                of="engines",
                days=settings.log_days,
                artifacts=self._artifacts,
            ),
            network=self._network,
        )
        allow_engine_builds(self.build.policy, project_arn=project.project.attr_arn, log_arn=project.log.arn)
        self._record("engine-project-name", project.project.ref)
        return project

    def _processing_role(self, builders: Sequence[Builder]) -> ProcessingRole | None:
        if not builders:
            return None
        environment = self._environment
        role = ProcessingRole(
            self,
            "ProcessingRole",
            environment=environment.environment,
            artifacts=self._artifacts,
            images=_images(builders),
            network=self._jobs_network,
        )
        allow_engine_jobs(self.build.policy, environment=environment.environment, role_arn=role.role.role_arn)
        self._record("processing-role-arn", role.role.role_arn)
        return role

    def _record(self, value: str, text: str) -> None:
        name = naming.builds_parameter(environment=self._environment.environment, value=value)
        write_parameter(self, value, name=name, text=text)


def _of_kind(builders: Sequence[Builder], kind: str) -> list[Builder]:
    return [builder for builder in builders if builder.kind == kind]


def _images(builders: Sequence[Builder]) -> list[TritonImage]:
    return [TritonImage.from_uri(uri) for uri in sorted({builder.image for builder in builders})]
