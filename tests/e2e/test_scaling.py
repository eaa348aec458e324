"""Calls of an endpoint with the real Triton: its own figures scale it out, and the event of its maximum is an alarm."""

from __future__ import annotations

import json
import time

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.deployments import advance, eventually, metric_sum
from tests.e2e.project import Project, environment_yaml
from tests.e2e.verification_project import checked_project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "scaled"
SCALING = "scaling: {minimum: 1, maximum: 6, requests_per_second: 0.2, scale_out_cooldown_seconds: 30}"
"""Six calls a minute and instance."""
MOST_MINUTES = 10
"""Of the emulator's clock: three whole ones above the target, and what it takes to see them."""


def test_calls_that_go_on_scale_out_to_the_maximum_whose_event_makes_the_alarm(
    project: Project, local_aws: LocalAws
) -> None:
    checked = checked_project(project, local_aws, name=NAME)
    text = f"{endpoint('checked', [checked.model]).removesuffix('}')}, {SCALING}}}"
    environment = environment_yaml(name=NAME, endpoints=[text])
    project.write(f"environments/{NAME}.yaml", f"{environment}alarms: {{}}\n")
    checked.deploy()
    alarm, cloudwatch = f"{NAME}-checked-at-maximum-instances", checked.aws.client("cloudwatch")

    def is_on() -> bool:
        return bool(cloudwatch.describe_alarms(AlarmNames=[alarm])["MetricAlarms"][0]["StateValue"] == "ALARM")

    def sent() -> float:
        return metric_sum(checked.aws, "Invocations", endpoint=f"{NAME}-checked", variant="g4dn-xlarge")

    for minute in range(1, MOST_MINUTES + 1):
        for _ in range(90):
            assert checked.answer(4.0) == 8.0
        eventually(lambda: sent() >= 90 * minute, seconds=30)  # noqa: B023  before the clock leaves their minute
        time.sleep(1.0)  # what evaluates it
        if is_on():
            break
        advance(checked.aws, 60)
    [variant] = checked.aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-checked")["ProductionVariants"]
    assert is_on(), variant
    assert variant["DesiredInstanceCount"] == 6
    [composite] = cloudwatch.describe_alarms(AlarmNames=[f"{NAME}-warning"], AlarmTypes=["CompositeAlarm"])[
        "CompositeAlarms"
    ]
    assert composite["StateValue"] == "ALARM"
    resources = checked.aws.client("cloudformation").describe_stack_resources(StackName=f"{NAME}-observability")
    [queue] = [
        each["PhysicalResourceId"] for each in resources["StackResources"] if each["ResourceType"] == "AWS::SQS::Queue"
    ]
    [message] = checked.aws.client("sqs").receive_message(QueueUrl=queue)["Messages"]
    detail = json.loads(message["Body"])["detail"]
    assert (detail["newDesiredCapacity"], detail["scaledToMax"]) == (6, True)
