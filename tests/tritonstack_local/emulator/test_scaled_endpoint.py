"""A scaled endpoint's stack, with the real function, through deployments that succeed, fail at each step, and go on.

The test takes the runtime's place and reports the outcome of each fleet.
"""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from tests.tritonstack_local.emulator.running import Emulator
from tests.tritonstack_local.emulator.scaled_endpoint import ScaledEndpoint

T4, A10G = "g4dn-xlarge", "g5-12xlarge"
G5 = "ml.g5.12xlarge"
SCHEDULES = ({"name": "day", "when": "cron(0 7 ? * MON-FRI *)", "minimum": 2},)
OF_T4 = {T4: {"gpu-utilization": 60, "invocations-per-instance": 600}}
OF_A10G = {A10G: {"gpu-utilization": 240, "invocations-per-instance": 600}}


@pytest.fixture
def endpoint(fleets: Emulator, name: str) -> ScaledEndpoint:
    """Deployed on T4, and scaled by hand to three instances."""
    made = ScaledEndpoint(fleets, name)
    assert made.deploy("in_service", scaling={"schedules": SCHEDULES}) == "CREATE_COMPLETE", fleets.failures(name)
    assert (made.live, made.targets, made.policies) == ((T4, 1), {T4: (1, 6)}, OF_T4)
    made.scale(3)
    return made


def test_a_scaled_endpoint_through_its_life(endpoint: ScaledEndpoint) -> None:
    """Another config, another type, a failure at the endpoint, a failure after it, and a deployment after each."""
    scaled = {"scaling": {"schedules": SCHEDULES}}
    assert endpoint.deploy("in_service", startup=700, **scaled) == "UPDATE_COMPLETE"
    assert (endpoint.live, endpoint.policies) == ((T4, 3), OF_T4)  # the count survives

    assert endpoint.deploy("failed", startup=700, instance_type=G5, **scaled) == "UPDATE_ROLLBACK_COMPLETE"
    assert "the container did not start" in endpoint.emulator.failures(endpoint.name)
    assert (endpoint.live, endpoint.targets, endpoint.policies) == ((T4, 3), {T4: (1, 6)}, OF_T4)
    assert endpoint.schedules == {"day"}

    # Its policies have new ARNs now: other targets and another config are deployed nevertheless.
    hotter = {"scaling": {"gpu_utilization": 80, "maximum": 5, "schedules": ()}}
    assert endpoint.deploy("in_service", startup=800, **hotter) == "UPDATE_COMPLETE"
    assert (endpoint.live, endpoint.targets) == ((T4, 3), {T4: (1, 5)})
    assert endpoint.policies == {T4: {"gpu-utilization": 80, "invocations-per-instance": 600}}
    assert endpoint.schedules == set()

    assert endpoint.deploy("in_service", startup=800, instance_type=G5, **scaled) == "UPDATE_COMPLETE"
    assert (endpoint.live, endpoint.targets, endpoint.policies) == ((A10G, 3), {A10G: (1, 6)}, OF_A10G)
    assert endpoint.schedules == {"day"}

    endpoint.scale(4)
    later = {"startup": 800, "broken_later": True}
    assert endpoint.deploy("in_service", "in_service", **later) == "UPDATE_ROLLBACK_COMPLETE"
    assert (endpoint.live, endpoint.targets, endpoint.policies) == ((A10G, 4), {A10G: (1, 6)}, OF_A10G)
    assert endpoint.schedules == {"day"}

    assert endpoint.deploy("in_service", startup=900) == "UPDATE_COMPLETE"
    assert (endpoint.live, endpoint.targets, endpoint.policies) == ((T4, 4), {T4: (1, 6)}, OF_T4)
    assert endpoint.emulator.delete_stack(endpoint.name) == "DELETE_COMPLETE"
    assert (endpoint.targets, endpoint.policies, endpoint.config_names()) == ({}, {}, set())


def test_a_cancelled_change_of_type_leaves_the_old_variant_scaled(endpoint: ScaledEndpoint) -> None:
    """SageMaker has no call to cancel an update: the endpoint may have the new type when the rollback begins."""
    endpoint.start(instance_type=G5, scaling={"schedules": SCHEDULES})
    endpoint.pending()
    endpoint.stacks.cancel_update_stack(StackName=endpoint.name)
    assert endpoint.finish("in_service", "in_service") == "UPDATE_ROLLBACK_COMPLETE", endpoint.emulator.failures(
        endpoint.name
    )
    assert (endpoint.live[0], endpoint.targets, endpoint.policies) == (T4, {T4: (1, 6)}, OF_T4)
    assert endpoint.schedules == {"day"}
    assert endpoint.deploy("in_service", instance_type=G5) == "UPDATE_COMPLETE"
    assert (endpoint.live[0], endpoint.targets, endpoint.policies) == (A10G, {A10G: (1, 6)}, OF_A10G)


def test_scaling_comes_and_goes_in_deployments_of_its_own(fleets: Emulator, name: str) -> None:
    made = ScaledEndpoint(fleets, name)
    assert made.deploy("in_service", scaled=False) == "CREATE_COMPLETE", fleets.failures(name)
    config = made.described()["EndpointConfigName"]
    assert made.deploy(instance_type=G5) == "UPDATE_ROLLBACK_COMPLETE"
    assert "Deploy one of the two, then the other." in fleets.failures(name)
    assert (made.described()["EndpointConfigName"], made.targets) == (config, {})
    # Retained properties are the endpoint's own: it is updated, to the config that it has.
    assert made.deploy("in_service") == "UPDATE_COMPLETE"
    assert (made.live, made.targets, made.policies) == ((T4, 1), {T4: (1, 6)}, OF_T4)
    # SageMaker refuses it; the rollback sends the endpoint to the config that it has.
    assert made.deploy("in_service", scaled=False, instance_type=G5) == "UPDATE_ROLLBACK_COMPLETE"
    assert "must be deregistered as scalable targets" in fleets.failures(name)
    assert (made.live, made.targets, made.policies) == ((T4, 1), {T4: (1, 6)}, OF_T4)
    assert made.deploy("in_service", scaled=False) == "UPDATE_COMPLETE"
    assert (made.live, made.targets, made.policies) == ((T4, 1), {}, {})
