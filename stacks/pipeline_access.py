"""The roles by which a pipeline works in an environment; only environments that a pipeline deploys have this stack."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference, grant_group
from constructs_lib.model_build import allow_engine_jobs, allow_parameters, allow_preparing
from constructs_lib.permission import allow_group, arn, endpoint_arns, regional_service, staging_bucket_name
from tritonstack import naming
from tritonstack.arns import bucket_arn
from tritonstack.config import Environment
from tritonstack.pipeline.builds import PipelineNames, Work

SESSION_HOURS = 1
"""A role that is assumed from another role is assumed for an hour at most, whatever it allows (IAM user guide: "Role
chaining"); the SDK assumes it anew in time."""


class PipelineAccessStack(cdk.Stack):
    """The roles of one environment that a pipeline's builds assume: to make archives, to verify, to run load tests."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        pipeline: PipelineNames,
        weights: Sequence[str],
        engines_by_codebuild: bool,
        engines_by_processing: bool,
        measured: bool,
    ) -> None:
        """Make the stack.

        ``weights``: URLs of the objects in S3 that recipes take pretrained weights from. ``measured``: whether a gate
        runs the environment's load test.
        """
        name = environment.environment
        super().__init__(
            scope,
            construct_id,
            stack_name=naming.stack_name(environment=name, part=naming.PIPELINE_ACCESS),
            description=f"Permissions of the pipeline {pipeline.pipeline} in {name}",
        )
        self._environment, self._pipeline = environment, pipeline
        self._artifacts = artifacts = ArtifactBucketReference(
            self, "Artifacts", environment=name, earlier_key=environment.artifacts.earlier_key
        )
        policy = self._role("prepare", f"Makes the archives of {name} before its endpoints need them")
        allow_preparing(policy, environment=name, artifacts=artifacts, weights=weights)
        if engines_by_codebuild:
            project = self._value(name, "engine-project-name")
            allow_engines_by_codebuild(policy, environment=name, project_name=project)
        if engines_by_processing:
            allow_engine_jobs(policy, environment=name, role_arn=self._value(name, "processing-role-arn"))
        allow_verifying(
            self._role("verify", f"Verifies the models of {name} with sample requests"),
            environment=name,
            endpoints=[endpoint.name for endpoint in environment.endpoints],
            streaming=[endpoint.name for endpoint in environment.endpoints if endpoint.streams],
            artifacts=artifacts,
        )
        if measured:
            self._measure()

    def _role(self, work: Work, description: str) -> iam.Policy:
        """The one policy of a new role, which only the builds of the pipeline may assume.

        The trust policy names the pipeline's account and, as a condition, the one role in it: a role that is named as
        principal must exist first, and is not recognised after it was deleted and made again (IAM user guide: "AWS JSON
        policy elements: Principal"). The name is fixed, because the pipeline's account must name it.
        """
        name, scope = self._environment.environment, Construct(self, work.title())
        trusted = self._pipeline.build_role_arn(name, work)
        account = iam.AccountPrincipal(self._pipeline.account)
        role = iam.Role(
            scope,
            "Role",
            role_name=self._pipeline.access_role(name, work),
            description=description,
            assumed_by=iam.PrincipalWithConditions(account, {"ArnEquals": {"aws:PrincipalArn": trusted}}),
            max_session_duration=cdk.Duration.hours(SESSION_HOURS),
        )
        return iam.Policy(scope, "Access", roles=[role])

    def _measure(self) -> None:
        name, artifacts, tested = self._environment.environment, self._artifacts, self._environment.tested_endpoints
        policy = self._role("measure", f"Runs load tests of {name}")
        allow_load_tests(policy, environment=name, artifacts=artifacts)
        single = [each.name for each in tested if not each.multi_model]
        if len(single) < len(tested):
            project = self._read(naming.load_test_parameter(environment=name, value="project-name"))
            allow_group(policy, "pipeline-bench", project=project)
        if single:
            machine = self._read(naming.load_test_parameter(environment=name, value="state-machine-name"))
            allow_recommender(
                policy, environment=name, endpoints=single, artifacts=artifacts, state_machine_name=machine
            )

    def _value(self, environment: str, value: str) -> str:
        """A value of the builds stack."""
        return self._read(naming.builds_parameter(environment=environment, value=value))

    def _read(self, parameter: str) -> str:
        return ssm.StringParameter.value_for_string_parameter(self, parameter)


def allow_engines_by_codebuild(policy: iam.Policy, *, environment: str, project_name: str) -> None:
    """Allow building engines with the environment's engine project."""
    log = arn(policy, "logs", "log-group", f"{naming.log_group(environment=environment, of='engines')}:*")
    allow_group(policy, "pipeline-engine-builds", project=arn(policy, "codebuild", "project", project_name), log=log)


def allow_verifying(
    policy: iam.Policy,
    *,
    environment: str,
    endpoints: Sequence[str],
    streaming: Sequence[str],
    artifacts: ArtifactBucketReference,
) -> None:
    """Allow ``tritonstack verify``: read what is deployed and recorded, send sample requests.

    ``streaming``: those of ``endpoints`` whose responses are streams.
    """
    allow_parameters(policy, environment)
    stack = cdk.Stack.of(policy)
    grant_group(
        policy,
        "pipeline-verify",
        artifacts=artifacts,
        prefixes=[naming.ARCHIVES, naming.MANIFESTS],
        s3=regional_service(policy, "s3"),
        staging=bucket_arn(staging_bucket_name(stack), partition=stack.partition),
        endpoints=endpoint_arns(policy, environment, endpoints),
        stacks=[naming.serving_stack(environment=environment, endpoint=each) for each in endpoints],
    )
    if streaming:
        allow_group(policy, "pipeline-verify-streams", endpoints=endpoint_arns(policy, environment, streaming))


def allow_load_tests(policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference) -> None:
    """Allow what starting any load test takes: parameters of the stacks, and the folder of tests."""
    allow_parameters(policy, environment)
    grant_group(
        policy,
        "pipeline-load-tests",
        artifacts=artifacts,
        prefixes=[naming.load_test_prefix()],
        s3=regional_service(policy, "s3"),
    )


def allow_recommender(
    policy: iam.Policy,
    *,
    environment: str,
    endpoints: Sequence[str],
    artifacts: ArtifactBucketReference,
    state_machine_name: str,
) -> None:
    """Allow running the state machine that tests single-model endpoints. ``endpoints``: their names in settings."""
    grant_group(
        policy,
        "pipeline-recommender",
        artifacts=artifacts,
        prefixes=[naming.manifests_prefix(each) for each in endpoints],
        endpoints=endpoint_arns(policy, environment, endpoints),
        machine=state_machine_name,
        test_names=f"{naming.load_test_job_prefix(environment)}*",
    )
