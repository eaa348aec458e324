"""Builds of archives that a deployment starts and waits for: permissions, engine jobs, signals, wait condition."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, allow_listing
from constructs_lib.codebuild_project import BuildLog
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction, text_asset
from constructs_lib.outputs import read_parameter
from constructs_lib.permission import allow, allow_passing, arn, parameter_arn
from tritonstack import aws_names, naming


def allow_preparing(
    policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference, weights: Sequence[str]
) -> None:
    """Allow ``tritonstack prepare`` without engines: make archives from models and pretrained weights."""
    if weights:
        partition = cdk.Stack.of(policy).partition
        objects = [f"arn:{partition}:s3:::{url.removeprefix('s3://')}" for url in sorted(set(weights))]
        allow(policy, "ReadWeights", ["s3:GetObject"], objects)
    _allow_archives(policy, artifacts)
    allow_parameters(policy, environment)


def _allow_archives(policy: iam.Policy, artifacts: ArtifactBucketReference) -> None:
    """Read and write by prefix. Committed objects cannot be deleted."""
    reasons = {
        naming.ORDERS: "An order is named after the request that made it.",
        naming.JOBS: "Each engine's job gets a folder of a new name, which the build removes.",
        naming.ARCHIVES: "The archives of every endpoint of the environment, under the platform of each order.",
        naming.MANIFESTS: "A manifest, and files for clients, beside each archive of the environment.",
        naming.INPUTS: "The inputs of an archive are named after its digest, which the order names.",
        naming.TIMING_CACHES: "One file for each GPU model and TensorRT version that engines are built for.",
    }
    patterns = {prefix: artifacts.objects_arn(f"{prefix}*") for prefix in reasons}
    committed = [patterns[name] for name in (naming.ARCHIVES, naming.MANIFESTS, naming.INPUTS, naming.TIMING_CACHES)]
    jobs = patterns[naming.JOBS]
    allow(policy, "ReadFiles", ["s3:GetObject"], [*patterns.values()])
    allow(policy, "WriteFiles", ["s3:AbortMultipartUpload", "s3:PutObject"], [jobs, *committed])
    allow(policy, "RemoveJobs", ["s3:DeleteObject"], [jobs])
    for prefix, reason in reasons.items():
        acknowledge_wildcard(
            policy, resource=patterns[prefix], reason=f"{reason} All keys below {prefix} are of that kind."
        )
    allow_listing(policy, "ListFiles", artifacts=artifacts, prefixes=list(reasons))
    allow(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], artifacts.key_arns)


def allow_parameters(policy: iam.Policy, environment: str) -> None:
    """Allow reading the environment's SSM parameters: release records and the stacks' own values."""
    folder = parameter_arn(policy, f"tritonstack/{environment}")
    values = f"{folder}/*"
    allow(
        policy,
        "ReadParameters",
        ["ssm:GetParameter", "ssm:GetParametersByPath"],
        [folder, values],
        wildcard="Release records and the stacks' own values, all of this environment; models and endpoints come "
        "and go, so their names are not known here. None of them is a secret.",
    )


def allow_engine_builds(policy: iam.Policy, *, project_arn: str, log_arn: str) -> None:
    """Allow starting, stopping and following builds of the engine project."""
    actions = ["codebuild:StartBuild", "codebuild:StopBuild", "codebuild:BatchGetBuilds"]
    allow(policy, "BuildEngines", actions, [project_arn])
    allow(policy, "ReadEngineLog", ["logs:GetLogEvents"], [log_arn])


PROCESSING_ACTIONS = (
    "sagemaker:AddTags",
    "sagemaker:CreateProcessingJob",
    "sagemaker:DescribeProcessingJob",
    "sagemaker:StopProcessingJob",
)


@dataclass(frozen=True, kw_only=True)
class EngineJobs:
    """SageMaker Processing jobs that build the engines of an environment."""

    names: str  # their prefix
    jobs: str  # pattern of their ARNs
    # ARNs: the log group, SageMaker's own for all jobs of the account; the form of it that CloudWatch Logs checks calls
    # for the whole group against; the pattern of the jobs' streams
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
    allow(
        policy,
        "ProcessEngines",
        PROCESSING_ACTIONS,
        [jobs.jobs],
        wildcard="A job's name is used once and never again, so each ends in new digits; the pattern covers the "
        f"engine jobs of {environment} alone.",
    )
    allow_passing(policy, "PassProcessingRole", role_arn=role_arn)
    allow(
        policy,
        "ReadProcessingLog",
        ["logs:GetLogEvents", "logs:DescribeLogStreams"],
        jobs.logs,
        wildcard=f"SageMaker names a stream of {aws_names.PROCESSING_JOBS} after job and machine; the pattern covers "
        f"those of the engine jobs of {environment} alone.",
    )


FINAL_STATUSES = ("SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT")
"""Statuses that a build ends in (API reference: Build)."""
WAIT_SECONDS = 12 * 60 * 60
"""The longest that a wait condition waits (template reference: AWS::CloudFormation::WaitCondition)."""
ANSWER_MINUTES = 16
"""Past the 15 minutes that a function may run; this one answers within seconds."""


class BuildSignals(Construct):
    """The function that starts builds for a deployment and signals their end, with rule and dead-letter queue.

    Attributes:
        function: the function; custom resources of serving stacks call it too.
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
        self._environment = environment
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
        self._allow_orders(artifacts, staging_bucket)
        self._allow_records()
        policy = self.function.policy
        actions = ["codebuild:BatchGetBuilds", "codebuild:ListBuildsForProject", "codebuild:StartBuild"]
        allow(policy, "StartBuilds", actions, [project.attr_arn])
        allow(policy, "ReadBuildLog", ["logs:GetLogEvents"], [log.arn])
        if engines is not None:
            actions = ["codebuild:BatchGetBuilds", "codebuild:ListBuildsForProject", "codebuild:StopBuild"]
            allow(policy, "StopEngineBuilds", actions, [engines.attr_arn])
        if jobs is not None:
            self._allow_stopping_jobs(jobs)
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

    def _allow_orders(self, artifacts: ArtifactBucketReference, staging_bucket: str) -> None:
        policy = self.function.policy
        allow(
            policy,
            "ReadBuildSets",
            ["s3:GetObject"],
            [f"arn:{cdk.Stack.of(self).partition}:s3:::{staging_bucket}/*{naming.BUILD_SET_SUFFIX}"],
            wildcard="The build sets of every endpoint and deployment; their keys are not known here. Nothing but "
            f"build sets ends in {naming.BUILD_SET_SUFFIX}.",
        )
        allow_listing(policy, "FindArchives", artifacts=artifacts, prefixes=[naming.ARCHIVES])
        kinds = (
            ("WriteOrders", "order", naming.ORDERS, ["s3:PutObject"]),
            ("KeepWaits", "wait", naming.WAITS, ["s3:GetObject", "s3:PutObject"]),
        )
        for sid, kind, prefix, actions in kinds:
            allow(
                policy,
                sid,
                actions,
                [artifacts.objects_arn(f"{prefix}*")],
                wildcard=f"One {kind} for each deployment that lacks archives, named after the request that made it; "
                "no build and no other function writes there.",
            )
        allow(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], artifacts.key_arns)

    def _allow_records(self) -> None:
        allow(
            self.function.policy,
            "ReadRecords",
            ["ssm:GetParametersByPath"],
            [parameter_arn(self, f"tritonstack/{self._environment}/*")],
            wildcard="The release records of every endpoint of the environment, which come and go with models and "
            "endpoints; none is written.",
        )
        self.function.allow_seeing_operations(
            arn(self, "cloudformation", "stack", f"{self._environment}-serving-*"),
            wildcard="Whether the stack that calls still waits, or rolls back: serving stacks come and go, and "
            "CloudFormation ends each stack's ARN in digits of its own.",
        )

    def _allow_stopping_jobs(self, jobs: EngineJobs) -> None:
        allow(
            self.function.policy,
            "FindEngineJobs",
            ["sagemaker:ListProcessingJobs"],
            ["*"],
            wildcard="sagemaker:ListProcessingJobs has no resource type to name (service authorization reference); it "
            "returns names and states, and changes nothing.",
        )
        allow(
            self.function.policy,
            "StopEngineJobs",
            ["sagemaker:DescribeProcessingJob", "sagemaker:StopProcessingJob"],
            [jobs.jobs],
            wildcard="A job's name is used once and never again, so each ends in new digits; the pattern covers the "
            f"engine jobs of {self._environment} alone.",
        )


class BuildWait(Construct):
    """A custom resource that starts the builds of missing archives, and a wait for their signal.

    A custom resource must answer within the hour, and a build may take longer; a wait condition takes one signal within
    twelve. A condition that was signalled once never waits again, so its logical id and its handle's carry the hash of
    the build set: another set is another wait, and the same set leaves the template unchanged.

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
        # AWS::CloudFormation::CustomResource): the function has a fixed name. Nothing is to be deleted, so nothing is
        # asked of the function then: the builds stack may be gone before this one.
        builds = cdk.CustomResource(
            self,
            "Start",
            resource_type=naming.BUILDS_TYPE,
            service_token=function_arn,
            removal_policy=cdk.RemovalPolicy.RETAIN,
            service_timeout=cdk.Duration.minutes(ANSWER_MINUTES),
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
