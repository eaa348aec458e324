"""The published loop over a model's copies: a request to each in turn, and what CloudWatch counted meanwhile."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tritonstack import aws_names
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
class CopyResponse:
    """A response of the loop."""

    copy: str
    round: int  # from 1: in the first, a copy may have to be loaded
    response: ModelResponse


@dataclass(frozen=True, kw_only=True)
class LoadCounts:
    """What CloudWatch counted of an endpoint, other callers' requests included. None: no figure yet."""

    requests: int | None
    hits: int | None
    loads: int | None
    unloads: int | None

    def since(self, earlier: LoadCounts) -> LoadCounts:
        """What was added to earlier figures of the same minutes."""
        return LoadCounts(
            **{
                name: None if count is None else count - (getattr(earlier, name) or 0)
                for name, count in vars(self).items()
            }
        )


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


def in_turn(copies: Sequence[str], send: Callable[[str], ModelResponse], *, rounds: int) -> Iterator[CopyResponse]:
    """A request to each copy in turn, so often; yields each response as it comes. Raises what ``send`` raises."""
    for number in range(1, rounds + 1):
        for copy in copies:
            yield CopyResponse(copy=copy, round=number, response=send(copy))


class LoadCounter:
    """What CloudWatch counts of an endpoint from now on. It counts in minutes: what was in them before is left out."""

    def __init__(
        self,
        cloudwatch: Any,
        *,
        endpoint: str,
        variants: Sequence[str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Begin now. Raises ClientError and BotoCoreError of CloudWatch.

        Args:
            cloudwatch: boto3's client.
            endpoint: its SageMaker name.
            variants: all of its production variants: without a choice a request goes to any of them.
            now: the time.
        """
        self._cloudwatch = cloudwatch
        self._endpoint = endpoint
        self._variants = variants
        self._now = now
        self._begin = now().replace(second=0, microsecond=0)
        self._before = self._read_minutes()

    def read(self) -> LoadCounts:
        """What was counted since. Raises ClientError and BotoCoreError of CloudWatch."""
        return self._read_minutes().since(self._before)

    def _read_minutes(self) -> LoadCounts:
        end = self._now().replace(second=0, microsecond=0) + timedelta(minutes=1)
        found: dict[str, int | None] = {}
        for name, (metric, statistic) in COUNTED.items():
            points = [
                point
                for variant in self._variants
                for point in self._cloudwatch.get_metric_statistics(
                    Namespace=aws_names.SAGEMAKER,
                    MetricName=metric,
                    Dimensions=aws_names.dimension_list(aws_names.variant_dimensions(self._endpoint, variant)),
                    StartTime=self._begin,
                    EndTime=end,
                    Period=60,
                    Statistics=[statistic],
                )["Datapoints"]
            ]
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
