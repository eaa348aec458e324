"""Builds that a deployment waits for: the function that starts missing ones, and the WaitCondition that it signals."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.codebuild_project import BuildLog, EngineProject
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction
from constructs_lib.model_build import ProcessingRole
from constructs_lib.permission import allow
from tritonstack import naming

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
                "RECORDS": naming.parameter_prefix(environment),
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


BUILDS_TYPE = "Custom::ModelBuilds"
WAIT_SECONDS = 12 * 60 * 60
"""The longest that a wait condition waits (template reference: AWS::CloudFormation::WaitCondition)."""
ANSWER_MINUTES = 16
"""Past the 15 minutes that a function may run; this one answers within seconds."""
HASH_DIGITS = 12


class BuildWait(Construct):
    """A custom resource that starts what is missing, and a wait for the build's signal.

    A custom resource must answer within the hour, and a build may take longer; a wait condition takes one signal within
    twelve. A condition that was signalled once never waits again, so its logical id and its handle's carry the hash of
    the build set: another set is another wait, and the same set is no change of the template at all.

    Attributes:
        builds: the custom resource.
        condition: what everything that needs the archives must wait for.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, endpoint: str, build_set: str) -> None:
        """Make custom resource, handle and condition.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            endpoint: the endpoint's name in its environment.
            build_set: the document of all that the endpoint serves; the same text for the same set.
        """
        super().__init__(scope, construct_id)
        digits = hashlib.sha256(build_set.encode()).hexdigest()[:HASH_DIGITS]
        asset = self._asset(build_set)
        function = cdk.CfnParameter(
            self,
            "FunctionArn",
            type="AWS::SSM::Parameter::Value<String>",
            default=naming.builds_parameter(environment=environment, value="function-arn"),
        )
        handle = cdk.CfnWaitConditionHandle(self, f"Handle{digits}")
        self.builds = cdk.CustomResource(
            self,
            "Builds",
            resource_type=BUILDS_TYPE,
            service_token=function.value_as_string,
            service_timeout=cdk.Duration.minutes(ANSWER_MINUTES),
            properties={
                "BuildSetBucket": asset.s3_bucket_name,
                "BuildSetKey": asset.s3_object_key,
                "WaitHandle": handle.ref,
                "Of": f"{environment}/{endpoint}",
            },
        )
        self.condition = cdk.CfnWaitCondition(
            self, f"Condition{digits}", count=1, handle=handle.ref, timeout=str(WAIT_SECONDS)
        )
        # Its time runs from here: not before there is something to wait for.
        self.condition.node.add_dependency(self.builds)

    def _asset(self, build_set: str) -> s3_assets.Asset:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"set{BUILD_SET_SUFFIX}")
            path.write_text(build_set)
            return s3_assets.Asset(self, "BuildSet", path=str(path))  # copied at once into the cloud assembly
