"""The VPC endpoints that an environment needs, each with a policy that allows what the environment does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.model_build import EngineJobs
from constructs_lib.permission import account_region, arn, parameter_arn, staging_bucket_name
from constructs_lib.triton_model import TritonImage
from tritonstack import aws_names, iam_statements, naming
from tritonstack.arns import bucket_arn, s3_url_arn
from tritonstack.config import Environment
from tritonstack.preparation.deployed_builds import DeployedBuilds

Statement = dict[str, Any]


class VpcEndpoints(Construct):
    """S3's gateway endpoint, and an interface endpoint for each further service.

    Clients in the VPC need two: SSM's, for the release records, and SageMaker's runtime. SageMaker itself downloads
    archives through the VPC, and so through S3's endpoint; images, logs and metrics of endpoints do not pass the VPC.
    Builds and load tests need the endpoints of the services that they send requests to.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        subnet_ids: Sequence[str],
        route_table_ids: Sequence[str],
        security_group_id: str,
        artifacts: ArtifactBucketReference,
        environment: Environment,
        builds: DeployedBuilds | None,
    ) -> None:
        """Make the endpoints.

        Args:
            subnet_ids: where interface endpoints have an address.
            route_table_ids: where S3's gateway is a route.
            security_group_id: of the interface endpoints.
            builds: what deployments build, inside the network or not; None: nothing.
        """
        super().__init__(scope, construct_id)
        self._stack = cdk.Stack.of(self)
        self._settings, self._environment = environment, environment.environment
        own, joined = environment.builds, environment.joined_network
        self._builds = None if joined is None or own.network is not None or own.outside_network else builds
        self._load_test = environment.load_test if environment.benched_in_network else None
        ec2.CfnVPCEndpoint(
            self,
            "s3",
            vpc_id=vpc_id,
            service_name=self._service("s3"),
            vpc_endpoint_type="Gateway",
            route_table_ids=list(route_table_ids),
            policy_document=_policy(self._s3(artifacts)),
        )
        for service, statements in self._interfaces().items():
            ec2.CfnVPCEndpoint(
                self,
                service,
                vpc_id=vpc_id,
                service_name=self._service(service),
                vpc_endpoint_type="Interface",
                subnet_ids=list(subnet_ids),
                security_group_ids=[security_group_id],
                private_dns_enabled=True,
                policy_document=_policy(statements),
            )

    def _service(self, name: str) -> str:
        return f"com.amazonaws.{self._stack.region}.{name}"

    def _log_group(self, name: str) -> str:
        """A log group with all its streams."""
        return arn(self, "logs", "log-group", f"{name}:*")

    def _own(self, sid: str, actions: Sequence[str], resources: Sequence[str]) -> Statement:
        """For principals of this account alone."""
        return {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": "*",
            "Action": list(actions),
            "Resource": list(resources),
            "Condition": {"StringEquals": {"aws:PrincipalAccount": self._stack.account}},
        }

    def _s3(self, artifacts: ArtifactBucketReference) -> list[Statement]:
        """Statements on S3. ECR's own account signs a layer's URL: its statement has no condition on the account."""
        partition, region = self._stack.partition, self._stack.region
        statements = [
            self._own(
                "OwnArtifacts",
                [
                    "s3:AbortMultipartUpload",
                    "s3:DeleteObject",
                    "s3:GetBucketAcl",
                    "s3:GetBucketLocation",
                    "s3:GetObject",
                    "s3:GetObjectVersion",
                    "s3:ListBucket",
                    "s3:PutObject",
                ],
                [artifacts.bucket_arn, artifacts.objects_arn("*")],
            ),
            {
                # ECR user guide: "Minimum Amazon S3 bucket permissions for Amazon ECR".
                "Sid": "ImageLayers",
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": bucket_arn(f"prod-{region}-starport-layer-bucket/*", partition=partition),
            },
        ]
        if self._builds is not None or self._load_test is not None:
            staging = bucket_arn(staging_bucket_name(self._stack), partition=partition)
            statements.append(
                self._own(
                    "BuildSource",
                    ["s3:GetBucketAcl", "s3:GetBucketLocation", "s3:GetObject", "s3:GetObjectVersion"],
                    [staging, f"{staging}/*"],
                )
            )
        if self._builds is not None and self._builds.weights:
            weights = [s3_url_arn(url, partition=partition) for url in self._builds.weights]
            statements.append(self._own("Weights", ["s3:GetObject"], weights))
        return statements

    def _interfaces(self) -> Mapping[str, list[Statement]]:
        """Service → statements of its endpoint's policy."""
        environment = self._environment
        endpoints = arn(self, "sagemaker", "endpoint", f"{environment}-*")
        values = arn(self, "ssm", "parameter", f"tritonstack/{environment}")
        found: dict[str, list[Statement]] = {
            "sagemaker.runtime": [self._own("InvokeEndpoints", ["sagemaker:InvokeEndpoint"], [endpoints])],
            "ssm": [
                self._own(
                    "ReadParameters",
                    ["ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath"],
                    [values, f"{values}/*"],
                )
            ],
        }
        parts = [self._pulls()]
        if self._builds is not None:
            parts.append(self._of_builds(self._builds))
        if self._load_test is not None:
            parts.append(self._of_load_tests())
        for part in parts:
            for service, statements in part.items():
                found.setdefault(service, []).extend(statements)
        return found

    def _pulls(self) -> dict[str, list[Statement]]:
        """The images that machines of builds and of load tests pull from ECR."""
        names = set() if self._load_test is None else {self._load_test.bench.image}
        if self._builds is not None:
            names |= {each.image for each in self._builds.builders if each.kind == "codebuild"}
            names.add(self._settings.builds.image)
        images = [image for name in names if (image := TritonImage.of_machine(name)) is not None]
        if not images:
            return {}
        repositories = sorted({each.repository_arn(partition=self._stack.partition) for each in images})
        to_pull, to_log_in = iam_statements.statements("pull", at=account_region(self), repositories=repositories)
        pull = self._own("PullImages", to_pull.actions, to_pull.resources)
        login = self._own("LogIn", to_log_in.actions, to_log_in.resources)
        return {"ecr.api": [pull, login], "ecr.dkr": [pull, login]}

    def _of_load_tests(self) -> dict[str, list[Statement]]:
        """Statements of load tests: they describe what is tested, read its metrics and write a log."""
        environment = self._environment
        described = {
            "DescribeEndpoint": arn(self, "sagemaker", "endpoint", f"{environment}-*"),
            "DescribeEndpointConfig": arn(self, "sagemaker", "endpoint-config", "*"),
            "DescribeModel": arn(self, "sagemaker", "model", "*"),
        }
        return {
            "sagemaker.api": [
                self._own(action, [f"sagemaker:{action}"], [resource]) for action, resource in described.items()
            ],
            "monitoring": [self._own("ReadFigures", ["cloudwatch:GetMetricStatistics"], ["*"])],
            "logs": [
                self._own(
                    "WriteLoadTestLogs",
                    ["logs:CreateLogStream", "logs:PutLogEvents"],
                    [self._log_group(naming.log_group(environment=environment, of="load-tests"))],
                )
            ],
        }

    def _of_builds(self, builds: DeployedBuilds) -> dict[str, list[Statement]]:
        environment = self._environment
        found: dict[str, list[Statement]] = {}
        kinds = {each.kind for each in builds.builders}
        parameters = self._settings.builds.hub.parameters.values()
        if parameters:
            arns = sorted({parameter_arn(self, name) for name in parameters})
            found["ssm"] = [self._own("ReadBuildVariables", ["ssm:GetParameters"], arns)]
        if "codebuild" in kinds:
            projects = arn(self, "codebuild", "project", "*")
            actions = ["codebuild:BatchGetBuilds", "codebuild:StartBuild", "codebuild:StopBuild"]
            found["codebuild"] = [self._own("BuildEngines", actions, [projects])]
        if "processing" in kinds:
            jobs = EngineJobs.of(self, environment=environment).jobs
            [processes] = (each for each in iam_statements.groups()["engine-jobs"] if each.sid == "ProcessEngines")
            found["sagemaker.api"] = [self._own(processes.sid, processes.actions, [jobs])]
        # A build's machine writes its log: a policy that allows only the requests of our own code would deny it.
        written = ["builds", "engines"] if "codebuild" in kinds else ["builds"]
        own = [self._log_group(naming.log_group(environment=environment, of=of)) for of in written]
        found["logs"] = [self._own("WriteBuildLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], own)]
        if kinds:
            groups = [
                self._log_group(name)
                for name in (naming.log_group(environment=environment, of="engines"), aws_names.PROCESSING_JOBS)
            ]
            actions = ["logs:DescribeLogStreams", "logs:GetLogEvents"]
            found["logs"].append(self._own("ReadEngineLogs", actions, groups))
        return found


def _policy(statements: Sequence[Statement]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}
