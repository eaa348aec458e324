"""The published loop over a model's copies: a request to each in turn, and the loads that CloudWatch counted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.client.body import Array, PayloadFormat
from tritonstack.client.model_client import ModelClient, ModelResponse
from tritonstack.errors import InputError, Problem, listing, nearest

COUNTED = {
    "hits": (aws_names.MODEL_CACHE_HIT, "Sum"),
    "requests": (aws_names.MODEL_CACHE_HIT, "SampleCount"),
    "loads": (aws_names.MODEL_LOADING_TIME, "SampleCount"),
    "unloads": (aws_names.MODEL_UNLOADING_TIME, "SampleCount"),
}
"""What is counted, by metric and statistic: ModelCacheHit is 1 or 0 for each request, the times are one for each."""


@dataclass(frozen=True, kw_only=True)
class CopyCall:
    """One request of the loop."""

    copy: str
    round: int  # from 1: in the first, a copy may have to be loaded
    response: ModelResponse


@dataclass(frozen=True, kw_only=True)
class LoadCounts:
    """What CloudWatch counted of the endpoint's variant; other callers' requests included. None: no figure yet."""

    requests: int | None
    hits: int | None
    loads: int | None
    unloads: int | None


def copies_of(client: ModelClient, name: str) -> list[str]:
    """The copies of a model, ``[endpoint/]model`` → ``endpoint/model-0`` and so on, in the order of their numbers.

    Raises InputError: no release of the environment is a copy of it; ReleaseLookupError.
    """
    endpoint, _, model = name.rpartition("/")
    numbered = re.compile(rf"{re.escape(model)}-(\d+)")
    releases = client.releases()
    found = [
        (release.endpoint, int(match[1]), f"{release.endpoint}/{release.model}")
        for release in releases
        if (match := numbered.fullmatch(release.model)) and endpoint in ("", release.endpoint)
    ]
    endpoints = {each[0] for each in found}
    if len(endpoints) == 1:
        return [reference for _, _, reference in sorted(found)]
    if endpoints:
        allowed = listing(f"{each}/{model}" for each in sorted(endpoints))
        raise InputError([Problem(field="NAME", found=f"{name}, with copies on several endpoints", allowed=allowed)])
    copied = {match[1] for each in releases if (match := re.fullmatch(r"(.+)-\d+", each.model))}
    raise InputError(
        [
            Problem(
                field="--each-copy",
                found=f"no copy of {name}: no release is called {model}-0",
                allowed=f"a model whose recipe has copies: {listing(sorted(copied), none='none is deployed')}",
                advice=nearest(model, copied),
            )
        ]
    )


def call_each(
    client: ModelClient,
    copies: Sequence[str],
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None,
    *,
    rounds: int,
    payload_format: PayloadFormat = "auto",
    variant: str | None = None,
) -> Iterator[CopyCall]:
    """A request to each copy in turn, so often; yields each as it ends. Raises what ``ModelClient.invoke`` raises."""
    for number in range(1, rounds + 1):
        for copy in copies:
            response = client.invoke(copy, inputs, outputs, payload_format=payload_format, variant=variant)
            yield CopyCall(copy=copy, round=number, response=response)


def read_counts(cloudwatch: Any, *, endpoint: str, variant: str, begin: datetime, end: datetime) -> LoadCounts:
    """What was counted in the minutes from ``begin`` to ``end``; no figure where CloudWatch has none, or refuses."""
    start = begin.replace(second=0, microsecond=0)
    found: dict[str, int | None] = {}
    for name, (metric, statistic) in COUNTED.items():
        try:
            points = cloudwatch.get_metric_statistics(
                Namespace=aws_names.SAGEMAKER,
                MetricName=metric,
                Dimensions=aws_names.dimension_list(aws_names.variant_dimensions(endpoint, variant)),
                StartTime=start,
                EndTime=end.replace(second=0, microsecond=0) + timedelta(minutes=1),
                Period=60,
                Statistics=[statistic],
            )["Datapoints"]
        except (BotoCoreError, ClientError):
            points = []
        found[name] = round(sum(point[statistic] for point in points)) if points else None
    return LoadCounts(**found)


def await_counts(
    read: Callable[[], LoadCounts],
    *,
    requests: int,
    seconds: float,
    poll_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> LoadCounts:
    """Read until CloudWatch has counted so many requests, or for so many seconds: a minute's figures come later."""
    deadline = now() + seconds
    while True:
        counts = read()
        if (counts.requests or 0) >= requests or now() >= deadline:
            return counts
        sleep(poll_seconds)
