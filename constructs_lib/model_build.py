"""Builds of archives that a deployment starts and waits for: permissions, engine jobs, signals, wait condition."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from constructs_lib.artifact_bucket import ArtifactBucketReference, grant_group
from constructs_lib.codebuild_project import BuildLog
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction, text_asset
from constructs_lib.outputs import read_parameter
from constructs_lib.permission import allow_group, arn, parameter_arn
from tritonstack import aws_names, naming
from tritonstack.arns import bucket_arn, s3_url_arn


def allow_preparing(
    policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference, weights: Sequence[str]
) -> None:
    """Allow ``tritonstack prepare`` without engines: make archives from models and pretrained weights."""
    partition = cdk.Stack.of(policy).partition
    objects = [s3_url_arn(url, partition=partition) for url in sorted(set(weights))]
    prefixes = (
        naming.ORDERS,
        naming.JOBS,
        naming.ARCHIVES,
        naming.MANIFESTS,
        naming.INPUTS,
        naming.TIMING_CACHES,
    )
    grant_group(policy, "prepare", artifacts=artifacts, prefixes=prefixes, weights=objects or None)
    allow_parameters(policy, environment)


def allow_parameters(policy: iam.Policy, environment: str) -> None:
    """Allow reading the environment's SSM parameters: release records and the stacks' own values."""
    allow_group(policy, "parameters", values=parameters_arn(policy, environment))


def parameters_arn(scope: IConstruct, environment: str) -> str:
    """The ARN of the folder of an environment's SSM parameters."""
    return parameter_arn(scope, naming.parameter_prefix(environment).rstrip("/"))


@dataclass(frozen=True, kw_only=True)
class EngineJobs:
    """SageMaker Processing jobs that build the engines of an environment."""

    names: str  # their prefix
    jobs: str  # pattern of their ARNs
    # ARNs: the log group, SageMaker's own for all jobs of the account; the form of it that CloudWatch Logs checks
    # requests for the whole group against; the pattern of the jobs' streams
    logs: tuple[str, str, str]

    @classmethod
    def of(cls, scope: Construct, *, environment: str) -> EngineJobs:
        """The jobs of an environment in the account and region of the scope's stack."""
        names = naming.engine_job_prefix(environment)
        group = arn(scope, "logs", "log-group", aws_names.PROCESSING_JOBS)
        return cls(
            names=names,
            jobs=arn(scope, "sagemaker", "processing-job", f"{names}*"),
            logs=(group, f"{group}:log-stream:", f"{group}:log-stream:{names}*"),
        )


def allow_engine_jobs(policy: iam.Policy, *, environment: str, role_arn: str) -> None:
    """Allow running the environment's engine jobs with a role, and reading their log."""
    jobs = EngineJobs.of(policy, environment=environment)
    allow_group(
        policy, "engine-jobs", environment=environment, engine_jobs=jobs.jobs, job_logs=jobs.logs, role=role_arn
    )


FINAL_STATUSES = ("SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT")
"""Statuses that a build ends in (API reference: Build)."""
WAIT_SECONDS = 12 * 60 * 60
"""The longest that a wait condition waits (template reference: AWS::CloudFormation::WaitCondition)."""
RESPONSE_MINUTES = 16
"""More than the 15 minutes that a function may run; this one responds within seconds."""


class BuildSignals(Construct):
    """The function that starts builds for a deployment and signals their end, with rule and dead-letter queue.

    Attributes:
        function: the function, also behind custom resources of serving stacks.
        undelivered: queue of the events that could not be delivered or that the function failed on.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        artifacts: ArtifactBucketReference,
        staging_bucket: str,
        project: codebuild.CfnProject,
        log: BuildLog,
        engines: codebuild.CfnProject | None = None,
        jobs: EngineJobs | None = None,
    ) -> None:
        """Make function, rule and queue.

        The function starts builds of ``project`` for build sets in ``staging_bucket``, and stops those of ``engines``
        and ``jobs`` when their build has ended.
        """
        super().__init__(scope, construct_id)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="model_builds",
            description=f"Starts the builds that deployments of {environment} wait for, and signals their end",
            function_name=naming.builds_function(environment),
            variables={
                "ARTIFACT_BUCKET": artifacts.bucket_name,
                "PROJECT": project.ref,
                "RECORDS": naming.parameter_prefix(environment),
                **({} if engines is None else {"ENGINE_PROJECT": engines.ref}),
                **({} if jobs is None else {"ENGINE_JOBS": jobs.names}),
            },
        )
        serving = naming.serving_stack(environment=environment, endpoint="*")
        grant_group(
            self.function.policy,
            "build-signals",
            artifacts=artifacts,
            prefixes=[naming.ARCHIVES],
            staging=bucket_arn(staging_bucket, partition=cdk.Stack.of(self).partition),
            values=parameters_arn(self, environment),
            stack=arn(self, "cloudformation", "stack", serving),
            project=project.attr_arn,
            log=log.arn,
            engine_project=None if engines is None else engines.attr_arn,
        )
        if jobs is not None:
            allow_group(self.function.policy, "build-signals-jobs", environment=environment, engine_jobs=jobs.jobs)
        self.undelivered = DeadLetterRule(
            self,
            "Default",
            rule_id="BuildEnded",
            description=f"A build of {environment} has ended",
            event_pattern={
                "source": ["aws.codebuild"],
                "detail-type": ["CodeBuild Build State Change"],
                "detail": {"project-name": [project.ref], "build-status": list(FINAL_STATUSES)},
            },
            function=self.function,
            age_seconds=WAIT_SECONDS,  # an event is of use as long as a deployment waits for it
        ).undelivered


class BuildWait(Construct):
    """A custom resource that starts the builds of missing archives, and a wait for their signal.

    A custom resource must respond within an hour, and a build may take longer; a wait condition waits for a signal up
    to twelve hours. A condition that was signalled never waits again, so its logical id and its handle's carry the hash
    of the build set: another set makes another condition, and the same set leaves the template unchanged.

    Attributes:
        condition: the wait condition, which everything that needs the archives must depend on.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: naming.EndpointReference, build_set: str
    ) -> None:
        """Make custom resource, handle and condition.

        ``build_set``: the document of all that the endpoint serves; the same text for the same set.
        """
        super().__init__(scope, construct_id)
        digits = hashlib.sha256(build_set.encode()).hexdigest()[:12]
        asset = text_asset(self, "BuildSet", build_set, suffix=naming.BUILD_SET_SUFFIX)
        function_arn = read_parameter(
            self, "FunctionArn", name=naming.builds_parameter(environment=endpoint.environment, value="function-arn")
        )
        handle = cdk.CfnWaitConditionHandle(self, f"Handle{digits}")
        # CloudFormation never updates a ServiceToken ("Updates are not supported", template reference of
        # AWS::CloudFormation::CustomResource): the function has a fixed name. It is retained, so that its deletion
        # needs no function: the builds stack may be deleted before this one.
        builds = cdk.CustomResource(
            self,
            "Start",
            resource_type=naming.BUILDS_TYPE,
            service_token=function_arn,
            removal_policy=cdk.RemovalPolicy.RETAIN,
            service_timeout=cdk.Duration.minutes(RESPONSE_MINUTES),
            properties={
                "BuildSetBucket": asset.s3_bucket_name,
                "BuildSetKey": asset.s3_object_key,
                "WaitHandle": handle.ref,
                "Of": str(endpoint),
            },
        )
        self.condition = cdk.CfnWaitCondition(
            self, f"Condition{digits}", count=1, handle=handle.ref, timeout=str(WAIT_SECONDS)
        )
        self.condition.node.add_dependency(builds)  # its time starts when there is something to wait for
