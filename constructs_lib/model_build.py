"""Builds of archives that a deployment starts and waits for: project, permissions, engine jobs, wait condition."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildMachine,
    BuildSource,
    EngineProject,
    buildspec,
    codebuild_principal,
    cpu_project,
)
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction
from constructs_lib.permission import (
    BuildNetwork,
    acknowledge_nameless,
    allow,
    allow_jobs,
    allow_network,
    allow_pull,
    boundary,
)
from constructs_lib.triton_model import TritonImage
from tritonstack import aws_names, naming

JOBS_LOG = aws_names.PROCESSING_JOBS
"""SageMaker's own log group for all processing jobs of the account; a job cannot name another."""
METRIC_NAMESPACE = aws_names.PROCESSING_JOBS


class ProcessingRole(Construct):
    """A role that reads its job and writes its output, pulls the Triton images, and logs.

    Attributes:
        role: the role.
        policy: its one policy.
        job_names: how the names of the jobs begin that run with it.
        jobs_arn: the pattern of their ARNs.
        log_arn: of the log group that they write into.
        group_arn: of the same, in the form that calls for all its streams are checked against.
        streams_arn: of their streams in it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        artifacts: ArtifactBucketReference,
        images: Sequence[TritonImage],
        network: BuildNetwork | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the role.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            artifacts: where jobs lie.
            images: the Triton images that engines are built in, at least one.
            network: the VPC that jobs join, or None for SageMaker's own network.
            permissions_boundary_arn: a managed policy that bounds the role, where the account demands one.
                Default: None.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.job_names = f"{environment}-engine-"
        self.jobs_arn = stack.format_arn(
            service="sagemaker", resource="processing-job", resource_name=f"{self.job_names}*"
        )
        self.log_arn = stack.format_arn(
            service="logs", resource="log-group", resource_name=JOBS_LOG, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        self.group_arn = f"{self.log_arn}:log-stream:"  # as CloudWatch Logs checks a call for the whole group
        self.streams_arn = f"{self.log_arn}:log-stream:{self.job_names}*"
        self.role = iam.Role(
            self,
            "Role",
            description=f"Builds TensorRT engines of {environment} in SageMaker Processing",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self.role])
        allow_jobs(self.policy, artifacts=artifacts)
        allow(
            self.policy,
            "UseKey",
            actions=["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"],
            resources=[artifacts.key_arn],
        )
        # For the volume of an instance without disks of its own (developer guide: "CreateProcessingJob API: Execution
        # Role Permissions").
        allow(
            self.policy,
            "AttachEncryptedVolume",
            actions=["kms:CreateGrant"],
            resources=[artifacts.key_arn],
            conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
        )
        allow_pull(self.policy, images=images)
        self._allow_logs(environment)
        if network is not None:
            allow_network(self.policy, network=network, service="sagemaker")
        acknowledge_nameless(self.policy)

    def _allow_logs(self, environment: str) -> None:
        allow(
            self.policy,
            "WriteLog",
            actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=[self.log_arn, self.group_arn, self.streams_arn],
        )
        acknowledge_wildcard(
            self.policy,
            resource=self.streams_arn,
            reason="SageMaker names a stream after job and machine; the pattern covers those of the engine jobs of "
            f"{environment} alone.",
        )
        allow(
            self.policy,
            "WriteMetrics",
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": METRIC_NAMESPACE}},
        )


@dataclass(frozen=True, kw_only=True)
class JobArns:
    """The processing jobs of an environment that build engines, and what they write.

    Attributes:
        jobs: the pattern of their ARNs.
        log: of the log group that they write into.
        group: of the same, in the form that calls for all its streams are checked against.
        streams: of their streams in it.
    """

    jobs: str
    log: str
    group: str
    streams: str


def allow_archives(policy: iam.Policy, artifacts: ArtifactBucketReference) -> None:
    """By prefix. Nothing that was committed can be deleted, and the waits cannot be read."""
    reasons = {
        "staging/orders/": "An order is called after the request that made it.",
        "staging/jobs/": "Each engine's job gets a folder of a new name, which the build removes.",
        "endpoints/": "The archives of every endpoint of the environment, under the platform of each order.",
        "manifests/": "A manifest, and files for clients, beside each archive of the environment.",
        "inputs/": "The inputs of an archive are called after its digest, which the order names.",
        "timing-caches/": "One file for each GPU model and TensorRT version that engines are built for.",
    }
    patterns = {prefix: artifacts.objects_arn(f"{prefix}*") for prefix in reasons}
    committed = [patterns[name] for name in ("endpoints/", "manifests/", "inputs/", "timing-caches/")]
    jobs = patterns["staging/jobs/"]
    allow(policy, "ReadFiles", actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[*patterns.values()])
    allow(
        policy,
        "WriteFiles",
        actions=["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"],
        resources=[jobs, *committed],
    )
    allow(policy, "RemoveJobs", actions=["s3:DeleteObject"], resources=[jobs])
    for prefix, reason in reasons.items():
        acknowledge_wildcard(
            policy,
            resource=patterns[prefix],
            reason=f"{reason} All keys below {prefix} are of that kind.",
        )
    allow(
        policy,
        "ListFiles",
        actions=["s3:ListBucket"],
        resources=[artifacts.bucket_arn],
        conditions={"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in reasons]}},
    )
    allow(policy, "UseKey", actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[artifacts.key_arn])


def allow_parameters(policy: iam.Policy, environment: str) -> None:
    """The parameters of the environment may be read: release records and the stacks' own values."""
    folder = cdk.Stack.of(policy).format_arn(
        service="ssm", resource="parameter", resource_name=f"tritonstack/{environment}"
    )
    values = f"{folder}/*"
    allow(
        policy,
        "ReadParameters",
        actions=["ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath"],
        resources=[folder, values],
    )
    acknowledge_wildcard(
        policy,
        resource=values,
        reason="Release records and the stacks' own values, all of this environment; models and endpoints come "
        "and go, so their names are not known here. None of them is a secret.",
    )


def allow_weights(policy: iam.Policy, weights: Sequence[str]) -> None:
    """The objects in S3 (``s3://…``) that recipes take weights from may be read."""
    if weights:
        partition = cdk.Stack.of(policy).partition
        objects = [f"arn:{partition}:s3:::{url.removeprefix('s3://')}" for url in sorted(set(weights))]
        allow(policy, "ReadWeights", actions=["s3:GetObject"], resources=objects)


def allow_engine_builds(policy: iam.Policy, *, project_arn: str, log_arn: str) -> None:
    """Builds of the engine project may be started, stopped, asked after and read."""
    allow(
        policy,
        "BuildEngines",
        actions=["codebuild:StartBuild", "codebuild:StopBuild", "codebuild:BatchGetBuilds"],
        resources=[project_arn],
    )
    allow(policy, "ReadEngineLog", actions=["logs:GetLogEvents", "logs:FilterLogEvents"], resources=[log_arn])


def allow_engine_jobs(policy: iam.Policy, *, environment: str, role_arn: str, jobs: JobArns) -> None:
    """Processing jobs of the environment's name may be run with this role, and what they said be read."""
    allow(
        policy,
        "ProcessEngines",
        actions=[
            "sagemaker:AddTags",
            "sagemaker:CreateProcessingJob",
            "sagemaker:DescribeProcessingJob",
            "sagemaker:StopProcessingJob",
        ],
        resources=[jobs.jobs],
    )
    acknowledge_wildcard(
        policy,
        resource=jobs.jobs,
        reason="A job's name is used once and never again, so each ends in new digits; the pattern covers the "
        f"engine jobs of {environment} alone.",
    )
    allow(
        policy,
        "PassProcessingRole",
        actions=["iam:PassRole"],
        resources=[role_arn],
        conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
    )
    allow(
        policy,
        "ReadProcessingLog",
        actions=["logs:GetLogEvents", "logs:DescribeLogStreams", "logs:FilterLogEvents"],
        resources=[jobs.log, jobs.group, jobs.streams],
    )
    acknowledge_wildcard(
        policy,
        resource=jobs.streams,
        reason=f"SageMaker names a stream of {JOBS_LOG} after job and machine; the pattern covers those of the "
        f"engine jobs of {environment} alone.",
    )


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
