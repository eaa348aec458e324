"""What goes through a VPC, and what was refused: its flow log."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.build_log import BuildLog
from constructs_lib.permission import allow, boundary


class FlowLog(Construct):
    """All traffic of a VPC, in a log group under the artifacts' key."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        vpc_id: str,
        log: BuildLog,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the flow log and its role.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            vpc_id: the VPC.
            log: where it writes.
            permissions_boundary_arn: a managed policy that bounds the role, where the account demands one.
                Default: None.
        """
        super().__init__(scope, construct_id)
        account = cdk.Stack.of(self).account
        role = iam.Role(
            self,
            "Role",
            description=f"Writes the flow log of the network of {environment}",
            assumed_by=iam.ServicePrincipal(
                "vpc-flow-logs.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": account}}
            ),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        policy = iam.Policy(self, "Access", roles=[role])
        allow(
            policy,
            "WriteFlows",
            actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=[log.arn],
        )
        allow(policy, "FindGroup", actions=["logs:DescribeLogGroups"], resources=["*"])
        acknowledge_wildcard(
            policy,
            resource="*",
            reason="The user guide of VPC asks for logs:DescribeLogGroups ('IAM role for publishing flow logs'); it "
            "lists the names of groups, and nothing in them.",
        )
        flows = ec2.CfnFlowLog(
            self,
            "Flows",
            resource_id=vpc_id,
            resource_type="VPC",
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=log.name,
            deliver_logs_permission_arn=role.role_arn,
        )
        flows.node.add_dependency(policy, log.group)
