"""The CodeBuild project of load tests on multi-model endpoints: ``tritonstack capacity bench``, in the region."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import acknowledge_nameless
from constructs_lib.build_log import BuildLog
from constructs_lib.build_source import BuildSource
from constructs_lib.codebuild_project import codebuild_principal
from constructs_lib.cpu_project import BuildMachine, buildspec, cpu_project
from constructs_lib.load_test_access import allow_describing_models
from constructs_lib.permission import allow, boundary
from tritonstack import naming

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
