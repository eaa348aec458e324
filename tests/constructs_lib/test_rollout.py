"""The DeploymentConfig of an endpoint, and what its role may read for it."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_lib.endpoint import VariantInstances
from tests.cases import cases
from tests.constructs_lib.templates import endpoint_template, new_endpoint, new_stack, of_type, properties
from tritonstack.config import Rollout
from tritonstack.config.rollout import RollbackAlarms

ALARM, CONFIG = "AWS::CloudWatch::Alarm", "AWS::SageMaker::EndpointConfig"
CANARY = {"kind": "canary", "size_instances": 1, "wait_seconds": 600}


def rendered(**settings: Any) -> Any:
    """The DeploymentConfig of these settings."""
    made = endpoint_template(rollout=Rollout.model_validate(settings))
    return properties(made, "AWS::SageMaker::Endpoint")["DeploymentConfig"]


def test_without_a_rollout_there_is_no_deployment_config_and_no_alarm_to_read() -> None:
    made = endpoint_template(rollout=None)
    assert "DeploymentConfig" not in properties(made, "AWS::SageMaker::Endpoint")
    assert "DescribeAlarms" not in str(made)


@cases("settings, policy")
def test_a_rollout_is_rendered_with_its_size_and_waits(settings: dict[str, Any], policy: dict[str, Any]) -> None:
    found = rendered(**settings)["BlueGreenUpdatePolicy"]
    assert found.pop("MaximumExecutionTimeoutInSeconds") > 0
    assert found == policy


def test_rolling_batches_are_rendered_with_their_wait() -> None:
    assert rendered(kind="rolling", size_percent=25, wait_seconds=600)["RollingUpdatePolicy"] == {
        "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 25},
        "WaitIntervalInSeconds": 600,
        "MaximumExecutionTimeoutInSeconds": 10800,
    }


@cases("settings, instances, waits, timeout")
def test_the_execution_timeout_is_larger_than_all_waits_and_leaves_instances_time_to_start(
    settings: dict[str, Any], instances: int, waits: int, timeout: int
) -> None:
    """The timeout "should be larger than the total waiting time specified in TerminationWaitInSeconds and
    WaitIntervalInSeconds", 600 to 28,800 (API reference, BlueGreenUpdatePolicy).
    """
    rollout = Rollout.model_validate(settings)
    made = endpoint_template(
        rollout=rollout, instances=VariantInstances(instance_type="ml.g4dn.xlarge", initial_instance_count=instances)
    )
    [policy] = [
        each for name, each in properties(made, "AWS::SageMaker::Endpoint")["DeploymentConfig"].items() if "Up" in name
    ]
    assert rollout.waiting_seconds(instances) == waits
    assert policy["MaximumExecutionTimeoutInSeconds"] == timeout


def reading(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The statements that allow reading alarms."""
    return [
        statement
        for policy in of_type(made, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "cloudwatch:DescribeAlarms" in statement["Action"]
    ]


def test_alarms_watch_the_errors_of_the_new_config_alone() -> None:
    made = endpoint_template(rollout=Rollout.model_validate(CANARY))
    [config], alarms = of_type(made, CONFIG), of_type(made, ALARM)
    name = {"Fn::GetAtt": [config, "EndpointConfigName"]}
    watched = {}
    for logical_id, alarm in alarms.items():
        settings = alarm["Properties"]
        stats = [query["MetricStat"] for query in settings["Metrics"] if "MetricStat" in query]
        for stat in stats:
            assert {one["Name"]: one["Value"] for one in stat["Metric"]["Dimensions"]} == {
                "EndpointName": "local-digits",
                "VariantName": "g4dn-xlarge",
                "EndpointConfigName": name,
            }
            assert (stat["Stat"], stat["Period"], stat["Metric"]["Namespace"]) == ("Sum", 60, "AWS/SageMaker")
        assert settings["TreatMissingData"] == "notBreaching"
        assert name in settings["AlarmName"]["Fn::Join"][1], "a new config makes a new alarm, and leaves the old one"
        watched[logical_id] = {stat["Metric"]["MetricName"] for stat in stats}
    assert sorted(map(sorted, watched.values())) == [
        ["Invocation5XXErrors", "Invocations"],
        ["InvocationModelErrors", "Invocations"],
    ]
    rollback = properties(made, "AWS::SageMaker::Endpoint")["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    assert [alarm["AlarmName"] for alarm in rollback] == [{"Ref": each} for each in alarms]


def test_thresholds_are_those_of_the_settings() -> None:
    alarms = RollbackAlarms(server_error_percent=2.5, server_errors=7)
    alarm, _ = of_type(endpoint_template(rollout=Rollout.model_validate({**CANARY, "alarms": alarms})), ALARM).values()
    settings = alarm["Properties"]
    assert (settings["Threshold"], settings["DatapointsToAlarm"], settings["EvaluationPeriods"]) == (2.5, 1, 3)
    assert [query["Expression"] for query in settings["Metrics"] if "Expression" in query] == [
        "IF(errors >= 7, 100 * errors / invocations, 0)"
    ]


@pytest.mark.parametrize("rollout", [{"kind": "all-at-once"}, {**CANARY, "wait_seconds": 0}])
def test_where_nothing_is_watched_there_are_no_alarms(rollout: dict[str, Any]) -> None:
    assert of_type(endpoint_template(rollout=Rollout.model_validate(rollout)), ALARM) == {}


def test_the_execution_role_may_read_these_alarms_alone_before_the_endpoint_is_updated() -> None:
    made = endpoint_template(rollout=Rollout.model_validate(CANARY))
    [statement] = reading(made)
    alarms = of_type(made, ALARM)
    assert statement["Resource"] == [{"Fn::GetAtt": [alarm, "Arn"]} for alarm in sorted(alarms)]
    [policy] = [
        name
        for name, one in of_type(made, "AWS::IAM::Policy").items()
        if statement in one["Properties"]["PolicyDocument"]["Statement"]
    ]
    [endpoint] = of_type(made, "AWS::SageMaker::Endpoint").values()
    assert policy in endpoint["DependsOn"]
    [model] = of_type(made, "AWS::SageMaker::Model").values()
    assert policy not in model["DependsOn"], "that would be a cycle"


def test_a_rollout_that_waits_on_a_multi_model_endpoint_requires_the_slowest_load() -> None:
    def is_requested(**more: Any) -> bool:
        endpoint = new_endpoint(new_stack(), rollout=Rollout.model_validate({**CANARY, **more}))
        return "rollout.slowest_load_seconds" in str([each.data for each in endpoint.node.metadata])

    assert is_requested()
    assert not is_requested(slowest_load_seconds=12.5)
