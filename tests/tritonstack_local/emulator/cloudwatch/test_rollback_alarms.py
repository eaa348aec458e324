"""An alarm on the new fleet alone takes a deployment back; the same errors of the old fleet do not."""

from __future__ import annotations

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator, wait_until
from tests.tritonstack_local.emulator.test_rollouts import Rollout, deployment_config

VARIANT = "main"


class Guarded:
    """A canary whose alarm watches the server errors of the new fleet, and has seen nothing yet."""

    def __init__(self, fleets: Emulator, name: str) -> None:
        """The canary takes calls, and is baked."""
        self.watching = Watching(fleets, name)
        new = {"EndpointName": name, "VariantName": VARIANT, "EndpointConfigName": name + "-2"}
        self.watching.put(
            MetricName="Invocation5XXErrors",
            Dimensions=[{"Name": key, "Value": value} for key, value in new.items()],
            TreatMissingData="notBreaching",
        )
        assert self.watching.state() == "OK"
        self.rollout = Rollout(fleets, name, instances=2, config=deployment_config(alarms=(name,)))
        self.rollout.report("in_service")
        self.rollout.shifted(1)
        assert self.rollout.stage()[0] == "Baking"

    def errors(self, config: str) -> None:
        """Ten errors of a fleet, in its own metric and the endpoint's, and a minute that passes."""
        endpoint = {"EndpointName": self.rollout.name, "VariantName": VARIANT}
        for of in (endpoint, {**endpoint, "EndpointConfigName": config}):
            self.watching.write(*[1.0] * 10, minutes_ago=0, metric="Invocation5XXErrors", of=of)
        self.watching.pass_minutes()


def test_errors_of_the_new_fleet_take_the_deployment_back(fleets: Emulator, name: str) -> None:
    guarded = Guarded(fleets, name)
    guarded.errors(guarded.rollout.new)
    after = guarded.rollout.settled()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", name)
    assert f"Alarm {name} went into state ALARM" in after["FailureReason"]


def test_errors_of_the_old_fleet_do_not(fleets: Emulator, name: str) -> None:
    guarded = Guarded(fleets, name)
    guarded.errors(name)
    assert guarded.watching.state() == "OK"
    assert guarded.rollout.stage()[0] == "Baking"
    guarded.watching.pass_minutes(10)
    guarded.rollout.shifted(2)
    wait_until(guarded.rollout.stage, lambda stage: stage[0] == "Baking")
    guarded.watching.pass_minutes(5)
    assert guarded.rollout.settled()["EndpointConfigName"] == guarded.rollout.new
