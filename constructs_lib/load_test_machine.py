"""The state machine of load tests on single-model endpoints, its role, and where it writes."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct
from typing_extensions import TypedDict

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.build_log import BuildLog
from constructs_lib.load_test_function import LoadTestFunction
from constructs_lib.permission import allow, boundary

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
