"""The DeploymentConfig of an endpoint, and what its role may read for it."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest

import app
from constructs_lib.endpoint import Endpoint, Fleet, Timeouts
from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import new_app, new_model, new_stack, of_type, properties, template_of
from tests.stacks.environments import SINGLE, digests, environment
from tritonstack.settings import Rollout


def template(rollout: Rollout | None) -> dict[str, Any]:
    """The template of an endpoint of four instances with this rollout."""
    stack = new_stack()
    Endpoint(
        stack,
        "Endpoint",
        endpoint_name="local-digits",
        model=new_model(stack),
        fleet=Fleet(instance_type="ml.g4dn.xlarge", initial_instance_count=4),
        timeouts=Timeouts(model_download_seconds=60, container_startup_seconds=60),
        rollout=rollout,
    )
    return template_of(stack)


def rendered(**settings: Any) -> Any:
    """The DeploymentConfig of these settings."""
    return properties(template(Rollout.model_validate(settings)), "AWS::SageMaker::Endpoint")["DeploymentConfig"]


def test_without_a_rollout_there_is_no_deployment_config_and_no_alarm_to_read() -> None:
    made = template(None)
    assert "DeploymentConfig" not in properties(made, "AWS::SageMaker::Endpoint")
    assert "DescribeAlarms" not in str(made)


def test_a_canary_is_rendered_with_its_size_waits_limit_and_alarms() -> None:
    assert rendered(
        kind="canary",
        size_percent=25,
        wait_seconds=600,
        termination_wait_seconds=300,
        maximum_execution_minutes=60,
        rollback_alarms=("a", "b"),
    ) == {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "CANARY",
                "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 25},
                "WaitIntervalInSeconds": 600,
            },
            "TerminationWaitInSeconds": 300,
            "MaximumExecutionTimeoutInSeconds": 3600,
        },
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}, {"AlarmName": "b"}]},
    }


def test_linear_steps_are_rendered_as_a_number_of_instances() -> None:
    policy = rendered(kind="linear", size_instances=1, wait_seconds=60, rollback_alarms=("a",))["BlueGreenUpdatePolicy"]
    assert policy == {
        "TrafficRoutingConfiguration": {
            "Type": "LINEAR",
            "LinearStepSize": {"Type": "INSTANCE_COUNT", "Value": 1},
            "WaitIntervalInSeconds": 60,
        },
        "TerminationWaitInSeconds": 0,
    }


def test_all_at_once_has_no_size_and_the_wait_that_the_service_demands() -> None:
    config = rendered(kind="all-at-once", termination_wait_seconds=60)
    assert config["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"] == {
        "Type": "ALL_AT_ONCE",
        "WaitIntervalInSeconds": 0,
    }
    assert "AutoRollbackConfiguration" not in config


def test_the_execution_role_may_read_these_alarms_alone() -> None:
    made = template(Rollout(kind="all-at-once", rollback_alarms=("digits-5xx",)))
    statements = [
        statement
        for policy in of_type(made, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "cloudwatch:DescribeAlarms" in statement["Action"]
    ]
    [statement] = statements
    assert statement["Action"] == "cloudwatch:DescribeAlarms"
    assert "alarm:digits-5xx" in str(statement["Resource"])
    assert "*" not in str(statement["Resource"])


def test_a_stage_with_a_rollout_has_no_finding_of_cdk_nag(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = {"kind": "canary", "size_instances": 1, "wait_seconds": 60, "rollback_alarms": ["digits-5xx"]}
    of = environment({**SINGLE, "initial_instance_count": 2, "rollout": rollout})
    monkeypatch.setenv("CDK_VALIDATION", "true")
    looked_at: cdk.App = new_app()
    stage = EnvironmentStage(looked_at, environment=of, release_sets=digests(of))
    app.check_with_nag(looked_at)
    looked_at.synth()
    endpoint = properties(template_of(stage.serving["single"]), "AWS::SageMaker::Endpoint")
    assert endpoint["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"] == [{"AlarmName": "digits-5xx"}]
