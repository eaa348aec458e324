"""The stack that lets a pipeline in: only environments that a pipeline deploys have it."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucket
from constructs_lib.load_test import allow_bench_builds, allow_load_tests, allow_recommender
from constructs_lib.model_build import allow_engine_jobs, allow_preparing
from constructs_lib.pipeline_access import PipelineRole, allow_engines_by_codebuild, allow_verifying
from tritonstack import naming
from tritonstack.config import Environment
from tritonstack.pipeline import builds


class PipelineAccessStack(cdk.Stack):
    """The roles of one environment that a pipeline's builds assume.

    Attributes:
        prepare: makes archives.
        verify: reads what is deployed, and sends sample requests.
        measure: starts load tests and reads what they found; None where no gate does.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        pipeline: builds.PipelineNames,
        weights: Sequence[str],
        engines_by_codebuild: bool = False,
        engines_by_processing: bool = False,
        measured: bool = False,
    ) -> None:
        """Make the stack.

        Args:
            scope: the environment's stage.
            construct_id: the id in the stage.
            environment: its settings.
            pipeline: how the pipeline's roles are called.
            weights: URLs of the objects in S3 that recipes take pretrained weights from.
            engines_by_codebuild: whether the builds stack has an engine project.
            engines_by_processing: whether it has a role of processing jobs.
            measured: whether a gate runs the environment's load test.
        """
        name = environment.environment
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{name}-pipeline-access",
            description=f"Permissions of the pipeline {pipeline.pipeline} in {name}",
        )
        self._environment, self._pipeline = environment, pipeline
        self._artifacts = artifacts = ArtifactBucket.from_parameters(self, "Artifacts", environment=name)
        self.prepare = self._role("prepare", f"Makes the archives of {name} before its endpoints need them")
        policy = self.prepare.policy
        allow_preparing(policy, environment=name, artifacts=artifacts, weights=weights)
        if engines_by_codebuild:
            project = self._value(name, "engine-project-name")
            allow_engines_by_codebuild(policy, environment=name, project_name=project)
        if engines_by_processing:
            allow_engine_jobs(policy, environment=name, role_arn=self._value(name, "processing-role-arn"))
        self.verify = self._role("verify", f"Verifies the models of {name} with sample requests")
        allow_verifying(
            self.verify.policy,
            environment=name,
            endpoints=[endpoint.name for endpoint in environment.endpoints],
            artifacts=artifacts,
        )
        self.measure = self._measure() if measured else None

    def _role(self, work: builds.Work, description: str) -> PipelineRole:
        name = self._environment.environment
        return PipelineRole(
            self,
            work.title(),
            role_name=self._pipeline.access_role(name, work),
            description=description,
            trusted=self._pipeline.build_role_arn(name, work),
        )

    def _measure(self) -> PipelineRole:
        name, artifacts, tested = self._environment.environment, self._artifacts, self._environment.tested_endpoints
        measure = self._role("measure", f"Runs load tests of {name}")
        allow_load_tests(measure.policy, environment=name, artifacts=artifacts)
        single = [each.name for each in tested if not each.multi_model]
        if len(single) < len(tested):
            project = self._read(naming.load_test_parameter(environment=name, value="project-name"))
            allow_bench_builds(measure.policy, project_name=project)
        if single:
            machine = self._read(naming.load_test_parameter(environment=name, value="state-machine-name"))
            allow_recommender(
                measure.policy, environment=name, endpoints=single, artifacts=artifacts, state_machine_name=machine
            )
        return measure

    def _value(self, environment: str, value: str) -> str:
        """A value of the builds stack."""
        return self._read(naming.builds_parameter(environment=environment, value=value))

    def _read(self, parameter: str) -> str:
        return ssm.StringParameter.value_for_string_parameter(self, parameter)
