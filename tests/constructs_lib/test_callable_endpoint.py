"""Who may call an endpoint, and its metrics; also of one that was made elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

import tritonstack.monitoring
from constructs_lib.endpoint import CallableEndpoint
from tests.constructs_lib.templates import allowed, new_stack, properties, template_of
from tritonstack.naming import EndpointReference


def imported(stack: cdk.Stack, **changes: Any) -> CallableEndpoint:
    given = {"endpoint_name": "prod-digits", "variant_name": "g4dn-xlarge"}
    return CallableEndpoint(stack, "Imported", **{**given, **changes})


def caller(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


def test_an_imported_endpoint_makes_nothing_and_grants_its_call() -> None:
    stack = new_stack()
    imported(stack).grant_invoke(caller(stack))
    template = template_of(stack)
    assert {each["Type"] for each in template["Resources"].values()} == {"AWS::IAM::Role", "AWS::IAM::Policy"}
    [statement] = allowed(template)
    assert statement["Action"] == "sagemaker:InvokeEndpoint"
    assert str(statement["Resource"]).endswith(":endpoint/prod-digits") or "endpoint/prod-digits" in str(statement)
    assert "Condition" not in statement


@pytest.mark.parametrize(
    ("changes", "models", "message"),
    [
        ({}, [], "is empty"),
        ({}, ["*"], "no model's name"),
        ({}, ["bert.*"], "no model's name"),
        ({"multi_model": False}, ["bert"], "serves a single model"),
        ({"models": ["bert"]}, ["brt"], "has no model brt: it has bert"),
    ],
)
def test_a_grant_without_an_effect_is_refused(changes: dict[str, Any], models: list[str], message: str) -> None:
    stack = new_stack()
    with pytest.raises(ValueError, match=message):
        imported(stack, **changes).grant_invoke(caller(stack), models=models)


def test_a_string_in_place_of_a_list_is_refused() -> None:
    stack = new_stack()
    with pytest.raises(TypeError, match="is a list of names"):
        imported(stack).grant_invoke(caller(stack), models="bert")


def test_an_imported_endpoint_with_release_records_lets_callers_name_its_models() -> None:
    stack = new_stack()
    reference = EndpointReference(environment="prod", endpoint="digits")
    imported(stack, reference=reference).grant_invoke(caller(stack))
    [_, statement] = allowed(template_of(stack))
    assert statement["Action"] == "ssm:GetParameter"
    read = [str(each).rpartition(":parameter/")[2] for each in statement["Resource"]]
    assert sorted(each.rstrip("']}") for each in read) == [
        "tritonstack/prod/_outputs/serving-digits",
        "tritonstack/prod/digits/*",
    ]


def test_from_endpoint_name_imports_as_the_constructor_does() -> None:
    reference = EndpointReference(environment="prod", endpoint="digits")
    given: dict[str, Any] = {"variant_name": "g4dn-xlarge", "models": ["bert"], "reference": reference}
    templates = []
    for made in (CallableEndpoint.from_endpoint_name, CallableEndpoint):
        stack = new_stack()
        endpoint = made(stack, "Imported", endpoint_name="prod-digits", **given)
        endpoint.grant_invoke(caller(stack), models=["bert"])
        templates.append(template_of(stack))
    assert templates[0] == templates[1]


def test_every_documented_metric_has_the_variants_dimensions_and_its_unit() -> None:
    [folder] = tritonstack.monitoring.__path__
    document = json.loads(Path(folder, "data", "metrics.json").read_text())["namespaces"]
    endpoint = imported(new_stack())
    for namespace in ("AWS/SageMaker", "/aws/sagemaker/Endpoints", "tritonstack/client"):
        for name, row in document[namespace]["metrics"].items():
            metric = endpoint.metric(name)
            assert (metric.namespace, metric.metric_name, metric.statistic) == (namespace, name, row["statistics"][0])
            assert metric.dimensions == {"EndpointName": "prod-digits", "VariantName": "g4dn-xlarge"}
            assert metric.unit is not None
            assert metric.unit.value == row["unit"].upper()
            assert metric.period.to_seconds() == 60


def test_options_are_taken_and_what_aws_does_not_document_is_refused() -> None:
    stack = new_stack()
    endpoint = imported(stack)
    latency = endpoint.metric("ModelLatency", statistic="p99", period=cdk.Duration.minutes(5))
    latency.create_alarm(stack, "Slow", threshold=200_000, evaluation_periods=3)
    alarm = properties(template_of(stack), "AWS::CloudWatch::Alarm")
    assert (alarm["ExtendedStatistic"], alarm["Period"], alarm["Unit"]) == ("p99", 300, "Microseconds")
    with pytest.raises(LookupError, match="Average"):
        endpoint.metric("GPUUtilization", statistic="Sum")
    with pytest.raises(ValueError, match="Did you mean ModelLatency"):
        endpoint.metric("ModelLatencies")
    # Of inference pipelines and multi-container endpoints alone; an alarm on it would never have data.
    with pytest.raises(ValueError, match="does not document for endpoints"):
        endpoint.metric("ContainerLatency")


def test_a_single_model_endpoint_grants_streams_too_since_no_page_says_which_action_counts() -> None:
    stack = new_stack()
    imported(stack, multi_model=False).grant_invoke(caller(stack))
    [statement] = allowed(template_of(stack))
    assert sorted(statement["Action"]) == ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
