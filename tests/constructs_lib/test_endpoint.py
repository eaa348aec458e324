"""EndpointConfig and Endpoint, and who may call."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest

from constructs_lib.endpoint import ProductionVariant, VariantInstances
from tests.constructs_lib.templates import built, endpoint_template, new_endpoint, new_model, only, properties
from tritonstack.config import EndpointMetrics, Scaling


def variant(**given: Any) -> dict[str, Any]:
    [found] = properties(endpoint_template(**given), "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    return dict(found)


def test_the_endpoints_name_is_fixed_and_its_configs_generated() -> None:
    template = endpoint_template()
    config_id, config = only(template, "AWS::SageMaker::EndpointConfig")
    endpoint = properties(template, "AWS::SageMaker::Endpoint")
    assert endpoint["EndpointName"] == "local-digits"
    assert endpoint["EndpointConfigName"] == {"Fn::GetAtt": [config_id, "EndpointConfigName"]}
    assert "EndpointConfigName" not in config["Properties"]


def test_what_is_not_set_is_left_to_sagemaker() -> None:
    assert not variant().keys() & {"VolumeSizeInGB", "InferenceAmiVersion", "RoutingConfig"}
    assert "KmsKeyId" not in properties(endpoint_template(), "AWS::SageMaker::EndpointConfig")


def test_host_ami_and_routing_are_rendered_where_set() -> None:
    instances = VariantInstances(
        instance_type="ml.g4dn.xlarge",
        initial_instance_count=1,
        host_ami="al2-ami-sagemaker-inference-gpu-3-1",
        routing="LEAST_OUTSTANDING_REQUESTS",
    )
    rendered = variant(instances=instances)
    assert rendered["InferenceAmiVersion"] == "al2-ami-sagemaker-inference-gpu-3-1"
    assert rendered["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}


@pytest.mark.parametrize(
    ("given", "rendered"),
    [
        ({}, (False, False, 60)),
        ({"metrics": EndpointMetrics(enhanced=True, seconds=10)}, (False, True, 10)),
        ({"metrics": EndpointMetrics(detailed=True)}, (True, False, 60)),
        ({"metrics": None}, (None, None, None)),
    ],
    ids=["nothing that nobody chose", "by instance and GPU", "OpenTelemetry", "what SageMaker does by itself"],
)
def test_what_sagemaker_publishes_is_rendered_unless_its_own_defaults_are_asked_for(
    given: dict[str, Any], rendered: tuple[bool | int | None, ...]
) -> None:
    found = properties(endpoint_template(**given), "AWS::SageMaker::EndpointConfig").get("MetricsConfig", {})
    members = ("EnableDetailedObservability", "EnableEnhancedMetrics", "MetricPublishFrequencyInSeconds")
    assert tuple(found.get(each) for each in members) == rendered


def test_reserved_capacity_is_rendered_with_its_one_preference_and_scaling_is_asked_about_it() -> None:
    plan = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/gpus"
    reserved = VariantInstances(instance_type="ml.g4dn.xlarge", initial_instance_count=1, capacity_reservation=plan)
    assert variant(instances=reserved)["CapacityReservationConfig"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": plan,
    }
    assert "CapacityReservationConfig" not in variant()
    assert plan in reserved.deployed_text


def test_a_configuration_says_that_containers_are_isolated_only_where_it_is_asked_to() -> None:
    rendered = [
        properties(endpoint_template(**given), "AWS::SageMaker::EndpointConfig").get("EnableNetworkIsolation")
        for given in ({}, {"isolated": True})
    ]
    assert rendered == [None, True]


def test_changed_metrics_of_a_scaled_endpoint_are_an_update_that_scaling_is_asked_about() -> None:
    scaling = Scaling(minimum=1, maximum=2, gpu_utilization=70)
    asked = [
        only(endpoint_template(scaling=scaling, metrics=EndpointMetrics(seconds=seconds)), "Custom::ScalingBefore")[1]
        for seconds in (10, 60)
    ]
    assert asked[0]["Properties"]["Metrics"] != asked[1]["Properties"]["Metrics"]


def test_endpoint_tags_are_on_the_endpoint_alone() -> None:
    template = endpoint_template(endpoint_tags={"only": "here"})
    tagged = [each["Type"] for each in template["Resources"].values() if "only" in str(each["Properties"].get("Tags"))]
    assert tagged == ["AWS::SageMaker::Endpoint"]


def test_a_variant_without_scaling_next_to_a_scaled_one_is_refused_and_not_left_out() -> None:
    def half_scaled(stack: cdk.Stack) -> None:
        model = new_model(stack)
        instances = VariantInstances(instance_type="ml.g4dn.xlarge", initial_instance_count=1)
        scaling = Scaling(minimum=1, maximum=2, gpu_utilization=70)
        scaled = ProductionVariant(model=model, instances=instances, scaling=scaling, label="a")
        new_endpoint(stack, variants=[scaled, ProductionVariant(model=model, instances=instances, label="b")])

    with pytest.raises(ValueError, match="b-g4dn-xlarge has no scaling"):
        built(half_scaled)
