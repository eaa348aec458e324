"""`tritonstack invoke --each-copy`: which copies, in which order, and what CloudWatch counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tests.client.fakes import FakeEndpoint, client_account, serving_outputs
from tritonstack.client.copies import LoadCounter, LoadCounts, await_counts, copies_of, in_turn
from tritonstack.client.model_client import ModelClient
from tritonstack.errors import InputError

DIGEST = "0123456789abcdef"
BEGAN = datetime(2026, 11, 28, 12, 0, 30, tzinfo=UTC)


def client(endpoint: FakeEndpoint, *models: str) -> ModelClient:
    """Of environment dev, whose endpoints serve these models, ``endpoint/model``."""
    parameters = {f"/tritonstack/dev/{each}": DIGEST for each in models}
    parameters |= {f"/tritonstack/dev/_outputs/serving-{each.split('/')[0]}": serving_outputs() for each in models}
    return ModelClient(environment="dev", session=client_account(endpoint, parameters))


def test_copies_are_called_in_the_order_of_their_numbers_round_by_round() -> None:
    with FakeEndpoint().running() as endpoint:
        made = client(endpoint, *(f"nlp/bert-{number}" for number in (10, 2, 0)), "nlp/bert-large")
        copies = copies_of(made, "bert")
        assert copies == ["nlp/bert-0", "nlp/bert-2", "nlp/bert-10"]
        assert copies_of(made, "nlp/bert") == copies
        inputs = {"x": np.zeros((1, 2), np.float32)}
        responses = list(in_turn(copies, lambda copy: made.invoke(copy, inputs), rounds=2))
    assert [(each.copy, each.round) for each in responses] == [(copy, number) for number in (1, 2) for copy in copies]
    assert [each.target_model for each in endpoint.requests][:2] == [
        f"bert-0.{DIGEST}.tar.gz",
        f"bert-2.{DIGEST}.tar.gz",
    ]


def test_a_name_without_copies_or_with_copies_on_two_endpoints_is_refused_with_what_is_there() -> None:
    with FakeEndpoint().running() as endpoint:
        made = client(endpoint, "nlp/bert-0", "other/bert-0", "nlp/digits")
        with pytest.raises(InputError) as several:
            copies_of(made, "bert")
        assert several.value.problems[0].allowed == "nlp/bert, other/bert"
        with pytest.raises(InputError) as none:
            copies_of(made, "digits")
        assert none.value.problems[0].allowed == "a model whose recipe has copies: bert"


@dataclass
class FakeCloudWatch:
    """Datapoints by variant and metric."""

    points: Mapping[tuple[str, str], list[dict[str, float]]]
    minutes: set[tuple[datetime, datetime]]

    def get_metric_statistics(self, **request: Any) -> dict[str, Any]:
        self.minutes.add((request["StartTime"], request["EndTime"]))
        dimensions = {each["Name"]: each["Value"] for each in request["Dimensions"]}
        assert dimensions["EndpointName"] == "dev-nlp"
        return {"Datapoints": self.points.get((dimensions["VariantName"], request["MetricName"]), [])}


def test_counts_are_of_all_variants_without_what_was_before_and_missing_figures_are_no_zero() -> None:
    cloudwatch = FakeCloudWatch({("a", "ModelCacheHit"): [{"Sum": 4.0, "SampleCount": 4.0}]}, set())
    moments = [BEGAN, BEGAN, datetime(2026, 11, 28, 12, 2, 10, tzinfo=UTC)]
    counter = LoadCounter(cloudwatch, endpoint="dev-nlp", variants=("a", "b"), now=lambda: moments.pop(0))
    cloudwatch.points = {
        ("a", "ModelCacheHit"): [{"Sum": 5.0, "SampleCount": 9.0}, {"Sum": 2.0, "SampleCount": 3.0}],
        ("b", "ModelCacheHit"): [{"Sum": 2.0, "SampleCount": 2.0}],
        ("b", "ModelLoadingTime"): [{"SampleCount": 5.0}],
    }
    assert counter.read() == LoadCounts(requests=10, hits=5, loads=5, unloads=None)
    minute = BEGAN.replace(second=0)
    assert cloudwatch.minutes == {(minute, minute.replace(minute=1)), (minute, minute.replace(minute=3))}


def test_the_wait_for_figures_ends_with_the_last_request_or_the_time() -> None:
    moment = [0.0]
    answers = [LoadCounts(requests=count, hits=0, loads=0, unloads=None) for count in (None, 6, 10)]

    def sleep(seconds: float) -> None:
        moment[0] += seconds

    def waited(requests: int) -> tuple[LoadCounts, float]:
        left, moment[0] = list(answers), 0.0
        read = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
        found = await_counts(read, requests=requests, seconds=60, poll_seconds=10, sleep=sleep, now=lambda: moment[0])
        return found, moment[0]

    assert waited(10) == (answers[2], 20.0)
    assert waited(11) == (answers[2], 60.0)
