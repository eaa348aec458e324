"""Deployments with guardrails: steps on the emulator's clock, alarms, rollbacks. The test is the runtime."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import Emulator, make_config, serving, wait_until

WAIT, TERMINATION = 600, 300
ONE = {"Type": "INSTANCE_COUNT", "Value": 1}
CANARY_ROUTING = {"Type": "CANARY", "WaitIntervalInSeconds": WAIT, "CanarySize": ONE}


def deployment_config(
    kind: str = "CANARY", *, size: int = 1, unit: str = "INSTANCE_COUNT", alarms: tuple[str, ...] = (), **policy: Any
) -> dict[str, Any]:
    """A blue/green policy with waits of ten and five minutes."""
    routing: dict[str, Any] = {"Type": kind, "WaitIntervalInSeconds": WAIT}
    if kind != "ALL_AT_ONCE":
        routing["CanarySize" if kind == "CANARY" else "LinearStepSize"] = {"Type": unit, "Value": size}
    blue_green = {"TrafficRoutingConfiguration": routing, "TerminationWaitInSeconds": TERMINATION, **policy}
    rollback = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name} for name in alarms]}} if alarms else {}
    return {"BlueGreenUpdatePolicy": blue_green, **rollback}


def rolling_config(
    *, size: int = 1, unit: str = "INSTANCE_COUNT", alarms: tuple[str, ...] = (), **policy: Any
) -> dict[str, Any]:
    """A rolling policy with a wait of ten minutes."""
    policy |= {"MaximumBatchSize": {"Type": unit, "Value": size}, "WaitIntervalInSeconds": WAIT}
    rollback = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name} for name in alarms]}} if alarms else {}
    return {"RollingUpdatePolicy": policy, **rollback}


class Rollout:
    """An endpoint with a config in service and one that is being deployed."""

    def __init__(self, emulator: Emulator, name: str, *, instances: int, config: dict[str, Any]) -> None:
        self.emulator, self.name, self.new = emulator, name, name + "-2"
        make_config(emulator, self.name, InitialInstanceCount=instances)
        make_config(emulator, self.new, InitialInstanceCount=instances)
        self.sagemaker = emulator.client("sagemaker")
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        assert emulator.report(name, name, "in_service") == 200
        self.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=self.new, DeploymentConfig=config)

    def described(self) -> dict[str, Any]:
        """DescribeEndpoint."""
        description: dict[str, Any] = self.sagemaker.describe_endpoint(EndpointName=self.name)
        return description

    def stage(self) -> tuple[str, int]:
        """The new fleet's status and its instances with traffic."""
        [variant] = self.described()["PendingDeploymentSummary"]["ProductionVariants"]
        [status] = variant["VariantStatus"]
        return status["Status"], variant["CurrentInstanceCount"]

    def report(self, outcome: str, **more: Any) -> tuple[int, Any]:
        """A report of the runtime about the new fleet."""
        body = json.dumps({"endpoint_config_name": self.new, "outcome": outcome, **more}).encode()
        return self.emulator._http("POST", f"/_tritonstack/endpoints/{self.name}/report", body)

    def shifted(self, instances: int) -> None:
        """Wait until so many instances are to take calls, and report that they do."""
        wait_until(self.stage, lambda stage: stage == ("ActivatingTraffic", instances))
        assert self.report("shifted", instances=instances) == (200, {"deployment": "in_progress"})

    def settled(self) -> dict[str, Any]:
        """DescribeEndpoint once nothing is in progress."""
        description: dict[str, Any] = wait_until(self.described, lambda seen: "PendingDeploymentSummary" not in seen)
        return description


def put_alarm(emulator: Emulator, name: str, *, state: str = "OK") -> None:
    """An alarm on a metric without data, in this state."""
    emulator.client("cloudwatch").put_metric_alarm(
        AlarmName=name,
        Namespace="Nobody",
        MetricName=name,
        Period=60,
        EvaluationPeriods=1,
        Statistic="Sum",
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    set_alarm(emulator, name, state)


def set_alarm(emulator: Emulator, name: str, state: str) -> None:
    """What a person does to try a rollback."""
    emulator.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue=state, StateReason="a test")


def test_a_canary_goes_from_launching_over_a_part_to_all_and_ends_in_service(fleets: Emulator, name: str) -> None:
    rollout = Rollout(fleets, name, instances=4, config=deployment_config())
    assert rollout.stage() == ("Creating", 0)
    assert rollout.report("in_service") == (200, {"deployment": "in_progress"})
    assert rollout.stage() == ("ActivatingTraffic", 1)
    rollout.shifted(1)
    assert rollout.stage() == ("Baking", 1)
    fleets.advance(WAIT - 60)
    assert rollout.stage()[0] == "Baking"
    fleets.advance(61)
    rollout.shifted(4)
    assert rollout.stage() == ("Baking", 4)
    during = rollout.described()
    assert (during["EndpointStatus"], during["EndpointConfigName"]) == ("Updating", name)
    fleets.advance(TERMINATION + 1)
    after = rollout.settled()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", rollout.new)
    assert "FailureReason" not in after


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        (deployment_config("LINEAR", size=40, unit="CAPACITY_PERCENT"), (2, 4, 5)),
        (deployment_config("ALL_AT_ONCE"), (5,)),
    ],
    ids=["linear", "all at once"],
)
def test_steps_turn_on_equal_parts_or_everything_and_are_watched(
    fleets: Emulator, name: str, config: dict[str, Any], steps: tuple[int, ...]
) -> None:
    rollout = Rollout(fleets, name, instances=5, config=config)
    rollout.report("in_service")
    for instances in steps:
        rollout.shifted(instances)
        assert rollout.stage()[0] == "Baking"
        fleets.advance(WAIT + 1)
    assert rollout.settled()["EndpointConfigName"] == rollout.new


def test_an_alarm_in_a_wait_brings_every_call_back(fleets: Emulator, name: str) -> None:
    put_alarm(fleets, name)
    rollout = Rollout(fleets, name, instances=2, config=deployment_config(alarms=(name,)))
    rollout.report("in_service")
    rollout.shifted(1)
    fleets.advance(WAIT + 1)
    rollout.shifted(2)
    assert rollout.stage()[0] == "Baking"
    set_alarm(fleets, name, "ALARM")
    after = rollout.settled()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", name)
    assert after["FailureReason"] == (f"Alarm {name} went into state ALARM. The endpoint was rolled back to {name}.")
    assert rollout.report("shifted", instances=1)[0] == 409


@pytest.mark.parametrize(("exists", "words"), [(True, "went into state ALARM"), (False, "There is no alarm ")])
def test_an_alarm_that_fires_already_or_does_not_exist_ends_the_deployment_at_its_first_call(
    fleets: Emulator, name: str, words: str, *, exists: bool
) -> None:
    if exists:
        put_alarm(fleets, name, state="ALARM")
    rollout = Rollout(fleets, name, instances=2, config=deployment_config(alarms=(name,)))
    rollout.report("in_service")
    after = rollout.settled()
    assert (after["EndpointConfigName"], words in after["FailureReason"]) == (name, True)


@pytest.mark.parametrize(
    ("config", "instances", "words"),
    [
        (deployment_config(size=2), 2, "CanarySize must be less than or equal to 50%"),
        (deployment_config(size=51, unit="CAPACITY_PERCENT"), 4, "CanarySize must be less than or equal to 50%"),
        (deployment_config("LINEAR", size=1), 11, "LinearStepSize must be 10-50%"),
        (
            {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {"Type": "CANARY", "WaitIntervalInSeconds": 0}}},
            2,
            "CanarySize is required",
        ),
        (
            {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {**CANARY_ROUTING, "Type": "ALL_AT_ONCE"}}},
            4,
            "CanarySize must not be given for traffic routing type ALL_AT_ONCE",
        ),
        (
            {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {**CANARY_ROUTING, "LinearStepSize": ONE}}},
            4,
            "LinearStepSize must not be given for traffic routing type CANARY",
        ),
        ({**deployment_config(), **rolling_config()}, 2, "Only one update policy can be used"),
        (
            deployment_config(MaximumExecutionTimeoutInSeconds=WAIT + TERMINATION),
            4,
            r"MaximumExecutionTimeoutInSeconds \(900\) must be larger .* which is 900 seconds",
        ),
        (rolling_config(MaximumExecutionTimeoutInSeconds=3 * WAIT), 3, "total waiting time, which is 1800 seconds"),
        (rolling_config(size=2), 2, "MaximumBatchSize must be 5-50% .* total instance count, which is 2"),
        (rolling_config(size=1), 21, "MaximumBatchSize must be 5-50% .* total instance count, which is 21"),
    ],
)
def test_guardrails_that_cannot_be_are_refused(
    aws: Emulator, name: str, config: dict[str, Any], instances: int, words: str
) -> None:
    make_config(aws, name, InitialInstanceCount=instances)
    make_config(aws, name + "-2", InitialInstanceCount=instances)
    aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)
    with pytest.raises(ClientError, match=words):
        aws.client("sagemaker").update_endpoint(
            EndpointName=name, EndpointConfigName=name + "-2", DeploymentConfig=config
        )


def test_a_deployment_that_takes_longer_than_it_may_is_rolled_back(fleets: Emulator, name: str) -> None:
    config = deployment_config(MaximumExecutionTimeoutInSeconds=WAIT + TERMINATION + 100)
    rollout = Rollout(fleets, name, instances=4, config=config)
    fleets.advance(200)
    rollout.report("in_service")
    rollout.shifted(1)
    fleets.advance(WAIT + 1)
    rollout.shifted(4)
    fleets.advance(TERMINATION - 100 + 1)
    after = rollout.settled()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", name)
    assert "MaximumExecutionTimeoutInSeconds" in after["FailureReason"]


def old_instances(rollout: Rollout) -> int:
    """How many instances of the old fleet are left."""
    [variant] = rollout.described()["ProductionVariants"]
    return int(variant["CurrentInstanceCount"])


def test_a_rolling_update_replaces_batch_by_batch_and_watches_each(fleets: Emulator, name: str) -> None:
    rollout = Rollout(fleets, name, instances=5, config=rolling_config(size=2))
    rollout.report("in_service")
    seen = []
    for instances in (2, 4, 5):
        rollout.shifted(instances)
        assert rollout.stage()[0] == "Baking"
        seen.append(old_instances(rollout))
        fleets.advance(WAIT + 1)
    assert seen == [5, 3, 1], "old instances end after the wait, not before"
    after = rollout.settled()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", rollout.new)


def test_a_rolling_update_goes_back_at_once(fleets: Emulator, name: str) -> None:
    put_alarm(fleets, name)
    rollout = Rollout(fleets, name, instances=4, config=rolling_config(alarms=(name,)))
    rollout.report("in_service")
    rollout.shifted(1)
    fleets.advance(WAIT + 1)
    rollout.shifted(2)
    set_alarm(fleets, name, "ALARM")
    assert rollout.settled()["EndpointConfigName"] == name


# Through CloudFormation ---------------------------------------------------------------------------------------------


def resources(name: str, *, alarms: tuple[str, ...], **variable: str) -> dict[str, Any]:
    """A serving stack whose endpoint has a canary."""
    found = serving(name, container={"Environment": variable}, InitialInstanceCount=2)
    found["Endpoint"]["Properties"]["DeploymentConfig"] = deployment_config(alarms=alarms)
    return found


class StackRollout(Rollout):
    """A stack's endpoint, amid the update to a new config."""

    def __init__(self, emulator: Emulator, name: str, *, alarms: tuple[str, ...] = ()) -> None:
        self.emulator, self.name = emulator, name
        self.sagemaker = emulator.client("sagemaker")
        emulator.create_stack(name, resources(name, alarms=alarms, VERSION="1"))
        self.old = self.pending()
        assert emulator.report(name, self.old, "in_service") == 200
        assert emulator.settled(name)["StackStatus"] == "CREATE_COMPLETE"
        emulator.update_stack(name, resources(name, alarms=alarms, VERSION="2"))
        self.new = self.pending()

    def pending(self) -> str:
        """The config that is to be deployed, once one is."""

        def look() -> str:
            try:
                return str(self.described().get("PendingDeploymentSummary", {}).get("EndpointConfigName", ""))
            except ClientError:
                return ""

        return str(wait_until(look, bool))


def test_an_alarm_fails_the_stacks_update_with_its_name_and_the_old_config_serves(fleets: Emulator, name: str) -> None:
    put_alarm(fleets, name)
    rollout = StackRollout(fleets, name, alarms=(name,))
    rollout.report("in_service")
    rollout.shifted(1)
    set_alarm(fleets, name, "ALARM")
    assert fleets.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Alarm {name} went into state ALARM" in fleets.failures(name)
    after = rollout.settled()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", rollout.old)
    configs = rollout.sagemaker.list_endpoint_configs(NameContains=name)["EndpointConfigs"]
    assert [one["EndpointConfigName"] for one in configs] == [rollout.old]
    set_alarm(fleets, name, "OK")
    fleets.update_stack(name, resources(name, alarms=(name,), VERSION="3"))
    rollout.new = rollout.pending()
    rollout.report("in_service")
    rollout.shifted(1)
    fleets.advance(WAIT + 1)
    rollout.shifted(2)
    fleets.advance(TERMINATION + 1)
    assert fleets.settled(name)["StackStatus"] == "UPDATE_COMPLETE"
    assert rollout.settled()["EndpointConfigName"] == rollout.new


def test_a_cancelled_update_moves_the_endpoint_back_once_its_deployment_has_ended(fleets: Emulator, name: str) -> None:
    rollout = StackRollout(fleets, name)
    rollout.report("in_service")
    rollout.shifted(1)
    fleets.client("cloudformation").cancel_update_stack(StackName=name)
    wait_until(lambda: fleets.failures(name), lambda reasons: "Resource update cancelled" in reasons)
    fleets.advance(WAIT + 1)
    rollout.shifted(2)
    fleets.advance(TERMINATION + 1)
    wait_until(rollout.pending, lambda config: config == rollout.old)
    rollout.new = rollout.old
    rollout.report("in_service")
    rollout.shifted(1)
    fleets.advance(WAIT + 1)
    rollout.shifted(2)
    fleets.advance(TERMINATION + 1)
    assert fleets.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert rollout.settled()["EndpointConfigName"] == rollout.old
