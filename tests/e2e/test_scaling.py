"""A scaled endpoint with the real Triton: the count survives, the type changes, and failures leave it scaled."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.deployments import advance, aws_fails, faults_left
from tests.e2e.project import Project, environment_yaml
from tests.e2e.verification_project import ON_THE_SERVER, CheckedProject, checked_project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "scaled"
T4, A10G = "g4dn-xlarge", "g5-xlarge"
SCALING = "scaling: {minimum: 1, maximum: 6, gpu_utilization: 60, requests_per_second: 20}"
CANARY = (
    "scaling: {minimum: 2, maximum: 6, gpu_utilization: 60, requests_per_second: 20}, "
    "rollout: {kind: canary, size_instances: 1, wait_seconds: 600, accept_multi_model: true}"
)
BUSY = "scaling: {minimum: 1, maximum: 6, requests_per_second: 0.2, scale_out_cooldown_seconds: 30}"
"""Six calls a minute and instance: a few callers are more than enough for all six."""
MOST_MINUTES = 10
"""Of the emulator's clock: three whole ones above the target, and what it takes to see them."""


@pytest.fixture(scope="module")
def checked(project: Project, local_aws: LocalAws) -> CheckedProject:
    """An environment of its own, deployed and scaled by hand to three instances."""
    checked = checked_project(project, local_aws, name=NAME)
    write(checked)
    checked.deploy()
    wanted = [{"VariantName": T4, "DesiredInstanceCount": 3}]
    local_aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=f"{NAME}-checked", DesiredWeightsAndCapacities=wanted
    )
    return checked


def write(
    checked: CheckedProject,
    *,
    instance_type: str = "ml.g4dn.xlarge",
    container: str = "",
    scaling: str = SCALING,
    header: str = "",
) -> None:
    """The environment's file; ``header``: settings of the environment."""
    text = endpoint("checked", [checked.model]).replace("ml.g4dn.xlarge", instance_type).removesuffix("}")
    if scaling == CANARY:
        text = text.replace("initial_instance_count: 1", "initial_instance_count: 2")
    text = f"{text}, {scaling}{f', container: {{{container}}}' if container else ''}}}"
    checked.project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[text]) + header)


def live(checked: CheckedProject) -> tuple[str, int]:
    found = checked.aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-checked")
    [variant] = found["ProductionVariants"]
    return variant["VariantName"], variant["DesiredInstanceCount"]


def registered(checked: CheckedProject) -> dict[str, set[tuple[str, float]]]:
    """Variant → metric and target value of its policies, of all that is a target."""
    scaling = checked.aws.client("application-autoscaling")
    targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    policies = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    return {
        target["ResourceId"].rpartition("/")[2]: {
            tracked(policy["TargetTrackingScalingPolicyConfiguration"])
            for policy in policies
            if policy["ResourceId"] == target["ResourceId"]
        }
        for target in targets
        if target["ResourceId"].startswith(f"endpoint/{NAME}-")
    }


def tracked(configuration: Any) -> tuple[str, float]:
    """What a policy looks at, a custom metric with the values of its dimensions, and its target."""
    custom = configuration.get("CustomizedMetricSpecification")
    if custom is None:
        return configuration["PredefinedMetricSpecification"]["PredefinedMetricType"], configuration["TargetValue"]
    place = [custom["Namespace"], custom["MetricName"], *(each["Value"] for each in custom["Dimensions"])]
    return " ".join(place), configuration["TargetValue"]


def wanted(variant: str) -> dict[str, set[tuple[str, float]]]:
    """What the file asks for, of the variant that is live."""
    return {
        variant: {
            (f"/aws/sagemaker/Endpoints GPUUtilization {NAME}-checked {variant}", 60.0),
            ("SageMakerVariantInvocationsPerInstance", 600.0),
        }
    }


def test_the_scaled_count_survives_a_deployment(checked: CheckedProject) -> None:
    config = checked.config
    write(checked, container="shm_default_bytes: 33554432")
    checked.deploy()
    assert checked.config != config
    assert (live(checked), registered(checked)) == ((T4, 3), wanted(T4))


def test_another_type_that_fails_its_verification_leaves_the_old_one_scaled(checked: CheckedProject) -> None:
    write(checked, instance_type="ml.g5.xlarge")
    checked.write_model(f"x * (3 if {ON_THE_SERVER} else 2)")
    assert "6 expected, 9 found" in checked.deploy(expect=1).stderr
    assert checked.stack_status == "UPDATE_ROLLBACK_COMPLETE"
    assert (live(checked), registered(checked)) == ((T4, 3), wanted(T4))
    checked.write_model("x + x")


def test_another_type_whose_deployment_fails_after_the_endpoint_leaves_the_old_one_scaled(
    checked: CheckedProject,
) -> None:
    """Each of the other ways in which it may fail stands in ``tests/lambda/test_scaling.py``."""
    write(checked, instance_type="ml.g5.xlarge")
    with aws_fails(checked.aws, {"operation": "PutScalingPolicy", "status": 403, "times": 1}):
        assert "PutScalingPolicy" in checked.deploy(expect=1).stderr
        assert faults_left(checked.aws) == 0
    assert checked.stack_status == "UPDATE_ROLLBACK_COMPLETE"
    assert (live(checked), registered(checked)) == ((T4, 3), wanted(T4))
    assert checked.answer(4.0) == 8.0


def test_another_type_is_deployed_all_at_once_whatever_the_canary_and_scaled(checked: CheckedProject) -> None:
    """Nothing here moves the clock past the canary's wait, and the local AWS refuses a size that is of another type."""
    write(checked, instance_type="ml.g5.xlarge", scaling=CANARY)
    checked.deploy()
    assert (live(checked), registered(checked)) == ((A10G, 3), wanted(A10G))
    assert checked.answer(4.0) == 8.0


def test_calls_that_go_on_scale_out_to_the_maximum_whose_event_makes_the_alarm(checked: CheckedProject) -> None:
    write(checked, instance_type="ml.g5.xlarge", scaling=BUSY, header="alarms: {}\n")
    checked.deploy()
    alarm, cloudwatch = f"{NAME}-checked-at-maximum-instances", checked.aws.client("cloudwatch")

    def is_on() -> bool:
        return bool(cloudwatch.describe_alarms(AlarmNames=[alarm])["MetricAlarms"][0]["StateValue"] == "ALARM")

    for _ in range(MOST_MINUTES):
        for _ in range(30):
            assert checked.answer(4.0) == 8.0
        time.sleep(1.0)  # what the runtime reports, and what evaluates it
        if is_on():
            break
        advance(checked.aws, 60)
    assert is_on(), live(checked)
    assert live(checked) == (A10G, 6)
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
    assert (detail["oldDesiredCapacity"], detail["newDesiredCapacity"], detail["scaledToMax"]) == (3, 6, True)
