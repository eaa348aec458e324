"""The function that does the steps of a load test, and that cleans up after an execution that was cancelled."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.dead_letter_rule import DeadLetterRule
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.load_test_role import MADE, LoadTestRole
from constructs_lib.permission import allow

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
