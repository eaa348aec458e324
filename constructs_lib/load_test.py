"""Load tests: a CodeBuild project for multi-model endpoints, Inference Recommender for single-model endpoints."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct
from typing_extensions import TypedDict

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildMachine,
    BuildSource,
    buildspec,
    codebuild_principal,
    cpu_project,
)
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction
from constructs_lib.model_build import allow_parameters
from constructs_lib.permission import JoinedNetwork, acknowledge_nameless, allow, allow_network, allow_pull, boundary
from constructs_lib.triton_model import TritonImage
from tritonstack import aws_names, naming
from tritonstack.naming import load_test_job_prefix


def allow_load_tests(policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference) -> None:
    """Where the stacks of the environment are, and what every test writes and leaves."""
    allow_parameters(policy, environment)
    tests = artifacts.objects_arn(f"{naming.load_test_prefix()}*")
    allow(policy, "KeepTests", actions=["s3:GetObject", "s3:PutObject"], resources=[tests])
    acknowledge_wildcard(
        policy,
        resource=tests,
        reason="A test has a folder of its own, which comes after the deployment that made this role.",
    )
    # Without it S3 answers for a missing object that the caller may not read it.
    _allow_listing(policy, "FindTests", artifacts=artifacts, prefixes=[naming.load_test_prefix()])
    allow(
        policy,
        "UseKey",
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        resources=[artifacts.key_arn],
        conditions={"StringEquals": {"kms:ViaService": f"s3.{cdk.Stack.of(policy).region}.amazonaws.com"}},
    )


def allow_bench_builds(policy: iam.Policy, *, project_name: str) -> None:
    """Tests of multi-model endpoints: builds of the load-test stack's project."""
    project = cdk.Stack.of(policy).format_arn(service="codebuild", resource="project", resource_name=project_name)
    allow(
        policy,
        "RunBench",
        actions=["codebuild:BatchGetBuilds", "codebuild:StartBuild", "codebuild:StopBuild"],
        resources=[project],
    )


def allow_recommender(
    policy: iam.Policy,
    *,
    environment: str,
    endpoints: Sequence[str],
    artifacts: ArtifactBucketReference,
    state_machine_name: str,
) -> None:
    """Tests of single-model endpoints: what is deployed is looked at, an execution started, its jobs asked after.

    ``endpoints``: by their names in the environment.
    """
    stack = cdk.Stack.of(policy)
    names = [naming.endpoint_name(environment=environment, endpoint=each) for each in endpoints]
    arns = [stack.format_arn(service="sagemaker", resource="endpoint", resource_name=name) for name in names]
    allow(policy, "DescribeEndpoints", actions=["sagemaker:DescribeEndpoint"], resources=arns)
    allow_describing_models(policy)
    prefixes = [f"manifests/{each}/" for each in endpoints]
    manifests = [artifacts.objects_arn(f"{prefix}*") for prefix in prefixes]
    allow(policy, "ReadManifests", actions=["s3:GetObject"], resources=manifests)
    _allow_listing(policy, "FindManifests", artifacts=artifacts, prefixes=prefixes)
    machine, executions = (
        stack.format_arn(
            service="states", resource=kind, resource_name=name, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        for kind, name in (("stateMachine", state_machine_name), ("execution", f"{state_machine_name}:*"))
    )
    jobs = stack.format_arn(
        service="sagemaker",
        resource="inference-recommendations-job",
        resource_name=f"{load_test_job_prefix(environment)}*",
    )
    allow(policy, "StartRecommender", actions=["states:StartExecution"], resources=[machine])
    allow(
        policy,
        "FollowRecommender",
        actions=["states:DescribeExecution", "states:StopExecution"],
        resources=[executions],
    )
    allow(policy, "FollowJobs", actions=["sagemaker:DescribeInferenceRecommendationsJob"], resources=[jobs])
    reasons = dict.fromkeys(manifests, "A manifest is named after its archive's digest; archives come and go.")
    reasons |= dict.fromkeys((executions, jobs), "Executions and jobs of the one state machine are named after tests.")
    for resource, reason in reasons.items():
        acknowledge_wildcard(policy, resource=resource, reason=reason)


def allow_describing_models(policy: iam.Policy) -> None:
    """Endpoint configs and models may be described, for a test's results to say what was measured."""
    stack = cdk.Stack.of(policy)
    for action, resource in (("DescribeEndpointConfig", "endpoint-config"), ("DescribeModel", "model")):
        any_of_them = stack.format_arn(service="sagemaker", resource=resource, resource_name="*")
        allow(policy, action, actions=[f"sagemaker:{action}"], resources=[any_of_them])
        acknowledge_wildcard(
            policy,
            resource=any_of_them,
            reason="CloudFormation names configs and models anew with each replacement; they are described, for "
            "the results to say what was measured, and not changed.",
        )


def _allow_listing(
    policy: iam.Policy, sid: str, *, artifacts: ArtifactBucketReference, prefixes: Sequence[str]
) -> None:
    allow(
        policy,
        sid,
        actions=["s3:ListBucket"],
        resources=[artifacts.bucket_arn],
        conditions={"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}},
    )


RUN = '.envs/main/bin/python -m tritonstack_capacity.bench.cloud_build "$TRITONSTACK_BUCKET" "$TRITONSTACK_TEST"'
"""What a build does: the test's plan."""


class LoadTestProject(Construct):
    """The project and its role, which may call the tested endpoints and write results, and nothing else.

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
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the project.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            endpoints: the tested endpoints, by their names in the environment.
            artifacts: where plans, manifests and results lie.
            source: what it starts from.
            machine: what it runs on.
            log: where it writes.
            permissions_boundary_arn: a managed policy that bounds its role. Default: None.
        """
        super().__init__(scope, construct_id)
        self._environment = environment
        role = iam.Role(
            self,
            "Role",
            description=f"Puts load on endpoints of {environment}",
            assumed_by=codebuild_principal(self),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[role])
        self._allow_calls(endpoints)
        self._allow_records(endpoints)
        self._allow_objects(endpoints, artifacts)
        source.allow_reading(self.policy)
        allow(self.policy, "ReadFigures", actions=["cloudwatch:GetMetricStatistics"], resources=["*"])
        acknowledge_nameless(self.policy)
        self.project = cpu_project(
            self,
            "Project",
            description=f"tritonstack capacity bench on the multi-model endpoints of {environment}",
            build_spec=buildspec(RUN, environments=["main"]),
            role=role,
            policy=self.policy,
            source=source,
            machine=machine,
            artifacts=artifacts,
            log=log,
        )

    def _allow_calls(self, endpoints: Sequence[str]) -> None:
        stack = cdk.Stack.of(self)
        names = [naming.endpoint_name(environment=self._environment, endpoint=each) for each in endpoints]
        arns = [stack.format_arn(service="sagemaker", resource="endpoint", resource_name=name) for name in names]
        allow(
            self.policy,
            "CallEndpoints",
            actions=["sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint"],
            resources=arns,
        )
        allow_describing_models(self.policy)

    def _allow_records(self, endpoints: Sequence[str]) -> None:
        stack = cdk.Stack.of(self)

        def parameter(name: str) -> str:
            return stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))

        records = [parameter(f"tritonstack/{self._environment}/{each}/*") for each in endpoints]
        named = parameter(naming.artifact_parameter(environment=self._environment, value="bucket-name"))
        allow(self.policy, "ReadRecords", actions=["ssm:GetParameter"], resources=[*records, named])
        every = parameter(f"tritonstack/{self._environment}/*")
        allow(self.policy, "FindRecords", actions=["ssm:GetParametersByPath"], resources=[every])
        for each in (*records, every):
            acknowledge_wildcard(
                self.policy,
                resource=each,
                reason="The release records of the tested endpoints, which come and go with models; none is written.",
            )

    def _allow_objects(self, endpoints: Sequence[str], artifacts: ArtifactBucketReference) -> None:
        tests = artifacts.objects_arn("load-tests/*")
        manifests = [artifacts.objects_arn(f"manifests/{each}/*") for each in endpoints]
        allow(self.policy, "KeepTests", actions=["s3:GetObject", "s3:PutObject"], resources=[tests])
        allow(self.policy, "ReadManifests", actions=["s3:GetObject"], resources=manifests)
        for each in (tests, *manifests):
            acknowledge_wildcard(
                self.policy,
                resource=each,
                reason="A test has a folder of its own, a manifest is named after its archive's digest; both come "
                "after the deployment that made this role.",
            )
        allow(
            self.policy,
            "FindManifests",
            actions=["s3:ListBucket"],
            resources=[artifacts.bucket_arn],
            conditions={"StringLike": {"s3:prefix": [f"manifests/{each}/*" for each in endpoints]}},
        )
        allow(self.policy, "UseKey", actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[artifacts.key_arn])


JOBS_LOG = aws_names.RECOMMENDATION_JOBS
"""SageMaker's own log group for all such jobs of the account (developer guide: "Get your load test results")."""
METRIC_NAMESPACES = (aws_names.SAGEMAKER, aws_names.INSTANCES, JOBS_LOG)
MADE = ("endpoint", "endpoint-config", "model")


class LoadTestRole(Construct):
    """Reads archives and payloads, pulls the image, makes and calls endpoints named after its jobs, and no others.

    AWS lists no least set of actions for this role (its guide has AmazonSageMakerFullAccess): the actions here are
    those that the job's documented work takes, on the names that its documentation gives to what it makes.

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
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the role.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            names: how the names of jobs begin, and of what they make.
            artifacts: where archives and payloads lie.
            archive_prefixes: where the archives of the tested endpoints lie.
            images: what the tested endpoints run.
            network: the VPC that jobs join, or None for SageMaker's own network.
            permissions_boundary_arn: a managed policy that bounds the role. Default: None.
        """
        super().__init__(scope, construct_id)
        self._names = names
        stack = cdk.Stack.of(self)
        self.role = iam.Role(
            self,
            "Role",
            description=f"Load tests of {environment} with SageMaker Inference Recommender",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self.role])
        self._allow_objects(artifacts, archive_prefixes)
        allow(self.policy, "UseKey", actions=["kms:Decrypt"], resources=[artifacts.key_arn])
        allow_pull(self.policy, images=images)
        self._allow_endpoints()
        self._allow_logs()
        if network is not None:
            allow_network(self.policy, network=network, service="sagemaker")
        acknowledge_nameless(self.policy)

    def _allow_objects(self, artifacts: ArtifactBucketReference, archive_prefixes: Sequence[str]) -> None:
        patterns = [*(f"{prefix}*" for prefix in archive_prefixes), "load-tests/*/payloads/*"]
        objects = [artifacts.objects_arn(pattern) for pattern in patterns]
        allow(self.policy, "ReadArchivesAndPayloads", actions=["s3:GetObject"], resources=objects)
        for each in objects:
            acknowledge_wildcard(
                self.policy,
                resource=each,
                reason="An archive is named after its digest, a payload lies in the folder of its test; both come "
                "after the deployment that made this role.",
            )
        allow(
            self.policy,
            "ListArchivesAndPayloads",
            actions=["s3:ListBucket"],
            resources=[artifacts.bucket_arn],
            conditions={"StringLike": {"s3:prefix": patterns}},
        )

    def _allow_endpoints(self) -> None:
        stack = cdk.Stack.of(self)
        made = [stack.format_arn(service="sagemaker", resource=one, resource_name=f"{self._names}*") for one in MADE]
        allow(
            self.policy,
            "MakeAndCallEndpoints",
            actions=[
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
            resources=made,
        )
        packages = stack.format_arn(service="sagemaker", resource="model-package", resource_name=f"{self._names}*")
        allow(self.policy, "ReadPackages", actions=["sagemaker:DescribeModelPackage"], resources=[packages])
        for each in (*made, packages):
            acknowledge_wildcard(
                self.policy,
                resource=each,
                reason="Each test has names of its own, and what its jobs make is named after them; the pattern covers "
                "the tests of this environment alone.",
            )
        allow(
            self.policy,
            "PassItself",
            actions=["iam:PassRole"],
            resources=[self.role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
        )

    def _allow_logs(self) -> None:
        stack = cdk.Stack.of(self)
        for sid, name in (
            ("WriteJobLog", JOBS_LOG),
            ("WriteEndpointLogs", f"{aws_names.ENDPOINT_LOG_GROUPS}{self._names}*"),
        ):
            group = stack.format_arn(
                service="logs",
                resource="log-group",
                resource_name=name,
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            streams = f"{group}:log-stream:*"
            allow(
                self.policy,
                sid,
                actions=[
                    "logs:CreateLogGroup",
                    "logs:CreateLogStream",
                    "logs:DescribeLogStreams",
                    "logs:PutLogEvents",
                ],
                resources=[group, streams],
            )
            for each in (group, streams):
                if "*" in each.removeprefix("arn:"):
                    acknowledge_wildcard(
                        self.policy,
                        resource=each,
                        reason="SageMaker makes these groups and streams, and names them after jobs, endpoints and "
                        "instances; the pattern covers Inference Recommender's log and this environment's tests.",
                    )
        allow(
            self.policy,
            "WriteMetrics",
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}},
        )
        allow(self.policy, "ReadMetrics", actions=["cloudwatch:GetMetricData"], resources=["*"])


ENDED_BADLY = ("ABORTED", "FAILED", "TIMED_OUT")
"""The statuses of an execution after which something may be left (Step Functions guide: "Events")."""
EVENT_SECONDS = 6 * 60 * 60
"""As long as Lambda keeps an asynchronous event at most (developer guide: "Asynchronous invocation")."""
DELETIONS = {
    "endpoint": "sagemaker:DeleteEndpoint",
    "endpoint-config": "sagemaker:DeleteEndpointConfig",
    "model": "sagemaker:DeleteModel",
}


class LoadTestFunction(Construct):
    """The function with what it may do.

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
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the function.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            names: how the names of jobs and packages begin, and of what jobs make.
            artifacts: where plans and results lie.
            jobs: the role that jobs run with.
            archive_prefixes: where the archives of the tested endpoints lie: SageMaker reads one to register it, in
                the caller's name.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        self._names = names
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="load_test",
            description=f"Steps of load tests of {environment}, and their end",
            log_retention=logs.RetentionDays.THREE_MONTHS,
            variables={
                "ARTIFACT_BUCKET": artifacts.bucket_name,
                "JOB_ROLE": jobs.role.role_arn,
                "NAMES": names,
            },
            permissions_boundary_arn=permissions_boundary_arn,
        )
        self._allow_objects(artifacts, archive_prefixes)
        self._allow_packages()
        self._allow_jobs(jobs)
        self._allow_leftovers()
        self._acknowledge_nameless()

    def clean_up_after(self, *, state_machine_arn: str, environment: str) -> DeadLetterRule:
        """Have it called when an execution has ended otherwise than well."""
        return DeadLetterRule(
            self,
            "Default",
            rule_id="EndedBadly",
            description=f"A load test of {environment} was cancelled or failed",
            event_pattern={
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {"stateMachineArn": [state_machine_arn], "status": list(ENDED_BADLY)},
            },
            function=self.function,
            age_seconds=EVENT_SECONDS,
        )

    def _allow_objects(self, artifacts: ArtifactBucketReference, archive_prefixes: Sequence[str]) -> None:
        policy = self.function.policy
        tests = artifacts.objects_arn("load-tests/*")
        allow(policy, "KeepTests", actions=["s3:GetObject", "s3:PutObject"], resources=[tests])
        archives = [artifacts.objects_arn(f"{prefix}*") for prefix in archive_prefixes]
        allow(policy, "ReadArchives", actions=["s3:GetObject"], resources=archives)
        for each in (tests, *archives):
            acknowledge_wildcard(
                policy,
                resource=each,
                reason="A test has a folder of its own, an archive is named after its digest; both come after the "
                "deployment that made this role.",
            )
        allow(policy, "UseKey", actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[artifacts.key_arn])

    def _allow_packages(self) -> None:
        self._allow_named(
            "KeepPackages",
            resources=("model-package-group", "model-package"),
            actions=[
                "sagemaker:CreateModelPackage",
                "sagemaker:CreateModelPackageGroup",
                "sagemaker:DeleteModelPackage",
                "sagemaker:DeleteModelPackageGroup",
                "sagemaker:DescribeModelPackage",
                "sagemaker:DescribeModelPackageGroup",
            ],
        )

    def _allow_jobs(self, jobs: LoadTestRole) -> None:
        self._allow_named(
            "RunJobs",
            resources=("inference-recommendations-job",),
            actions=[
                "sagemaker:AddTags",
                "sagemaker:CreateInferenceRecommendationsJob",
                "sagemaker:DescribeInferenceRecommendationsJob",
                "sagemaker:StopInferenceRecommendationsJob",
            ],
        )
        allow(
            self.function.policy,
            "PassRole",
            actions=["iam:PassRole"],
            resources=[jobs.role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
        )

    def _allow_leftovers(self) -> None:
        for resource in MADE:
            self._allow_named(
                f"Remove{resource.title().replace('-', '')}s", resources=(resource,), actions=[DELETIONS[resource]]
            )
        allow(
            self.function.policy,
            "FindLeftovers",
            actions=[
                "cloudwatch:GetMetricStatistics",
                "sagemaker:ListEndpointConfigs",
                "sagemaker:ListEndpoints",
                "sagemaker:ListModelPackages",
                "sagemaker:ListModels",
            ],
            resources=["*"],
        )

    def _allow_named(self, sid: str, *, resources: Sequence[str], actions: Sequence[str]) -> None:
        stack = cdk.Stack.of(self)
        arns = [
            stack.format_arn(service="sagemaker", resource=one, resource_name=f"{self._names}*") for one in resources
        ]
        allow(self.function.policy, sid, actions=actions, resources=arns)
        for each in arns:
            acknowledge_wildcard(
                self.function.policy,
                resource=each,
                reason="Each test has names of its own; the pattern covers the tests of this environment alone.",
            )

    def _acknowledge_nameless(self) -> None:
        acknowledge_wildcard(
            self.function.policy,
            resource="*",
            reason="cloudwatch:GetMetricStatistics and SageMaker's List actions have no resource type to name (service "
            "authorization reference); they tell names and figures, and change nothing.",
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
"""What a state machine that logs asks for (Step Functions guide: "Logging to CloudWatch Logs")."""
TRACES = (
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
)
"""Likewise of one that is traced (guide: "Tracing with X-Ray")."""


class Definition(TypedDict):
    """The top of a definition (Amazon States Language, "Top-level fields")."""

    Comment: str
    StartAt: str
    TimeoutSeconds: int
    States: dict[str, dict[str, Any]]


def definition(*, at_once: int, partition: str = "aws") -> Definition:
    """The state machine, with ``${Function}`` left for DefinitionSubstitutions.

    Args:
        at_once: jobs at once (``MaxConcurrency`` of its Map).
        partition: of AWS, in the ARN of the integration with Lambda.
    """
    document: Definition = json.loads(_text().replace("arn:aws:", f"arn:{partition}:"))
    document["States"]["Measure"]["MaxConcurrency"] = at_once
    return document


@functools.cache
def _text() -> str:
    return FILE.read_text(encoding="utf-8")


class LoadTestMachine(Construct):
    """The state machine.

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
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the state machine.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            at_once: jobs at once.
            steps: the function that does its steps.
            log: where it writes.
            permissions_boundary_arn: a managed policy that bounds its role. Default: None.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        role = iam.Role(
            self,
            "Role",
            description=f"Runs load tests of {environment}",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[role])
        allow(self.policy, "CallSteps", actions=["lambda:InvokeFunction"], resources=[steps.function.arn])
        allow(self.policy, "DeliverLog", actions=LOG_DELIVERY, resources=["*"])
        allow(self.policy, "Trace", actions=TRACES, resources=["*"])
        acknowledge_wildcard(
            self.policy,
            resource="*",
            reason="CloudWatch Logs' deliveries and X-Ray's traces have no resource type to name (Step Functions "
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
        self.machine.node.add_dependency(self.policy)  # both are checked when the state machine is made
