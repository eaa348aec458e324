"""Load tests: a CodeBuild project for multi-model endpoints, Inference Recommender for single-model endpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct
from typing_extensions import TypedDict

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.codebuild_project import BuildLog, BuildMachine, BuildSource, buildspec, cpu_project
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction
from constructs_lib.model_build import allow_parameters
from constructs_lib.permission import (
    JoinedNetwork,
    acknowledge_nameless,
    allow,
    allow_key_through_s3,
    allow_listing,
    allow_network,
    allow_passing,
    allow_pull,
    arn,
    endpoint_arns,
    parameter_arn,
    service_role,
)
from constructs_lib.triton_model import TritonImage
from tritonstack import aws_names, naming

TESTS = naming.load_test_prefix()
COMMAND = '.envs/main/bin/python -m tritonstack_capacity.bench.cloud_build "$TRITONSTACK_BUCKET" "$TRITONSTACK_TEST"'
"""The command of a build: run the plan of one test."""


def allow_load_tests(policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference) -> None:
    """Allow what starting any load test takes: parameters of the stacks, and the folder of tests."""
    allow_parameters(policy, environment)
    allow(
        policy,
        "KeepTests",
        ["s3:GetObject", "s3:PutObject"],
        [artifacts.objects_arn(f"{TESTS}*")],
        wildcard="A test has a folder of its own, which comes after the deployment that made this role.",
    )
    # Without it S3 reports a missing object as access denied.
    allow_listing(policy, "FindTests", artifacts=artifacts, prefixes=[TESTS])
    allow_key_through_s3(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], artifacts=artifacts)


def allow_bench_builds(policy: iam.Policy, *, project_name: str) -> None:
    """Allow running builds of the load-test project, which tests multi-model endpoints."""
    project = arn(policy, "codebuild", "project", project_name)
    allow(policy, "RunBench", ["codebuild:BatchGetBuilds", "codebuild:StartBuild", "codebuild:StopBuild"], [project])


def allow_recommender(
    policy: iam.Policy,
    *,
    environment: str,
    endpoints: Sequence[str],
    artifacts: ArtifactBucketReference,
    state_machine_name: str,
) -> None:
    """Allow running the state machine that tests single-model endpoints. ``endpoints``: their names in settings."""
    allow(policy, "DescribeEndpoints", ["sagemaker:DescribeEndpoint"], endpoint_arns(policy, environment, endpoints))
    _allow_describing_models(policy)
    prefixes = [f"manifests/{each}/" for each in endpoints]
    allow(
        policy,
        "ReadManifests",
        ["s3:GetObject"],
        [artifacts.objects_arn(f"{prefix}*") for prefix in prefixes],
        wildcard="A manifest is named after its archive's digest; archives come and go.",
    )
    allow_listing(policy, "FindManifests", artifacts=artifacts, prefixes=prefixes)
    machine = arn(policy, "states", "stateMachine", state_machine_name)
    executions = arn(policy, "states", "execution", f"{state_machine_name}:*")
    jobs = arn(policy, "sagemaker", "inference-recommendations-job", f"{naming.load_test_job_prefix(environment)}*")
    why = "Executions and jobs of the one state machine are named after tests."
    allow(policy, "StartRecommender", ["states:StartExecution"], [machine])
    actions = ["states:DescribeExecution", "states:StopExecution"]
    allow(policy, "FollowRecommender", actions, [executions], wildcard=why)
    allow(policy, "FollowJobs", ["sagemaker:DescribeInferenceRecommendationsJob"], [jobs], wildcard=why)


def _allow_describing_models(policy: iam.Policy) -> None:
    """A test's results state the endpoint config and the model that were measured."""
    for action, resource in (("DescribeEndpointConfig", "endpoint-config"), ("DescribeModel", "model")):
        allow(
            policy,
            action,
            [f"sagemaker:{action}"],
            [arn(policy, "sagemaker", resource, "*")],
            wildcard="CloudFormation names configs and models anew with each replacement; they are described, for "
            "the results to say what was measured, and not changed.",
        )


class LoadTestProject(Construct):
    """The CodeBuild project that tests multi-model endpoints; its role may invoke them and write results.

    Attributes:
        project: the project.
        policy: the one policy of its role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        endpoints: Sequence[str],
        artifacts: ArtifactBucketReference,
        source: BuildSource,
        machine: BuildMachine,
        log: BuildLog,
    ) -> None:
        """Make project and role.

        Args:
            environment: name of the environment.
            endpoints: the tested endpoints, by their names in the environment.
            artifacts: the bucket of plans, manifests and results.
            source: files that a build starts from.
            machine: image, size and network of a build.
            log: log group of the builds.
        """
        super().__init__(scope, construct_id)
        role, self.policy = service_role(
            self, "codebuild", description=f"Runs load tests on endpoints of {environment}"
        )
        policy = self.policy
        actions = ["sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint"]
        allow(policy, "CallEndpoints", actions, endpoint_arns(self, environment, endpoints))
        _allow_describing_models(policy)
        why = "The release records of the tested endpoints, which come and go with models; none is written."
        records = [parameter_arn(self, f"tritonstack/{environment}/{each}/*") for each in endpoints]
        bucket = parameter_arn(self, naming.artifact_parameter(environment=environment, value="bucket-name"))
        allow(policy, "ReadRecords", ["ssm:GetParameter"], [*records, bucket], wildcard=why)
        every = [parameter_arn(self, f"tritonstack/{environment}/*")]
        allow(policy, "FindRecords", ["ssm:GetParametersByPath"], every, wildcard=why)
        why = (
            "A test has a folder of its own, a manifest is named after its archive's digest; both come after the "
            "deployment that made this role."
        )
        prefixes = [f"manifests/{each}/" for each in endpoints]
        manifests = [artifacts.objects_arn(f"{prefix}*") for prefix in prefixes]
        tests = [artifacts.objects_arn(f"{TESTS}*")]
        allow(policy, "KeepTests", ["s3:GetObject", "s3:PutObject"], tests, wildcard=why)
        allow(policy, "ReadManifests", ["s3:GetObject"], manifests, wildcard=why)
        allow_listing(policy, "FindManifests", artifacts=artifacts, prefixes=prefixes)
        allow(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], [artifacts.key_arn])
        source.allow_reading(policy)
        allow(policy, "ReadFigures", ["cloudwatch:GetMetricStatistics"], ["*"])
        acknowledge_nameless(policy)
        self.project = cpu_project(
            self,
            "Project",
            description=f"tritonstack capacity bench on the multi-model endpoints of {environment}",
            build_spec=buildspec(COMMAND, environments=["main"]),
            role=role,
            policy=policy,
            source=source,
            machine=machine,
            artifacts=artifacts,
            log=log,
        )


METRIC_NAMESPACES = (aws_names.SAGEMAKER, aws_names.INSTANCES, aws_names.RECOMMENDATION_JOBS)
DELETIONS = {"endpoint": "DeleteEndpoint", "endpoint-config": "DeleteEndpointConfig", "model": "DeleteModel"}
"""Resources that a job creates → the action that deletes them."""


class LoadTestRole(Construct):
    """The role of Inference Recommender jobs: reads archives and payloads, pulls the image, owns test endpoints.

    AWS documents no least set of actions for this role (its guide has AmazonSageMakerFullAccess): the actions here are
    those that the job's documented work takes, on the names that its documentation gives to what it creates.

    Attributes:
        role: the role.
        policy: its one policy.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        names: str,
        artifacts: ArtifactBucketReference,
        archive_prefixes: Sequence[str],
        images: Sequence[TritonImage],
        network: JoinedNetwork | None = None,
    ) -> None:
        """Make the role.

        Args:
            environment: name of the environment.
            names: prefix of the names of jobs and of what they create.
            artifacts: the bucket of archives and payloads.
            archive_prefixes: key prefixes of the tested endpoints' archives.
            images: container images of the tested endpoints.
            network: the VPC that jobs join. Default: None, SageMaker's own network.
        """
        super().__init__(scope, construct_id)
        self._names = names
        self.role, self.policy = service_role(
            self, "sagemaker", description=f"Load tests of {environment} with SageMaker Inference Recommender"
        )
        patterns = [*(f"{prefix}*" for prefix in archive_prefixes), f"{TESTS}*/payloads/*"]
        allow(
            self.policy,
            "ReadArchivesAndPayloads",
            ["s3:GetObject"],
            [artifacts.objects_arn(pattern) for pattern in patterns],
            wildcard="An archive is named after its digest, a payload lies in the folder of its test; both come "
            "after the deployment that made this role.",
        )
        below = {"StringLike": {"s3:prefix": patterns}}
        allow(self.policy, "ListArchivesAndPayloads", ["s3:ListBucket"], [artifacts.bucket_arn], conditions=below)
        allow(self.policy, "UseKey", ["kms:Decrypt"], [artifacts.key_arn])
        allow_pull(self.policy, images=images)
        self._allow_endpoints()
        self._allow_logs()
        if network is not None:
            allow_network(self.policy, network=network, service="sagemaker")
        acknowledge_nameless(self.policy)

    def _allow_endpoints(self) -> None:
        why = (
            "Each test has names of its own, and what its jobs make is named after them; the pattern covers the tests "
            "of this environment alone."
        )
        allow(
            self.policy,
            "MakeAndCallEndpoints",
            [
                "sagemaker:AddTags",
                "sagemaker:CreateEndpoint",
                "sagemaker:CreateEndpointConfig",
                "sagemaker:CreateModel",
                "sagemaker:DeleteEndpoint",
                "sagemaker:DeleteEndpointConfig",
                "sagemaker:DeleteModel",
                "sagemaker:DescribeEndpoint",
                "sagemaker:DescribeEndpointConfig",
                "sagemaker:DescribeModel",
                "sagemaker:InvokeEndpoint",
            ],
            [arn(self, "sagemaker", resource, f"{self._names}*") for resource in DELETIONS],
            wildcard=why,
        )
        packages = [arn(self, "sagemaker", "model-package", f"{self._names}*")]
        allow(self.policy, "ReadPackages", ["sagemaker:DescribeModelPackage"], packages, wildcard=why)
        allow_passing(self.policy, "PassItself", role_arn=self.role.role_arn)

    def _allow_logs(self) -> None:
        groups = {
            "WriteJobLog": aws_names.RECOMMENDATION_JOBS,
            "WriteEndpointLogs": f"{aws_names.ENDPOINT_LOG_GROUPS}{self._names}*",
        }
        for sid, name in groups.items():
            group = arn(self, "logs", "log-group", name)
            allow(
                self.policy,
                sid,
                ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                [group, f"{group}:log-stream:*"],
                wildcard="SageMaker makes these groups and streams, and names them after jobs, endpoints and "
                "instances; the pattern covers Inference Recommender's log and this environment's tests.",
            )
        namespaces = {"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}}
        allow(self.policy, "WriteMetrics", ["cloudwatch:PutMetricData"], ["*"], conditions=namespaces)
        allow(self.policy, "ReadMetrics", ["cloudwatch:GetMetricData"], ["*"])


FAILED_STATUSES = ("ABORTED", "FAILED", "TIMED_OUT")
"""Statuses of an execution that may leave resources behind (Step Functions guide: "Events")."""
EVENT_SECONDS = 6 * 60 * 60
"""Longest time that Lambda keeps an asynchronous event (developer guide: "Asynchronous invocation")."""


class LoadTestFunction(Construct):
    """The function of the state machine's steps, which also deletes what a failed execution leaves behind.

    Attributes:
        function: the function.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        names: str,
        artifacts: ArtifactBucketReference,
        jobs: LoadTestRole,
        archive_prefixes: Sequence[str],
    ) -> None:
        """Make the function.

        Args:
            environment: name of the environment.
            names: prefix of the names of jobs and packages, and of what jobs create.
            artifacts: the bucket of plans and results.
            jobs: the role of the jobs.
            archive_prefixes: key prefixes of the tested endpoints' archives: SageMaker reads an archive with the
                caller's permissions when it is registered.
        """
        super().__init__(scope, construct_id)
        self._names = names
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="load_test",
            description=f"Steps of load tests of {environment}, and clean-up after failed ones",
            variables={"ARTIFACT_BUCKET": artifacts.bucket_name, "JOB_ROLE": jobs.role.role_arn, "NAMES": names},
        )
        policy = self.function.policy
        why = (
            "A test has a folder of its own, an archive is named after its digest; both come after the deployment "
            "that made this role."
        )
        archives = [artifacts.objects_arn(f"{prefix}*") for prefix in archive_prefixes]
        tests = [artifacts.objects_arn(f"{TESTS}*")]
        allow(policy, "KeepTests", ["s3:GetObject", "s3:PutObject"], tests, wildcard=why)
        allow(policy, "ReadArchives", ["s3:GetObject"], archives, wildcard=why)
        allow(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], [artifacts.key_arn])
        self._allow_sagemaker()
        allow_passing(policy, "PassRole", role_arn=jobs.role.role_arn)
        self._allow_deletions()

    def clean_up_after(self, *, state_machine_arn: str, environment: str) -> DeadLetterRule:
        """Have the function called for executions that failed or were stopped."""
        return DeadLetterRule(
            self,
            "Default",
            rule_id="EndedBadly",
            description=f"A load test of {environment} was cancelled or failed",
            event_pattern={
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {"stateMachineArn": [state_machine_arn], "status": list(FAILED_STATUSES)},
            },
            function=self.function,
            age_seconds=EVENT_SECONDS,
        )

    def _allow_sagemaker(self) -> None:
        self._allow_named(
            "KeepPackages",
            ["model-package-group", "model-package"],
            [
                "sagemaker:CreateModelPackage",
                "sagemaker:CreateModelPackageGroup",
                "sagemaker:DeleteModelPackage",
                "sagemaker:DeleteModelPackageGroup",
                "sagemaker:DescribeModelPackage",
                "sagemaker:DescribeModelPackageGroup",
            ],
        )
        self._allow_named(
            "RunJobs",
            ["inference-recommendations-job"],
            [
                "sagemaker:AddTags",
                "sagemaker:CreateInferenceRecommendationsJob",
                "sagemaker:DescribeInferenceRecommendationsJob",
                "sagemaker:StopInferenceRecommendationsJob",
            ],
        )

    def _allow_deletions(self) -> None:
        for resource, action in DELETIONS.items():
            sid = f"Remove{resource.title().replace('-', '')}s"
            self._allow_named(sid, [resource], [f"sagemaker:{action}"])
        allow(
            self.function.policy,
            "FindLeftovers",
            [
                "cloudwatch:GetMetricStatistics",
                "sagemaker:ListEndpointConfigs",
                "sagemaker:ListEndpoints",
                "sagemaker:ListModelPackages",
                "sagemaker:ListModels",
            ],
            ["*"],
            wildcard="cloudwatch:GetMetricStatistics and SageMaker's List actions have no resource type to name "
            "(service authorization reference); they return names and metrics, and change nothing.",
        )

    def _allow_named(self, sid: str, resources: Sequence[str], actions: Sequence[str]) -> None:
        allow(
            self.function.policy,
            sid,
            actions,
            [arn(self, "sagemaker", resource, f"{self._names}*") for resource in resources],
            wildcard="Each test has names of its own; the pattern covers the tests of this environment alone.",
        )


FILE = Path(__file__).parent / "data" / "load_test.asl.json"
LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)
"""Actions that logging takes (Step Functions guide: "Logging to CloudWatch Logs")."""
TRACES = ("xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:PutTelemetryRecords", "xray:PutTraceSegments")
"""Actions that tracing takes (guide: "Tracing with X-Ray")."""


class Definition(TypedDict):
    """Top-level fields of a state machine definition (Amazon States Language)."""

    Comment: str
    StartAt: str
    TimeoutSeconds: int
    States: dict[str, dict[str, Any]]


def definition(*, at_once: int, partition: str = "aws") -> Definition:
    """The state machine's definition; ``${Function}`` is replaced by DefinitionSubstitutions.

    Args:
        at_once: jobs at a time (``MaxConcurrency`` of its Map).
        partition: of AWS, in the ARN of the integration with Lambda.
    """
    document: Definition = json.loads(FILE.read_text(encoding="utf-8").replace("arn:aws:", f"arn:{partition}:"))
    document["States"]["Measure"]["MaxConcurrency"] = at_once
    return document


class LoadTestMachine(Construct):
    """The state machine that runs load tests of single-model endpoints.

    Attributes:
        machine: the state machine.
        policy: the one policy of its role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        at_once: int,
        steps: LoadTestFunction,
        log: BuildLog,
    ) -> None:
        """Make the state machine.

        Args:
            environment: name of the environment.
            at_once: jobs at a time.
            steps: the function of its steps.
            log: its log group.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        role, self.policy = service_role(self, "states", description=f"Runs load tests of {environment}")
        allow(self.policy, "CallSteps", ["lambda:InvokeFunction"], [steps.function.arn])
        allow(self.policy, "DeliverLog", LOG_DELIVERY, ["*"])
        allow(
            self.policy,
            "Trace",
            TRACES,
            ["*"],
            wildcard="CloudWatch Logs' deliveries and X-Ray's traces have no resource type to name (Step Functions "
            'guide: "Logging to CloudWatch Logs", "Tracing with X-Ray").',
        )
        self.machine = stepfunctions.CfnStateMachine(
            self,
            "Machine",
            role_arn=role.role_arn,
            definition_string=json.dumps(definition(at_once=at_once, partition=stack.partition), separators=(",", ":")),
            definition_substitutions={"Function": steps.function.arn},
            logging_configuration=stepfunctions.CfnStateMachine.LoggingConfigurationProperty(
                level="ALL",
                include_execution_data=True,
                destinations=[
                    stepfunctions.CfnStateMachine.LogDestinationProperty(
                        cloud_watch_logs_log_group=stepfunctions.CfnStateMachine.CloudWatchLogsLogGroupProperty(
                            log_group_arn=log.arn
                        )
                    )
                ],
            ),
            tracing_configuration=stepfunctions.CfnStateMachine.TracingConfigurationProperty(enabled=True),
        )
        # Step Functions checks the role when the state machine is created.
        self.machine.node.add_dependency(self.policy)
