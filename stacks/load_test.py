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

from constructs_lib.artifact_bucket import ArtifactBucketReference, grant_group
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildSource,
    acknowledge_role_paths,
    buildspec,
    cpu_project,
)
from constructs_lib.handler_function import DeadLetterRule, HandlerFunction
from constructs_lib.joined_network import allow_any_network
from constructs_lib.model_build import parameters_arn
from constructs_lib.outputs import write_parameter
from constructs_lib.permission import (
    acknowledge_nameless,
    allow_group,
    asset_repository_name,
    endpoint_arns,
    parameter_arn,
    service_role,
)
from constructs_lib.triton_model import TritonImage, allow_pull
from tritonstack import naming
from tritonstack.config import EndpointSettings, Environment, LoadTestSettings

if TYPE_CHECKING:
    from constructs_lib.network import NetworkReference

COMMAND = '.envs/main/bin/python -m tritonstack_capacity.bench.cloud_build "$TRITONSTACK_BUCKET" "$TRITONSTACK_TEST"'
"""The command of a build: run the plan of one test."""
FAILED_STATUSES = ("ABORTED", "FAILED", "TIMED_OUT")
"""Statuses of an execution that may leave resources behind (Step Functions guide: "Events")."""
EVENT_SECONDS = 6 * 60 * 60
"""Longest time that Lambda keeps an asynchronous event (developer guide: "Asynchronous invocation")."""


class LoadTestStack(cdk.Stack):
    """The load tests of one environment.

    Attributes:
        project: sends requests to multi-model endpoints; None where none is tested.
        machine: the state machine that tests single-model endpoints; None where none is tested.
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
        self._job_prefix = naming.load_test_job_prefix(environment.environment)
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
        tested = [naming.EndpointReference(environment=environment, endpoint=each) for each in names]
        bucket = naming.artifact_parameter(environment=environment, value="bucket-name")
        grant_group(
            policy,
            "bench",
            artifacts=self._artifacts,
            prefixes=[naming.manifests_prefix(each) for each in names],
            endpoints=endpoint_arns(self, environment, names),
            records=[parameter_arn(self, f"{each.records}*") for each in tested],
            read_values=[parameter_arn(self, name) for name in (bucket, *(each.outputs for each in tested))],
            values=parameters_arn(self, environment),
        )
        source = BuildSource(self, "Source", models=None)
        source.allow_reading(policy)
        allow_group(policy, "bench-figures")
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
        allow_group(policy, "recommender-machine", function=steps.arn)
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
        """The role of Inference Recommender jobs: reads archives and payloads, pulls the image, owns test endpoints."""
        environment = self._environment
        role, policy = service_role(
            Construct(self, "Jobs"),
            "sagemaker",
            description=f"Load tests of {environment.environment} with SageMaker Inference Recommender",
        )
        payloads = naming.payloads_prefix(test="*")
        grant_group(policy, "recommender-jobs", artifacts=self._artifacts, prefixes=[*prefixes, payloads])
        built = asset_repository_name(self)  # what a deployment builds has the tag that the endpoint's stack gives it
        images = [
            TritonImage.from_uri(each.image_uri(self.region))
            if each.image_build is None
            else TritonImage(uri=built, account=self.account, region=self.region, repository=built)
            for each in endpoints
        ]
        allow_pull(policy, images=images)
        allow_group(
            policy,
            "recommender-endpoints",
            test_names=f"{self._job_prefix}*",
            endpoint_logs=naming.endpoint_log_group(f"{self._job_prefix}*"),
            role=role.role_arn,
        )
        if (lasting := self._settings.recommender.model_package_group) is not None:
            allow_group(policy, "recommender-jobs-lasting-group", lasting=lasting)
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
        lasting = self._settings.recommender.model_package_group
        function = HandlerFunction(
            scope,
            "Handler",
            handler="load_test",
            description=f"Steps of load tests of {environment}, and clean-up after failed ones",
            variables={
                "ARTIFACT_BUCKET": self._artifacts.bucket_name,
                "JOB_ROLE": jobs.role_arn,
                "NAMES": self._job_prefix,
                **({} if lasting is None else {"LASTING_GROUP": lasting}),
            },
        )
        grant_group(
            function.policy,
            "recommender-steps",
            artifacts=self._artifacts,
            prefixes=prefixes,
            test_names=f"{self._job_prefix}*",
            role=jobs.role_arn,
        )
        if lasting is not None:
            allow_group(function.policy, "recommender-steps-lasting-group", lasting=lasting)
        return function

    def _network(self, construct_id: str) -> NetworkReference:
        """The environment's network; it makes parameters of the stack only for the values that are read."""
        from constructs_lib.network import NetworkReference  # noqa: PLC0415 - EC2's types, which most need not

        joined = self._environment.joined_network
        if joined is None:
            raise ValueError(f"{self._environment.environment} joins no network")
        return NetworkReference(self, construct_id, environment=self._environment.environment, settings=joined)

    def _record(self, value: str, text: str) -> None:
        name = naming.load_test_parameter(environment=self._environment.environment, value=value)
        write_parameter(self, value, name=name, text=text)


def definition(*, at_once: int, partition: str) -> dict[str, Any]:
    """The state machine's definition, with ``at_once`` jobs at a time; DefinitionSubstitutions put ``${Function}``."""
    text = (Path(__file__).parent / "load_test.asl.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text.replace("arn:aws:", f"arn:{partition}:"))
    document["States"]["Measure"]["MaxConcurrency"] = at_once
    return document
