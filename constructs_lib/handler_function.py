"""The Lambda function behind custom resources: its code is one folder, its role has one policy, its log has an end."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IDependable

from constructs_lib.handler_code import entry_point, pack
from constructs_lib.permission import allow, boundary

RUNTIME = "python3.14"
MEMORY_MIB = 256
WORK_MINUTES = 15
"""The longest that a Lambda may run."""


class HandlerFunction(Construct):
    """One folder of ``lambda/`` as a function that CloudFormation calls.

    The function is the low-level resource: the construct above it reads VPC, EFS and event sources into memory, a
    tenth of the time of a synthesis, and this function has none of them.

    Attributes:
        arn: the function's ARN.
        policy: the one policy of its role; what the handler may do is added to it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        handler: str,
        description: str,
        log_retention: logs.RetentionDays,
        variables: Mapping[str, str] | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the function, its role and its log group.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            handler: the folder under ``lambda/``; its ``handler.py`` has ``handler(event, context)``.
            description: of function and role.
            log_retention: how long a line of its log is kept.
            variables: its environment; nothing that is secret. Default: None.
            permissions_boundary_arn: a managed policy that bounds the role. Default: None.
        """
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(self, "Log", retention=log_retention, removal_policy=cdk.RemovalPolicy.DESTROY)
        role = iam.Role(
            self,
            "Role",
            description=description,
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[role])
        allow(
            self.policy,
            "WriteLog",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        )
        code = self._code(handler)
        self._function = lambda_.CfnFunction(
            self,
            "Function",
            description=description,
            runtime=RUNTIME,
            handler=entry_point(handler),
            code=lambda_.CfnFunction.CodeProperty(s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key),
            memory_size=MEMORY_MIB,
            timeout=WORK_MINUTES * 60,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=log_group.log_group_name),
            role=role.role_arn,
            environment=lambda_.CfnFunction.EnvironmentProperty(variables=dict(variables)) if variables else None,
        )
        self.arn: str = self._function.attr_arn

    def _code(self, handler: str) -> s3_assets.Asset:
        with tempfile.TemporaryDirectory() as name:
            pack(handler, Path(name))
            return s3_assets.Asset(self, "Code", path=name)  # copied at once into the cloud assembly

    def custom_resource(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resource_type: str,
        properties: Mapping[str, str],
        after: Sequence[IDependable] = (),
        answer_minutes: int = WORK_MINUTES + 1,
    ) -> cdk.CustomResource:
        """A custom resource that this function answers.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            resource_type: ``Custom::…``, by which the handler knows what to do.
            properties: what the handler reads; a change of any is an update.
            after: what must be there before it and outlive it, besides the function and its policy.
            answer_minutes: how long CloudFormation waits for the answer: past the function's own limit, for a function
                that is cut off cannot answer; longer where several runs do the work, 60 at most.
        """
        resource = cdk.CustomResource(
            scope,
            construct_id,
            resource_type=resource_type,
            service_token=self.arn,
            service_timeout=cdk.Duration.minutes(answer_minutes),
            properties=dict(properties),
        )
        # Deleted in the reverse order, so the function can still do its work when the resource goes.
        resource.node.add_dependency(self.policy, *after)
        return resource
