"""Model, config and endpoint in a stack: created, updated, replaced, rolled back, deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import Emulator, serving, wait_until


def _pending(fleets: Emulator, endpoint: str) -> str:
    """The config that an endpoint is being moved to, as soon as it is."""

    def look() -> Any:
        try:
            return fleets.client("sagemaker").describe_endpoint(EndpointName=endpoint)
        except ClientError:
            return {}

    found = wait_until(look, lambda endpoint: "PendingDeploymentSummary" in endpoint)
    return str(found["PendingDeploymentSummary"]["EndpointConfigName"])


def _create(fleets: Emulator, name: str) -> str:
    """A serving stack in service; its config's name."""
    fleets.create_stack(name, serving(name))
    config = _pending(fleets, name)
    [stack] = fleets.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    assert stack["StackStatus"] == "CREATE_IN_PROGRESS", "it waits for its endpoint"
    fleets.report(name, config, "in_service")
    assert fleets.settled(name)["StackStatus"] == "CREATE_COMPLETE"
    return config


def _left(fleets: Emulator, name: str) -> list[Any]:
    """Endpoints, configs and models of a stack."""
    sagemaker = fleets.client("sagemaker")
    lists = (sagemaker.list_endpoints, sagemaker.list_endpoint_configs, sagemaker.list_models)
    return [one for look in lists for key, found in look(NameContains=name).items() if key[0] in "EM" for one in found]


def test_failed_endpoint_rolls_the_stack_back_with_its_reason(fleets: Emulator, name: str) -> None:
    fleets.create_stack(name, serving(name))
    fleets.report(name, _pending(fleets, name), "failed", "the container did not answer /ping; its log ends: boom")
    assert fleets.settled(name)["StackStatus"] == "ROLLBACK_COMPLETE"
    assert f"Endpoint {name} failed. Reason: the container did not answer /ping; its log ends: boom" in fleets.failures(
        name
    )
    assert _left(fleets, name) == []


def test_changed_model_replaces_model_and_config_and_updates_the_endpoint_in_place(fleets: Emulator, name: str) -> None:
    old_config = _create(fleets, name)
    old_model, endpoint = fleets.physical(name, "Model"), fleets.physical(name, "Endpoint")
    fleets.update_stack(name, serving(name, container={"Environment": {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}}))
    new_config = _pending(fleets, name)
    assert new_config != old_config
    fleets.report(name, new_config, "in_service")
    assert fleets.settled(name)["StackStatus"] == "UPDATE_COMPLETE"
    assert fleets.physical(name, "Model") != old_model
    assert fleets.physical(name, "Endpoint") == endpoint
    assert fleets.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointConfigName"] == new_config
    assert len(_left(fleets, name)) == 3, "one endpoint, one config, one model"
    assert fleets.delete_stack(name) == "DELETE_COMPLETE"
    assert _left(fleets, name) == []


def test_update_that_fails_later_brings_the_endpoint_back(fleets: Emulator, name: str) -> None:
    old_config = _create(fleets, name)
    broken = {
        "Type": "AWS::SageMaker::EndpointConfig",
        "DependsOn": "Endpoint",
        "Properties": {
            "ProductionVariants": [
                {"VariantName": "v", "ModelName": "gone", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
            ]
        },
    }
    fleets.update_stack(name, {**serving(name, InstanceType="ml.g5.xlarge"), "Broken": broken})
    new_config = _pending(fleets, name)
    fleets.report(name, new_config, "in_service")
    back = wait_until(lambda: _pending(fleets, name), lambda config: config != new_config)
    assert back == old_config
    fleets.report(name, back, "in_service")
    assert fleets.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert fleets.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointConfigName"] == old_config


def test_an_endpoint_deleted_outside_its_stack_fails_each_change_until_the_stack_is_recreated(
    fleets: Emulator, name: str
) -> None:
    _create(fleets, name)
    fleets.client("sagemaker").delete_endpoint(EndpointName=name)
    fleets.update_stack(name, serving(name, container={"Environment": {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}}))
    assert fleets.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_FAILED"
    assert fleets.delete_stack(name) == "DELETE_COMPLETE"
    _create(fleets, name)


def test_change_set_reports_what_is_replaced(aws: Emulator, name: str) -> None:
    assert aws.deploy(name, serving(name)) == "CREATE_COMPLETE"
    cloudformation = aws.client("cloudformation")
    cloudformation.create_change_set(
        StackName=name,
        ChangeSetName="look",
        TemplateBody=json.dumps({"Resources": serving(name, InstanceType="ml.g5.xlarge")}),
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    changes = cloudformation.describe_change_set(StackName=name, ChangeSetName="look")["Changes"]
    replaced = {c["ResourceChange"]["LogicalResourceId"]: c["ResourceChange"]["Replacement"] for c in changes}
    assert replaced == {"Config": "True", "Endpoint": "False"}


def test_a_response_waits_for_its_stack_and_an_endpoint_without_a_report_fails_in_time(
    tmp_path: Path, name: str
) -> None:
    patient = {"TRITONSTACK_ENDPOINT_WAIT_SECONDS": "0.3", "TRITONSTACK_STACK_PATIENCE_SECONDS": "20"}
    emulator = Emulator(tmp_path, **patient).wait_ready()
    try:
        emulator.create_stack(name, serving(name))
        [stack] = emulator.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE", "at the first look"
        assert "The local runtime reported nothing within" in emulator.failures(name)
        assert emulator.client("sagemaker").list_endpoints()["Endpoints"] == []
    finally:
        emulator.stop()
