"""The stack of load tests: what ``tritonstack capacity bench --cloud`` starts. It costs nothing while no test runs.

A CodeBuild project puts load on multi-model endpoints; a state machine runs Inference Recommender on the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference, allow_listing
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildSource,
    acknowledge_role_paths,
    buildspec,
    cpu_project,
)
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction
from constructs_lib.joined_network import allow_any_network
from constructs_lib.outputs import write_parameter
from constructs_lib.permission import (
    acknowledge_nameless,
    allow,
    allow_passing,
    arn,
    asset_repository_name,
    endpoint_arns,
    parameter_arn,
    service_role,
)
from constructs_lib.triton_model import TritonImage, allow_pull
from tritonstack import aws_names, naming
from tritonstack.config import EndpointSettings, Environment, LoadTestSettings

if TYPE_CHECKING:
    from constructs_lib.network import NetworkReference

TESTS = naming.load_test_prefix()
COMMAND = '.envs/main/bin/python -m tritonstack_capacity.bench.cloud_build "$TRITONSTACK_BUCKET" "$TRITONSTACK_TEST"'
"""The command of a build: run the plan of one test."""
METRIC_NAMESPACES = (aws_names.SAGEMAKER, aws_names.INSTANCES, aws_names.RECOMMENDATION_JOBS)
MADE_BY_JOBS = {"endpoint": "Endpoint", "endpoint-config": "EndpointConfig", "model": "Model"}
"""Resource type → the noun in its actions."""
FAILED_STATUSES = ("ABORTED", "FAILED", "TIMED_OUT")
"""Statuses of an execution that may leave resources behind (Step Functions guide: "Events")."""
EVENT_SECONDS = 6 * 60 * 60
"""Longest time that Lambda keeps an asynchronous event (developer guide: "Asynchronous invocation")."""
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


class LoadTestStack(cdk.Stack):
    """The load tests of one environment.

    Attributes:
        project: calls multi-model endpoints; None where none is tested.
        machine: tests single-model endpoints; None likewise.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: Environment, settings: LoadTestSettings
    ) -> None:
        """Make the stack for one environment, and the tests of its ``load_test``."""
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{environment.environment}-load-test",
            description=f"Load tests of {environment.environment}",
        )
        self._environment = environment
        self._settings = settings
        self._artifacts = ArtifactBucketReference(
            self, "Artifacts", environment=environment.environment, earlier_key=environment.artifacts.earlier_key
        )
        self._log = BuildLog(
            self,
            "Log",
            environment=environment.environment,
            of="load-tests",
            days=settings.log_days,
            artifacts=self._artifacts,
        )
        self._job_names = f"{naming.load_test_job_prefix(environment.environment)}*"
        tested = environment.tested_endpoints
        self.project = self._project([each for each in tested if each.multi_model])
        self.machine = self._machine([each for each in tested if not each.multi_model])
        self._record("log-group-name", self._log.name)

    def _project(self, endpoints: Sequence[EndpointSettings]) -> codebuild.CfnProject | None:
        """The project that tests multi-model endpoints; its role may invoke them and write results."""
        if not endpoints:
            return None
        environment = self._environment.environment
        scope, names = Construct(self, "Bench"), [each.name for each in endpoints]
        role, policy = service_role(scope, "codebuild", description=f"Runs load tests on endpoints of {environment}")
        actions = ["sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint"]
        allow(policy, "CallEndpoints", actions, endpoint_arns(self, environment, names))
        allow_describing_models(policy)
        why = "The release records of the tested endpoints, which come and go with models; none is written."
        records = [parameter_arn(self, f"tritonstack/{environment}/{each}/*") for each in names]
        bucket = naming.artifact_parameter(environment=environment, value="bucket-name")
        modes = [naming.outputs_parameter(environment=environment, stack=naming.serving_part(each)) for each in names]
        read = [*records, *(parameter_arn(self, each) for each in (bucket, *modes))]
        allow(policy, "ReadRecords", ["ssm:GetParameter"], read, wildcard=why)
        every = [parameter_arn(self, f"tritonstack/{environment}/*")]
        allow(policy, "FindRecords", ["ssm:GetParametersByPath"], every, wildcard=why)
        why = (
            "A test has a folder of its own, a manifest is named after its archive's digest; both come after the "
            "deployment that made this role."
        )
        prefixes = [naming.manifests_prefix(each) for each in names]
        tests = [self._artifacts.objects_arn(f"{TESTS}*")]
        manifests = [self._artifacts.objects_arn(f"{prefix}*") for prefix in prefixes]
        allow(policy, "KeepTests", ["s3:GetObject", "s3:PutObject"], tests, wildcard=why)
        allow(policy, "ReadManifests", ["s3:GetObject"], manifests, wildcard=why)
        allow_listing(policy, "FindManifests", artifacts=self._artifacts, prefixes=prefixes)
        allow(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], self._artifacts.key_arns)
        source = BuildSource(self, "Source", models=None)
        source.allow_reading(policy)
        allow(policy, "ReadFigures", ["cloudwatch:GetMetricStatistics"], ["*"])
        acknowledge_nameless(policy)
        network = self._network("BuildNetwork").of_builds() if self._environment.benched_in_network else None
        project = cpu_project(
            scope,
            description=f"tritonstack capacity bench on the multi-model endpoints of {environment}",
            build_spec=buildspec(COMMAND, environments=["main"]),
            role=role,
            policy=policy,
            source=source,
            machine=self._settings.bench,
            network=network,
            artifacts=self._artifacts,
            log=self._log,
        )
        if self._environment.role_path is not None:
            acknowledge_role_paths(self)
        self._record("project-name", project.ref)
        return project

    def _machine(self, endpoints: Sequence[EndpointSettings]) -> stepfunctions.CfnStateMachine | None:
        """The state machine that tests single-model endpoints, its jobs' role and its steps' function."""
        if not endpoints:
            return None
        environment = self._environment.environment
        prefixes = [naming.platform_prefix(endpoint=each.name, platform=each.platform) for each in endpoints]
        jobs = self._job_role(endpoints, prefixes)
        steps_scope, scope = Construct(self, "Steps"), Construct(self, "Recommender")
        steps = self._steps(steps_scope, jobs, prefixes)
        role, policy = service_role(scope, "states", description=f"Runs load tests of {environment}")
        allow(policy, "CallSteps", ["lambda:InvokeFunction"], [steps.arn])
        allow(policy, "DeliverLog", LOG_DELIVERY, ["*"])
        allow(
            policy,
            "Trace",
            TRACES,
            ["*"],
            wildcard="CloudWatch Logs' deliveries and X-Ray's traces have no resource type to name (Step Functions "
            'guide: "Logging to CloudWatch Logs", "Tracing with X-Ray").',
        )
        document = definition(at_once=self._settings.recommender.at_once, partition=self.partition)
        machine = stepfunctions.CfnStateMachine(
            scope,
            "Machine",
            role_arn=role.role_arn,
            definition_string=json.dumps(document, separators=(",", ":")),
            definition_substitutions={"Function": steps.arn},
            logging_configuration=stepfunctions.CfnStateMachine.LoggingConfigurationProperty(
                level="ALL",
                include_execution_data=True,
                destinations=[
                    stepfunctions.CfnStateMachine.LogDestinationProperty(
                        cloud_watch_logs_log_group=stepfunctions.CfnStateMachine.CloudWatchLogsLogGroupProperty(
                            log_group_arn=self._log.arn
                        )
                    )
                ],
            ),
            tracing_configuration=stepfunctions.CfnStateMachine.TracingConfigurationProperty(enabled=True),
        )
        # Step Functions checks the role when the state machine is created.
        machine.node.add_dependency(policy)
        cleaning = DeadLetterRule(
            steps_scope,
            "Default",
            rule_id="EndedBadly",
            description=f"A load test of {environment} was cancelled or failed",
            event_pattern={
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {"stateMachineArn": [machine.attr_arn], "status": list(FAILED_STATUSES)},
            },
            function=steps,
            age_seconds=EVENT_SECONDS,
        )
        self._record("state-machine-arn", machine.attr_arn)
        self._record("state-machine-name", machine.attr_name)
        self._record("undelivered-queue-name", cleaning.undelivered.attr_queue_name)
        return machine

    def _job_role(self, endpoints: Sequence[EndpointSettings], prefixes: Sequence[str]) -> iam.Role:
        """The role of Inference Recommender jobs: reads archives and payloads, pulls the image, owns test endpoints.

        AWS documents no least set of actions for this role (its guide has AmazonSageMakerFullAccess): the actions here
        are those that the job's documented work takes, on the names that its documentation gives to what it creates.
        """
        environment = self._environment
        role, policy = service_role(
            Construct(self, "Jobs"),
            "sagemaker",
            description=f"Load tests of {environment.environment} with SageMaker Inference Recommender",
        )
        patterns = [*(f"{prefix}*" for prefix in prefixes), f"{TESTS}*/payloads/*"]
        allow(
            policy,
            "ReadArchivesAndPayloads",
            ["s3:GetObject"],
            [self._artifacts.objects_arn(pattern) for pattern in patterns],
            wildcard="An archive is named after its digest, a payload lies in the folder of its test; both come "
            "after the deployment that made this role.",
        )
        below = {"StringLike": {"s3:prefix": [each for one in patterns for each in (one, one.removesuffix("/*"))]}}
        allow(policy, "ListArchivesAndPayloads", ["s3:ListBucket"], [self._artifacts.bucket_arn], conditions=below)
        allow(policy, "UseKey", ["kms:Decrypt"], self._artifacts.key_arns)
        built = asset_repository_name(self)  # what a deployment builds has the tag that the endpoint's stack gives it
        images = [
            TritonImage.from_uri(each.image_uri(self.region))
            if each.image_build is None
            else TritonImage(uri=built, account=self.account, region=self.region, repository=built)
            for each in endpoints
        ]
        allow_pull(policy, images=images)
        why = (
            "Each test has names of its own, and what its jobs make is named after them; the pattern covers the tests "
            "of this environment alone."
        )
        actions = [
            "sagemaker:AddTags",
            *(f"sagemaker:{verb}{noun}" for verb in ("Create", "Delete", "Describe") for noun in MADE_BY_JOBS.values()),
            "sagemaker:InvokeEndpoint",
        ]
        made = [arn(self, "sagemaker", resource, self._job_names) for resource in MADE_BY_JOBS]
        allow(policy, "MakeAndCallEndpoints", actions, made, wildcard=why)
        packages = [arn(self, "sagemaker", "model-package", self._job_names)]
        allow(policy, "ReadPackages", ["sagemaker:DescribeModelPackage"], packages, wildcard=why)
        allow_passing(policy, "PassItself", role_arn=role.role_arn)
        groups = {
            "WriteJobLog": aws_names.RECOMMENDATION_JOBS,
            "WriteEndpointLogs": naming.endpoint_log_group(self._job_names),
        }
        for sid, name in groups.items():
            group = arn(self, "logs", "log-group", name)
            allow(
                policy,
                sid,
                ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                [group, f"{group}:log-stream:*"],
                wildcard="SageMaker makes these groups and streams, and names them after jobs, endpoints and "
                "instances; the pattern covers Inference Recommender's log and this environment's tests.",
            )
        namespaces = {"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}}
        allow(policy, "WriteMetrics", ["cloudwatch:PutMetricData"], ["*"], conditions=namespaces)
        allow(policy, "ReadMetrics", ["cloudwatch:GetMetricData"], ["*"])
        if environment.joined_network is not None:
            allow_any_network(policy, of="recommender")
        acknowledge_nameless(policy)
        return role

    def _steps(self, scope: Construct, jobs: iam.Role, prefixes: Sequence[str]) -> HandlerFunction:
        """The function of the machine's steps, which also deletes what a failed execution leaves behind.

        ``prefixes``: of the tested endpoints' archives: SageMaker reads an archive with the caller's permissions when
        it is registered.
        """
        environment = self._environment.environment
        function = HandlerFunction(
            scope,
            "Handler",
            handler="load_test",
            description=f"Steps of load tests of {environment}, and clean-up after failed ones",
            variables={
                "ARTIFACT_BUCKET": self._artifacts.bucket_name,
                "JOB_ROLE": jobs.role_arn,
                "NAMES": self._job_names.removesuffix("*"),
            },
        )
        policy = function.policy
        why = (
            "A test has a folder of its own, an archive is named after its digest; both come after the deployment "
            "that made this role."
        )
        archives = [self._artifacts.objects_arn(f"{prefix}*") for prefix in prefixes]
        tests = [self._artifacts.objects_arn(f"{TESTS}*")]
        allow(policy, "KeepTests", ["s3:GetObject", "s3:PutObject"], tests, wildcard=why)
        allow(policy, "ReadArchives", ["s3:GetObject"], archives, wildcard=why)
        allow(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], self._artifacts.key_arns)

        def allow_named(sid: str, resources: Sequence[str], actions: Sequence[str]) -> None:
            named = [arn(self, "sagemaker", resource, self._job_names) for resource in resources]
            why = "Each test has names of its own; the pattern covers the tests of this environment alone."
            allow(policy, sid, [f"sagemaker:{action}" for action in actions], named, wildcard=why)

        packages = ("ModelPackage", "ModelPackageGroup")
        verbs = ("Create", "Delete", "Describe")
        keeping = [f"{verb}{noun}" for verb in verbs for noun in packages]
        allow_named("KeepPackages", ["model-package-group", "model-package"], keeping)
        running = [f"{verb}InferenceRecommendationsJob" for verb in ("Create", "Describe", "Stop")]
        allow_named("RunJobs", ["inference-recommendations-job"], ["AddTags", *running])
        allow_passing(policy, "PassRole", role_arn=jobs.role_arn)
        for resource, noun in MADE_BY_JOBS.items():
            allow_named(f"Remove{resource.title().replace('-', '')}s", [resource], [f"Delete{noun}"])
        allow(
            policy,
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
        return function

    def _network(self, construct_id: str) -> NetworkReference:
        """The environment's network; parameters of the stack are made only for what is asked of it."""
        from constructs_lib.network import NetworkReference  # noqa: PLC0415 - EC2's types, which most need not

        joined = self._environment.joined_network
        if joined is None:
            raise ValueError(f"{self._environment.environment} joins no network")
        return NetworkReference(self, construct_id, environment=self._environment.environment, settings=joined)

    def _record(self, value: str, text: str) -> None:
        name = naming.load_test_parameter(environment=self._environment.environment, value=value)
        write_parameter(self, value, name=name, text=text)


def allow_describing_models(policy: iam.Policy) -> None:
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


def definition(*, at_once: int, partition: str) -> dict[str, Any]:
    """The state machine's definition, with ``at_once`` jobs at a time; DefinitionSubstitutions put ``${Function}``."""
    text = (Path(__file__).parent / "load_test.asl.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text.replace("arn:aws:", f"arn:{partition}:"))
    document["States"]["Measure"]["MaxConcurrency"] = at_once
    return document
