"""SEARCH: the examples of CloudWatch's user guide."""

from __future__ import annotations

import pytest

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError
from tritonstack_local.emulator.cloudwatch.search_terms import Metric, search


def metric(name: str, namespace: str = "MyNamespace", **dimensions: str) -> Metric:
    """A metric."""
    return Metric(namespace=namespace, name=name, dimensions=dimensions)


LATENCY = metric("ModelLatency", "AWS/SageMaker", EndpointName="prod-digits", VariantName="g4dn-xlarge")
OF_FLEET = metric("ModelLatency", "AWS/SageMaker", **LATENCY.dimensions, EndpointConfigName="config-2")
ENDPOINT_SEARCH = '{AWS/SageMaker,EndpointName,VariantName} MetricName="ModelLatency"'


@pytest.mark.parametrize(
    ("text", "found", "left"),
    [
        (ENDPOINT_SEARCH, LATENCY, OF_FLEET),
        (ENDPOINT_SEARCH + ' EndpointName="prod-digits"', LATENCY, OF_FLEET),
        ('{AWS/SageMaker, VariantName, EndpointName}, MetricName="ModelLatency"', LATENCY, OF_FLEET),
        ("{AWS/SageMaker} config", OF_FLEET, LATENCY),
        ('{"AWS/SageMaker","EndpointName","VariantName"} digits', LATENCY, OF_FLEET),
        ("count", metric("CustomCount1"), metric("CustomSum1")),
        ("COUNT", metric("CustomCount1"), metric("Discount")),
        ("CustomCount", metric("CustomCount1"), metric("CustomSum1")),
        ("Count1", metric("CustomCount1"), metric("Count")),
        ('{MyNamespace}, "CustomCount1"', metric("CustomCount1"), metric("CustomCount11")),
        ('"CustomCount1"', metric("Any", A="CustomCount1"), metric("customcount1")),
        ('MetricName="CustomCount1"', metric("CustomCount1"), metric("Any", A="CustomCount1")),
        ("NOT Namespace=AWS", metric("A"), LATENCY),
        ('(EC2 OR EBS) AND MetricName="Ops"', metric("Ops", "AWS/EBS"), metric("Ops", "AWS/RDS")),
        ('MetricName="Errors" OR (MetricName="Calls" AND (A OR B))', metric("Calls", X="B"), metric("Calls", X="C")),
        ('network packets NOT "i-1"', metric("NetworkPacketsIn", I="i-2"), metric("NetworkPacketsIn", I="i-1")),
        (r'"Europe\\France Traffic\(Network\)"', metric(r"Europe\France Traffic(Network)"), metric("Europe")),
        ('InstanceType="t2.micro"', metric("A", InstanceType="t2.micro"), metric("t2.micro")),
    ],
)
def test_a_search_finds_one_metric_and_not_its_like(text: str, found: Metric, left: Metric) -> None:
    matches = search(text)
    assert (matches(found), matches(left)) == (True, False)


@pytest.mark.parametrize("text", ["", "  ", "{}", "(a", "a OR", "NOT", "a)", '"open', "x" * 1025])
def test_what_is_no_search_is_told(text: str) -> None:
    with pytest.raises(ExpressionError):
        search(text)
