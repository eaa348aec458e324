"""A scaled endpoint with the real Triton: the count survives, the type changes, and failures leave it scaled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.project import Project, environment_yaml
from tests.e2e.verification_project import ON_THE_SERVER, CheckedProject, checked_project
from tritonstack.local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "scaled"
T4, A10G = "g4dn-xlarge", "g5-xlarge"
SCALING = "scaling: {minimum: 1, maximum: 6, gpu_utilization: 60, requests_per_second: 20}"
TARGETS = {60.0, 600.0}


@pytest.fixture(scope="module")
def checked(project: Project, local_aws: LocalAws) -> Iterator[CheckedProject]:
    """An environment of its own, deployed and scaled by hand to three instances."""
    with checked_project(project, local_aws, name=NAME) as checked:
        write(checked)
        checked.deploy()
        wanted = [{"VariantName": T4, "DesiredInstanceCount": 3}]
        local_aws.client("sagemaker").update_endpoint_weights_and_capacities(
            EndpointName=f"{NAME}-checked", DesiredWeightsAndCapacities=wanted
        )
        yield checked


def write(checked: CheckedProject, *, instance_type: str = "ml.g4dn.xlarge", container: str = "") -> None:
    """The environment's file."""
    text = endpoint("checked", [checked.model]).replace("ml.g4dn.xlarge", instance_type).removesuffix("}")
    text = f"{text}, {SCALING}{f', container: {{{container}}}' if container else ''}}}"
    checked.project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[text]))


def live(checked: CheckedProject) -> tuple[str, int]:
    """The live variant and its number of instances."""
    found = checked.aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-checked")
    [variant] = found["ProductionVariants"]
    return variant["VariantName"], variant["DesiredInstanceCount"]


def registered(checked: CheckedProject) -> dict[str, Any]:
    """Variant → target values of its policies, of all that is a target."""
    scaling = checked.aws.client("application-autoscaling")
    targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    policies = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    return {
        target["ResourceId"].rpartition("/")[2]: {
            policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
            for policy in policies
            if policy["ResourceId"] == target["ResourceId"]
        }
        for target in targets
        if target["ResourceId"].startswith(f"endpoint/{NAME}-")
    }


def test_the_scaled_count_survives_a_deployment(checked: CheckedProject) -> None:
    config = checked.config
    write(checked, container="shm_default_bytes: 33554432")
    checked.deploy()
    assert checked.config != config
    assert (live(checked), registered(checked)) == ((T4, 3), {T4: TARGETS})


def test_another_type_that_does_not_start_leaves_the_old_one_scaled(checked: CheckedProject) -> None:
    write(checked, instance_type="ml.g5.xlarge", container='additional_args: ["--no-such-flag=1"]')
    checked.deploy(expect=1)
    assert checked.stack_status == "UPDATE_ROLLBACK_COMPLETE"
    assert (live(checked), registered(checked)) == ((T4, 3), {T4: TARGETS})
    assert checked.answer(4.0) == 8.0


def test_another_type_that_fails_its_verification_leaves_the_old_one_scaled(checked: CheckedProject) -> None:
    write(checked, instance_type="ml.g5.xlarge")
    checked.write_model(f"x * (3 if {ON_THE_SERVER} else 2)")
    assert "6 expected, 9 found" in checked.deploy(expect=1).stderr
    assert checked.stack_status == "UPDATE_ROLLBACK_COMPLETE"
    assert (live(checked), registered(checked)) == ((T4, 3), {T4: TARGETS})
    checked.write_model("x + x")


def test_another_type_is_deployed_and_scaled(checked: CheckedProject) -> None:
    write(checked, instance_type="ml.g5.xlarge")
    checked.deploy()
    assert (live(checked), registered(checked)) == ((A10G, 3), {A10G: TARGETS})
    assert checked.answer(4.0) == 8.0
