"""The function between a deployment and its builds: it starts what is missing, and signals when a build has ended."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_log import BuildLog
from constructs_lib.dead_letter_rule import DeadLetterRule
from constructs_lib.engine_project import EngineProject
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from constructs_lib.processing_role import ProcessingRole

BUILD_SET_SUFFIX = ".build-set"
"""An ending of its own, so that a permission can name build sets in the staging bucket and nothing else there."""
FINAL = ("SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT")
"""The statuses that a build ends in (API reference: Build)."""
EVENT_SECONDS = 12 * 60 * 60
"""How long EventBridge tries to deliver an event: as long as a deployment waits for it."""


class BuildSignals(Construct):
    """The function, the rule that calls it when a build has ended, and the queue of events that came to nothing.

    Attributes:
        function: the function, which custom resources of serving stacks call too.
        undelivered: the queue of events that came to nothing.
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
        engines: EngineProject | None = None,
        processing: ProcessingRole | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make function, rule and queue.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            artifacts: where archives, orders and waits lie.
            staging_bucket: the bucket of assets, where build sets lie.
            project: the project that is given orders.
            log: where its builds write.
            engines: the project whose builds it starts for engines, if any: those that it leaves behind are stopped.
                Default: None.
            processing: the role of the processing jobs that it starts for engines, if any; likewise. Default: None.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        self._environment = environment
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="model_builds",
            description=f"Starts the builds that deployments of {environment} wait for, and signals their end",
            log_retention=logs.RetentionDays.THREE_MONTHS,
            variables={
                "ARTIFACT_BUCKET": artifacts.bucket_name,
                "PROJECT": project.ref,
                "RECORDS": f"/tritonstack/{environment}/",
                **({} if engines is None else {"ENGINE_PROJECT": engines.project.ref}),
                **({} if processing is None else {"ENGINE_JOBS": processing.job_names}),
            },
            permissions_boundary_arn=permissions_boundary_arn,
        )
        self._allow_orders(artifacts, staging_bucket)
        self._allow_records()
        self._allow_builds(project, log)
        if engines is not None:
            self._allow_to_stop_builds(engines)
        if processing is not None:
            self._allow_to_stop_jobs(processing)
        self.undelivered = DeadLetterRule(
            self,
            "Default",
            rule_id="BuildEnded",
            description=f"A build of {environment} has ended",
            event_pattern={
                "source": ["aws.codebuild"],
                "detail-type": ["CodeBuild Build State Change"],
                "detail": {"project-name": [project.ref], "build-status": list(FINAL)},
            },
            function=self.function,
            age_seconds=EVENT_SECONDS,
        ).undelivered

    def _allow_orders(self, artifacts: ArtifactBucketReference, staging_bucket: str) -> None:
        policy = self.function.policy
        sets = f"arn:{cdk.Stack.of(self).partition}:s3:::{staging_bucket}/*{BUILD_SET_SUFFIX}"
        allow(policy, "ReadBuildSets", actions=["s3:GetObject"], resources=[sets])
        acknowledge_wildcard(
            policy,
            resource=sets,
            reason="The build sets of every endpoint and deployment; their keys are not known here. Nothing but build "
            f"sets ends in {BUILD_SET_SUFFIX}.",
        )
        allow(
            policy,
            "FindArchives",
            actions=["s3:ListBucket"],
            resources=[artifacts.bucket_arn],
            conditions={"StringLike": {"s3:prefix": ["endpoints/*"]}},
        )
        orders, waits = (artifacts.objects_arn(f"staging/{name}/*") for name in ("orders", "waits"))
        allow(policy, "WriteOrders", actions=["s3:PutObject"], resources=[orders])
        allow(policy, "KeepWaits", actions=["s3:GetObject", "s3:PutObject"], resources=[waits])
        for pattern, what in ((orders, "order"), (waits, "wait")):
            acknowledge_wildcard(
                policy,
                resource=pattern,
                reason=f"One {what} for each deployment that lacks archives, called after the request that made it; "
                "no build and no other function writes there.",
            )
        allow(policy, "UseKey", actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[artifacts.key_arn])

    def _allow_records(self) -> None:
        stack = cdk.Stack.of(self)
        policy = self.function.policy
        records = stack.format_arn(
            service="ssm", resource="parameter", resource_name=f"tritonstack/{self._environment}/*"
        )
        allow(policy, "ReadRecords", actions=["ssm:GetParametersByPath"], resources=[records])
        acknowledge_wildcard(
            policy,
            resource=records,
            reason="The release records of every endpoint of the environment, which come and go with models and "
            "endpoints; none is written.",
        )
        stacks = stack.format_arn(
            service="cloudformation", resource="stack", resource_name=f"{self._environment}-serving-*"
        )
        allow(policy, "AskForRollback", actions=["cloudformation:DescribeStacks"], resources=[stacks])
        acknowledge_wildcard(
            policy,
            resource=stacks,
            reason="Whether the stack that calls is rolling back: serving stacks come and go, and CloudFormation ends "
            "each stack's ARN in digits of its own.",
        )

    def _allow_builds(self, project: codebuild.CfnProject, log: BuildLog) -> None:
        policy = self.function.policy
        allow(
            policy,
            "StartBuilds",
            actions=["codebuild:BatchGetBuilds", "codebuild:StartBuild"],
            resources=[project.attr_arn],
        )
        allow(policy, "ReadBuildLog", actions=["logs:GetLogEvents"], resources=[log.arn])

    def _allow_to_stop_builds(self, engines: EngineProject) -> None:
        allow(
            self.function.policy,
            "StopEngineBuilds",
            actions=["codebuild:BatchGetBuilds", "codebuild:ListBuildsForProject", "codebuild:StopBuild"],
            resources=[engines.project.attr_arn],
        )

    def _allow_to_stop_jobs(self, processing: ProcessingRole) -> None:
        policy = self.function.policy
        jobs = processing.jobs_arn
        allow(policy, "FindEngineJobs", actions=["sagemaker:ListProcessingJobs"], resources=["*"])
        acknowledge_wildcard(
            policy,
            resource="*",
            reason="sagemaker:ListProcessingJobs has no resource type to name (service authorization reference); it "
            "tells names and states, and changes nothing.",
        )
        allow(
            policy,
            "StopEngineJobs",
            actions=["sagemaker:DescribeProcessingJob", "sagemaker:StopProcessingJob"],
            resources=[jobs],
        )
        acknowledge_wildcard(
            policy,
            resource=jobs,
            reason="A job's name is used once and never again, so each ends in new digits; the pattern covers the "
            f"engine jobs of {self._environment} alone.",
        )
