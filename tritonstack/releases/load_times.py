"""How long the models of a multi-model endpoint took to load, as CloudWatch has kept it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.aws_session import Session
from tritonstack.monitoring.metric import Metric, Series, queries

DAYS = 14
HOUR = 3600
MICROSECONDS = 1e6
PARTS = {"download": aws_names.MODEL_DOWNLOADING_TIME, "load": aws_names.MODEL_LOADING_TIME}
"""A model that is not on an instance is downloaded, then loaded (developer guide, multi-model metrics)."""


@dataclass(frozen=True, kw_only=True)
class LoadTimes:
    """The slowest of the last two weeks, seconds; downloads and loads may be those of two models.

    Attributes:
        download: None where no download was measured.
        load: None where no load was measured.
        problem: why they could not be read; empty where they could.
    """

    download: float | None = None
    load: float | None = None
    problem: str = ""

    @property
    def slowest(self) -> float | None:
        """What a call may have waited for its model at most; None where nothing was measured."""
        found = [part for part in (self.download, self.load) if part is not None]
        return sum(found) if found else None


def load_times(
    session: Session, *, endpoint_name: str, variants: list[str], now: Callable[[], float] = time.time
) -> LoadTimes:
    """The slowest download and load of an endpoint's variants. A refusal is told, not raised: it is a figure more.

    Args:
        session: makes the client of CloudWatch.
        endpoint_name: the endpoint's name at SageMaker.
        variants: the names of its production variants.
        now: seconds since 1970.
    """
    series = [
        Series.of(f"{key}{number}", name, _metric(name, endpoint_name=endpoint_name, variant=variant))
        for number, variant in enumerate(variants)
        for key, name in PARTS.items()
    ]
    if not series:
        return LoadTimes()
    end = now()
    try:
        pages = (
            session.client("cloudwatch")
            .get_paginator("get_metric_data")
            .paginate(
                MetricDataQueries=queries(series, period=HOUR), StartTime=end - DAYS * 24 * HOUR, EndTime=end + HOUR
            )
        )
        results = [result for page in pages for result in page["MetricDataResults"]]
    except (ClientError, BotoCoreError) as error:
        return LoadTimes(problem=" ".join(str(error).split()))
    return LoadTimes(download=_slowest(results, "download"), load=_slowest(results, "load"))


def _metric(name: str, *, endpoint_name: str, variant: str) -> Metric:
    dimensions = tuple(aws_names.variant_dimensions(endpoint_name, variant).items())
    return Metric(namespace=aws_names.SAGEMAKER, name=name, dimensions=dimensions, statistic="Maximum")


def _slowest(results: list[Mapping[str, Any]], key: str) -> float | None:
    values = [value for result in results if result["Id"].startswith(key) for value in result["Values"]]
    return max(values) / MICROSECONDS if values else None
