"""Inference components of the local SageMaker: operations, refusals, placement by the clock, stacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import IMAGE, ROLE, ROLE_ARN, Emulator, make_config, make_role, wait_until
from tests.tritonstack_local.emulator.test_faults import send

NO_ROOM = "There is not enough hardware resources on the instances"
FLEET = {
    "VariantName": "fleet",
    "InstanceType": "ml.g5.12xlarge",
    "InitialInstanceCount": 1,
    "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2},
}


@pytest.fixture(autouse=True)
def no_component_stays(aws: Emulator, name: str) -> Iterator[None]:
    """Remove a test's components: tests of endpoints remove all of these, and SageMaker refuses one with components."""
    yield
    sagemaker = aws.client("sagemaker")
    for component in sagemaker.list_inference_components(EndpointNameEquals=name)["InferenceComponents"]:
        sagemaker.delete_inference_component(InferenceComponentName=component["InferenceComponentName"])


def make_endpoint(aws: Emulator, name: str, **variant: Any) -> None:
    """An endpoint for components and a model called ``name``."""
    make_role(aws)
    sagemaker = aws.client("sagemaker")
    container = {"Image": IMAGE, "ModelDataUrl": "s3://bucket/model.tar.gz"}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
    variants = [{**FLEET, **variant}]
    sagemaker.create_endpoint_config(EndpointConfigName=name, ExecutionRoleArn=ROLE_ARN, ProductionVariants=variants)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def specification(model: str, *, gpus: float = 1, memory_mb: int = 1024) -> dict[str, Any]:
    needs = {"NumberOfAcceleratorDevicesRequired": gpus, "MinMemoryRequiredInMb": memory_mb}
    return {"ModelName": model, "ComputeResourceRequirements": needs}


def make_component(aws: Emulator, name: str, *, of: str, copies: int = 1, **needs: Any) -> None:
    aws.client("sagemaker").create_inference_component(
        InferenceComponentName=name,
        EndpointName=of,
        VariantName="fleet",
        Specification=specification(of, **needs),
        RuntimeConfig={"CopyCount": copies},
    )


def described(aws: Emulator, name: str) -> dict[str, Any]:
    found: dict[str, Any] = aws.client("sagemaker").describe_inference_component(InferenceComponentName=name)
    return found


def counts(aws: Emulator, name: str) -> tuple[str, int, int]:
    """Status, desired and current copies."""
    found = described(aws, name)
    config = found["RuntimeConfig"]
    return found["InferenceComponentStatus"], config["DesiredCopyCount"], config["CurrentCopyCount"]


def set_copies(aws: Emulator, name: str, copies: int) -> None:
    aws.client("sagemaker").update_inference_component_runtime_config(
        InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": copies}
    )


def instances(aws: Emulator, endpoint: str) -> int:
    variants = aws.client("sagemaker").describe_endpoint(EndpointName=endpoint)["ProductionVariants"]
    return int(variants[0]["CurrentInstanceCount"])


def test_a_component_is_created_described_listed_scaled_and_deleted(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name)
    make_component(aws, f"{name}-a", of=name, copies=2)
    found = described(aws, f"{name}-a")
    assert (found["EndpointName"], found["VariantName"]) == (name, "fleet")
    assert found["InferenceComponentArn"].endswith(f":inference-component/{name}-a")
    assert found["Specification"]["ModelName"] == name
    assert found["Specification"]["Container"]["DeployedImage"]["SpecifiedImage"] == IMAGE
    assert counts(aws, f"{name}-a") == ("InService", 2, 2)

    sagemaker = aws.client("sagemaker")
    listed = sagemaker.list_inference_components(EndpointNameEquals=name)["InferenceComponents"]
    assert [(each["InferenceComponentName"], each["InferenceComponentStatus"]) for each in listed] == [
        (f"{name}-a", "InService")
    ]
    set_copies(aws, f"{name}-a", 0)
    assert counts(aws, f"{name}-a") == ("InService", 0, 0)
    sagemaker.delete_inference_component(InferenceComponentName=f"{name}-a")
    with pytest.raises(ClientError, match="Could not find inference component"):
        described(aws, f"{name}-a")


def test_what_cannot_be_created_is_refused_with_sagemakers_sentence(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name)
    with pytest.raises(ClientError, match="copy count an integer larger than 0"):
        make_component(aws, f"{name}-a", of=name, copies=0)
    make_component(aws, f"{name}-a", of=name)
    with pytest.raises(ClientError, match="already existing inference component"):
        make_component(aws, f"{name}-a", of=name)
    with pytest.raises(ClientError, match="Could not find model"):
        aws.client("sagemaker").create_inference_component(
            InferenceComponentName=f"{name}-b",
            EndpointName=name,
            VariantName="fleet",
            Specification=specification(f"{name}-other"),
            RuntimeConfig={"CopyCount": 1},
        )


def test_an_endpoint_with_a_model_takes_no_components(aws: Emulator, name: str) -> None:
    make_config(aws, name, VariantName="fleet")
    aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)
    with pytest.raises(ClientError, match="Inference Components are not supported in this Endpoint"):
        make_component(aws, f"{name}-a", of=name)


@pytest.mark.parametrize(
    ("variant", "role", "sentence"),
    [
        (
            {"ModelName": "given"},
            ROLE_ARN,
            "ManagedInstanceScaling is only supported for inference component endpoints",
        ),
        ({}, None, "ExecutionRoleArn is required"),
        (
            {"ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 3, "MaxInstanceCount": 2}},
            ROLE_ARN,
            "MaxInstanceCount 2 of variant fleet is less than its MinInstanceCount 3",
        ),
    ],
    ids=["managed with a model", "no role", "limits"],
)
def test_a_config_that_cannot_run_components_is_refused(
    aws: Emulator, name: str, variant: dict[str, Any], role: str | None, sentence: str
) -> None:
    make_role(aws)
    sagemaker = aws.client("sagemaker")
    container = {"Image": IMAGE, "ModelDataUrl": "s3://bucket/model.tar.gz"}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
    given = {**FLEET, **variant} | ({"ModelName": name} if "ModelName" in variant else {})
    roles = {} if role is None else {"ExecutionRoleArn": role}
    with pytest.raises(ClientError, match=sentence):
        sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[given], **roles)


def test_an_endpoint_with_components_is_not_deleted(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name)
    make_component(aws, f"{name}-a", of=name)
    with pytest.raises(ClientError, match="Cannot delete endpoint with inference component associated"):
        aws.client("sagemaker").delete_endpoint(EndpointName=name)
    aws.client("sagemaker").delete_inference_component(InferenceComponentName=f"{name}-a")
    aws.client("sagemaker").delete_endpoint(EndpointName=name)


def test_a_component_that_fits_nowhere_fails_and_can_only_be_deleted(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name)
    make_component(aws, f"{name}-a", of=name, gpus=8)
    found = described(aws, f"{name}-a")
    assert (found["InferenceComponentStatus"], found["FailureReason"].startswith(NO_ROOM)) == ("Failed", True)
    with pytest.raises(ClientError, match="while it is in state FAILED"):
        set_copies(aws, f"{name}-a", 1)
    aws.client("sagemaker").delete_inference_component(InferenceComponentName=f"{name}-a")


def test_copies_without_a_place_come_once_there_is_one(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name, ManagedInstanceScaling={"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 1})
    make_component(aws, f"{name}-a", of=name, copies=3)
    make_component(aws, f"{name}-b", of=name, copies=2)
    assert counts(aws, f"{name}-b") == ("InService", 2, 1)
    set_copies(aws, f"{name}-a", 1)
    assert counts(aws, f"{name}-b") == ("InService", 2, 2)


def test_a_shortage_of_instances_leaves_the_copies_that_there_are(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name)
    make_component(aws, f"{name}-a", of=name, copies=4)
    try:
        send(aws, "POST", {"instance_type": "ml.g5.12xlarge", "short_of": "capacity", "times": 99})
        set_copies(aws, f"{name}-a", 6)
        assert counts(aws, f"{name}-a") == ("InService", 6, 4)
    finally:
        send(aws, "DELETE")
    aws.advance(60)
    wait_until(lambda: counts(aws, f"{name}-a"), lambda seen: seen == ("InService", 6, 6))
    assert instances(aws, name) == 2


def test_without_copies_the_last_instance_ends_after_the_cooldown_and_one_copy_brings_it_back(
    aws: Emulator, name: str
) -> None:
    make_endpoint(aws, name)
    make_component(aws, f"{name}-a", of=name)
    set_copies(aws, f"{name}-a", 0)
    aws.advance(19 * 60)
    assert instances(aws, name) == 1
    aws.advance(2 * 60)
    wait_until(lambda: instances(aws, name), lambda seen: seen == 0)
    set_copies(aws, f"{name}-a", 1)
    assert (counts(aws, f"{name}-a"), instances(aws, name)) == (("InService", 1, 1), 1)


def test_an_endpoint_that_never_had_a_component_keeps_its_instance(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name)
    aws.advance(60 * 60)
    assert instances(aws, name) == 1


def test_a_change_waits_for_the_runtimes_report_and_keeps_others_out(fleets: Emulator, name: str) -> None:
    make_endpoint(fleets, name)
    component = f"{name}-a"
    make_component(fleets, component, of=name)
    assert counts(fleets, component) == ("Creating", 1, 0)
    with pytest.raises(ClientError, match="while it is in state CREATE_IN_PROGRESS"):
        fleets.client("sagemaker").delete_inference_component(InferenceComponentName=component)
    assert report(fleets, component, generation=7, outcome="in_service") == 409
    assert report(fleets, component, generation=1, outcome="in_service") == 200
    assert counts(fleets, component) == ("InService", 1, 1)

    set_copies(fleets, component, 2)
    with pytest.raises(ClientError, match="while it is in state UPDATE_RC_IN_PROGRESS"):
        set_copies(fleets, component, 3)
    assert report(fleets, component, generation=2, outcome="failed", reason="no room on this laptop") == 200
    assert counts(fleets, component) == ("InService", 1, 1)
    assert described(fleets, component)["FailureReason"] == "no room on this laptop"


def test_an_update_serves_the_model_before_until_the_new_one_is_up(fleets: Emulator, name: str) -> None:
    make_endpoint(fleets, name)
    component, sagemaker = f"{name}-a", fleets.client("sagemaker")
    make_component(fleets, component, of=name)
    report(fleets, component, generation=1, outcome="in_service")
    container = {"Image": IMAGE, "ModelDataUrl": "s3://bucket/next.tar.gz"}
    sagemaker.create_model(ModelName=f"{name}-2", ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
    with pytest.raises(ClientError, match="One of Specification and RuntimeConfig is required"):
        sagemaker.update_inference_component(InferenceComponentName=component)
    sagemaker.update_inference_component(
        InferenceComponentName=component, Specification=specification(f"{name}-2"), RuntimeConfig={"CopyCount": 2}
    )
    assert described(fleets, component)["Specification"]["ModelName"] == name
    document = next(each for each in fleets.get("/_tritonstack/components")["components"] if each["name"] == component)
    assert (document["serving"]["ModelName"], document["pending"]["ModelName"]) == (name, f"{name}-2")
    report(fleets, component, generation=2, outcome="in_service")
    assert described(fleets, component)["Specification"]["ModelName"] == f"{name}-2"
    assert counts(fleets, component) == ("InService", 2, 2)


def report(aws: Emulator, component: str, **document: Any) -> int:
    status, _ = aws._http("POST", f"/_tritonstack/components/{component}/report", json.dumps(document).encode())
    return status


def stack(name: str, *, copies: int = 1, gpus: float = 1, data: str = "model") -> dict[str, Any]:
    """A role, a model, an endpoint for components, and one component."""
    role = {"Fn::GetAtt": ["Role", "Arn"]}
    container = {"Image": IMAGE, "ModelDataUrl": f"s3://bucket/{data}.tar.gz"}
    model = {"Fn::GetAtt": ["Model", "ModelName"]}
    return {
        "Role": ROLE,
        "Model": {
            "Type": "AWS::SageMaker::Model",
            "Properties": {"ExecutionRoleArn": role, "PrimaryContainer": container},
        },
        "Config": {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": {"ExecutionRoleArn": role, "ProductionVariants": [FLEET]},
        },
        "Endpoint": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {
                "EndpointName": name,
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            },
        },
        "Component": {
            "Type": "AWS::SageMaker::InferenceComponent",
            "DependsOn": "Endpoint",
            "Properties": {
                "InferenceComponentName": f"{name}-a",
                "EndpointName": name,
                "VariantName": "fleet",
                "Specification": {**specification("", gpus=gpus), "ModelName": model},
                "RuntimeConfig": {"CopyCount": copies},
                "DeploymentConfig": {
                    "RollingUpdatePolicy": {
                        "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
                        "WaitIntervalInSeconds": 0,
                    }
                },
            },
        },
    }


@pytest.fixture
def deployed(aws: Emulator, name: str) -> Iterator[Emulator]:
    assert aws.deploy(name, stack(name)) == "CREATE_COMPLETE", aws.failures(name)
    yield aws
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="Could not find"):
        described(aws, f"{name}-a")


def test_a_stack_updates_its_component_in_place_with_the_templates_copies(deployed: Emulator, name: str) -> None:
    before = described(deployed, f"{name}-a")
    set_copies(deployed, f"{name}-a", 3)
    assert deployed.deploy(name, stack(name, data="next")) == "UPDATE_COMPLETE", deployed.failures(name)
    after = described(deployed, f"{name}-a")
    assert after["InferenceComponentArn"] == before["InferenceComponentArn"]
    assert after["Specification"]["ModelName"] != before["Specification"]["ModelName"]
    assert counts(deployed, f"{name}-a") == ("InService", 1, 1)
    assert after["LastDeploymentConfig"]["RollingUpdatePolicy"]["WaitIntervalInSeconds"] == 0


def test_new_copies_need_room_beside_the_old_ones(aws: Emulator, name: str) -> None:
    make_endpoint(aws, name, ManagedInstanceScaling={"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 1})
    make_component(aws, f"{name}-a", of=name, copies=3)
    sagemaker, change = aws.client("sagemaker"), {"InferenceComponentName": f"{name}-a"}
    sagemaker.update_inference_component(**change, Specification=specification(name, memory_mb=2048))
    assert described(aws, f"{name}-a")["FailureReason"].startswith(NO_ROOM)
    batches = {"MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1}, "WaitIntervalInSeconds": 0}
    sagemaker.update_inference_component(
        **change,
        Specification=specification(name, memory_mb=2048),
        DeploymentConfig={"RollingUpdatePolicy": batches},
    )
    found = described(aws, f"{name}-a")
    assert found["Specification"]["ComputeResourceRequirements"]["MinMemoryRequiredInMb"] == 2048
    assert counts(aws, f"{name}-a") == ("InService", 3, 3)


def test_a_stack_whose_component_has_no_room_rolls_back(deployed: Emulator, name: str) -> None:
    before = described(deployed, f"{name}-a")["Specification"]
    assert deployed.deploy(name, stack(name, gpus=8)) == "UPDATE_ROLLBACK_COMPLETE"
    assert NO_ROOM in deployed.failures(name)
    assert described(deployed, f"{name}-a")["Specification"] == before


def test_a_component_of_another_endpoint_is_no_update_in_place(deployed: Emulator, name: str) -> None:
    changed = stack(name)
    changed["Component"]["Properties"]["VariantName"] = "other"
    assert deployed.deploy(name, changed) == "UPDATE_ROLLBACK_COMPLETE"
    assert "VariantName of an inference component cannot be changed in place" in deployed.failures(name)
