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
from tritonstack.monitoring.metric import Metric, unit_of

METRICS = sorted(name for name in dir(CallableEndpoint) if name.startswith("metric_"))


def imported(stack: cdk.Stack, **changes: Any) -> CallableEndpoint:
    given = {"endpoint_name": "prod-digits", "variant_name": "g4dn-xlarge"}
    return CallableEndpoint.from_endpoint_attributes(stack, "Imported", **{**given, **changes})


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
    ("changes", "models", "said"),
    [
        ({}, [], "is empty"),
        ({}, ["*"], "no model's name"),
        ({}, ["bert.*"], "no model's name"),
        ({"multi_model": False}, ["bert"], "serves a single model"),
        ({"models": ["bert"]}, ["brt"], "has no model brt: it has bert"),
    ],
)
def test_a_grant_that_would_not_mean_what_it_says_is_refused(
    changes: dict[str, Any], models: list[str], said: str
) -> None:
    stack = new_stack()
    with pytest.raises(ValueError, match=said):
        imported(stack, **changes).grant_invoke(caller(stack), models=models)


def test_a_string_in_place_of_a_list_is_refused() -> None:
    stack = new_stack()
    with pytest.raises(TypeError, match="is a list of names"):
        imported(stack).grant_invoke(caller(stack), models="bert")


def test_an_imported_endpoint_with_release_records_lets_callers_name_its_models() -> None:
    stack = new_stack()
    imported(stack, release_records="/tritonstack/prod/digits/").grant_invoke(caller(stack))
    [_, statement] = allowed(template_of(stack))
    assert statement["Action"] == "ssm:GetParameter"
    read = [str(each).rpartition(":parameter/")[2] for each in statement["Resource"]]
    assert sorted(each.rstrip("']}") for each in read) == [
        "tritonstack/prod/_outputs/serving-digits",
        "tritonstack/prod/digits/*",
    ]


@pytest.mark.parametrize("path", ["", "/tritonstack/prod/digits", "tritonstack/prod/digits/", "/tritonstack/*/digits/"])
def test_a_path_that_no_release_records_have_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="<environment>/<endpoint>"):
        imported(new_stack(), release_records=path)


@pytest.mark.parametrize("method", METRICS)
def test_each_metric_is_one_that_aws_documents(method: str) -> None:
    metric = getattr(imported(new_stack()), method)()
    dimensions = {"EndpointName": "prod-digits", "VariantName": "g4dn-xlarge"}
    assert dict(metric.dimensions) == dimensions
    known = Metric(
        namespace=metric.namespace,
        name=metric.metric_name,
        dimensions=tuple(dimensions.items()),
        statistic=metric.statistic,
    )
    assert metric.metric_name.lower() == method.removeprefix("metric_").replace("_", "")
    assert metric.unit.value == unit_of(known).upper()
    assert metric.period.to_seconds() == 60
    assert f"Default: ``{metric.statistic}``." in getattr(CallableEndpoint, method).__doc__


def test_all_documented_metrics_of_an_endpoint_have_a_method() -> None:
    [folder] = tritonstack.monitoring.__path__
    document = json.loads(Path(folder, "data", "metrics.json").read_text())["namespaces"]
    names = [name for space in ("AWS/SageMaker", "/aws/sagemaker/Endpoints") for name in document[space]["metrics"]]
    made = imported(new_stack())
    assert sorted(getattr(made, method)().metric_name for method in METRICS) == sorted(names)


def test_options_are_taken_and_an_undocumented_statistic_is_refused() -> None:
    stack = new_stack()
    endpoint = imported(stack)
    latency = endpoint.metric_model_latency(statistic="p99", period=cdk.Duration.minutes(5))
    latency.create_alarm(stack, "Slow", threshold=200_000, evaluation_periods=3)
    alarm = properties(template_of(stack), "AWS::CloudWatch::Alarm")
    assert (alarm["ExtendedStatistic"], alarm["Period"], alarm["Unit"]) == ("p99", 300, "Microseconds")
    shown = endpoint.metric_invocations(label="calls", color="#00ff00")
    assert (shown.label, shown.color, shown.statistic) == ("calls", "#00ff00", "Sum")
    with pytest.raises(LookupError, match="Average"):
        endpoint.metric_gpu_utilization(statistic="Sum")


def test_any_metric_is_had_by_its_name() -> None:
    endpoint = imported(new_stack())
    assert endpoint.metric("ModelLatency").namespace == "AWS/SageMaker"
    assert endpoint.metric("GPUUtilization").namespace == "/aws/sagemaker/Endpoints"
    own = endpoint.metric("QueueDepth", namespace="Own", statistic="Maximum")
    assert (own.namespace, own.statistic, own.unit) == ("Own", "Maximum", None)
    assert own.dimensions == {"EndpointName": "prod-digits", "VariantName": "g4dn-xlarge"}
    with pytest.raises(ValueError, match=r"namespace(?s:.*)Did you mean ModelLatency"):
        endpoint.metric("ModelLatencies")
