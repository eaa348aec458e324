"""End-to-end latency as a metric: what a client counts, and what it sends CloudWatch where it is asked to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.client.fakes import FakeEndpoint, error_reply, serving_outputs
from tests.fake_aws import FakeAws
from tritonstack.client import ModelClient
from tritonstack.client.latency_metric import Called, LatencyMetric
from tritonstack.errors import InputError, WorkFailedError

CALLED = Called("dev-text", "g4dn-xlarge", "bert")
X = {"x": np.arange(3, dtype=np.float32)}
NOON = 1_767_268_800.0


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint().running() as served:
        yield served


def account(endpoint: FakeEndpoint) -> FakeAws:
    parameters = {
        "/tritonstack/dev/text/bert": "0123456789abcdef",
        "/tritonstack/dev/_outputs/serving-text": serving_outputs("multi-model"),
    }
    urls = {"sagemaker-runtime": endpoint.url}
    return FakeAws(parameters=parameters, urls=urls, responses={"cloudwatch.PutMetricData": {}})


def published(aws: FakeAws) -> list[dict[str, Any]]:
    requests = aws.requests("PutMetricData")
    assert {each["Namespace"] for each in requests} <= {"tritonstack/client"}
    return [datum for each in requests for datum in each["MetricData"]]


def metric(aws: FakeAws, now: list[float]) -> LatencyMetric:
    return LatencyMetric(lambda: aws.client("cloudwatch"), now=lambda: now[0])


def test_every_response_is_counted_of_the_variant_and_of_its_model(endpoint: FakeEndpoint) -> None:
    aws = account(endpoint)
    client = ModelClient(environment="dev", session=aws, latency_metric=True)
    took = [client.invoke("text/bert", X).total_milliseconds for _ in range(3)]
    assert client.publish_latencies() == 3
    of_variant, of_model = published(aws)
    dimensions = [{each["Name"]: each["Value"] for each in one["Dimensions"]} for one in (of_variant, of_model)]
    variant = {"EndpointName": "dev-text", "VariantName": "g4dn-xlarge"}
    assert dimensions == [variant, {**variant, "ModelName": "bert"}]
    assert (of_variant["MetricName"], of_variant["Unit"]) == ("EndToEndLatency", "Milliseconds")
    assert dict(zip(of_variant["Values"], of_variant["Counts"], strict=True)) == Counter(
        float(f"{ms:.3g}") for ms in took
    )
    assert client.publish_latencies() == 0
    assert len(published(aws)) == 2, "nothing is sent twice"


def test_a_request_without_a_response_has_no_latency(endpoint: FakeEndpoint) -> None:
    endpoint.reply = lambda _: error_reply("ValidationError", 400)
    client = ModelClient(environment="dev", session=account(endpoint), latency_metric=True, retry_seconds=0)
    with pytest.raises(WorkFailedError):
        client.invoke("text/bert", X)
    assert client.publish_latencies() == 0


def test_a_client_that_counts_nothing_says_what_to_do(endpoint: FakeEndpoint) -> None:
    client = ModelClient(environment="dev", session=account(endpoint))
    client.invoke("text/bert", X)
    with pytest.raises(InputError, match="latency_metric=True"):
        client.publish_latencies()


def test_latencies_are_of_the_minute_in_which_they_were() -> None:
    aws, now = FakeAws(responses={"cloudwatch.PutMetricData": {}}), [NOON + 59]
    found = metric(aws, now)
    found.add(CALLED, 12.3456)
    now[0] += 2
    found.add(CALLED, 7.0)
    found.publish()
    times = {(each["Timestamp"].minute, each["Timestamp"].second, tuple(each["Values"])) for each in published(aws)}
    assert times == {(0, 0, (12.3,)), (1, 0, (7.0,))}


def test_a_datum_has_150_values_at_most_and_none_is_lost() -> None:
    aws = FakeAws(responses={"cloudwatch.PutMetricData": {}})
    found = metric(aws, [NOON])
    for value in range(100, 500):
        found.add(CALLED, value)
    assert found.publish() == 400
    of_variant = [each for each in published(aws) if len(each["Dimensions"]) == 2]
    assert [len(each["Values"]) for each in of_variant] == [150, 150, 100]
    assert sum(sum(each["Counts"]) for each in of_variant) == 400


def test_without_the_permission_the_grant_is_named() -> None:
    found = metric(FakeAws(refused={"PutMetricData": "AccessDenied"}), [NOON])
    found.add(CALLED, 1.0)
    with pytest.raises(WorkFailedError, match=r"cannot be published: .*\n  do: grant_publish_latency"):
        found.publish()
