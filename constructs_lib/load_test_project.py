"""Load tests of multi-model endpoints by CodeBuild, and the permissions of who starts load tests."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import acknowledge_nameless
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildMachine,
    BuildSource,
    buildspec,
    codebuild_principal,
    cpu_project,
)
from constructs_lib.model_build import allow_parameters
from constructs_lib.permission import allow, boundary
from tritonstack import naming
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
