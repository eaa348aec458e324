"""What CloudWatch has of a job's endpoint: its percentiles, which Inference Recommender does not tell."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_cloudwatch.client import CloudWatchClient

NAMESPACE = "AWS/SageMaker"
METRICS = ("ModelLatency", "OverheadLatency")
"""In microseconds (developer guide: "Endpoint invocation metrics")."""
SHARES = ("p50", "p95", "p99")
MINUTE = 60


def endpoint_figures(
    recommendation: Mapping[str, Any], cloudwatch: CloudWatchClient
) -> tuple[list[dict[str, Any]], str]:
    """Each metric over the whole test, milliseconds, and why CloudWatch refused to tell them, or "".

    There are none where CloudWatch has none, refuses, or the time is unknown: what the job itself told is kept then.
    """
    try:
        return _endpoint_figures(recommendation, cloudwatch), ""
    except (BotoCoreError, ClientError) as error:
        return [], str(error)


def _endpoint_figures(recommendation: Mapping[str, Any], cloudwatch: CloudWatchClient) -> list[dict[str, Any]]:
    began, ended = recommendation.get("InvocationStartTime"), recommendation.get("InvocationEndTime")
    if began is None or ended is None:
        return []
    endpoint = recommendation["EndpointConfiguration"]
    # CloudWatch keeps a minute's figures under its first second, and leaves out what bears the end's own time.
    began, ended = _minute(began.timestamp(), math.floor), _minute(ended.timestamp() + 1, math.ceil)
    question: dict[str, Any] = {
        "Namespace": NAMESPACE,
        "Dimensions": [
            {"Name": "EndpointName", "Value": endpoint["EndpointName"]},
            {"Name": "VariantName", "Value": endpoint["VariantName"]},
        ],
        "StartTime": began,
        "EndTime": ended,
        "Period": max(MINUTE, int((ended - began).total_seconds())),
    }
    found = (_figures(name, question, cloudwatch) for name in METRICS)
    return [each for each in found if each is not None]


def _minute(seconds: float, rounded: Callable[[float], int]) -> datetime:
    return datetime.fromtimestamp(rounded(seconds / MINUTE) * MINUTE, tz=UTC)


def _figures(metric: str, question: dict[str, Any], cloudwatch: CloudWatchClient) -> dict[str, Any] | None:
    """One period covers the test; where its bounds cut it in two, the part with more calls is taken."""
    plain = cloudwatch.get_metric_statistics(**question, MetricName=metric, Statistics=["Average", "SampleCount"])
    shares = cloudwatch.get_metric_statistics(**question, MetricName=metric, ExtendedStatistics=list(SHARES))
    if not plain["Datapoints"] or not shares["Datapoints"]:
        return None
    point = max(plain["Datapoints"], key=lambda each: each["SampleCount"])
    extended = next(
        (each for each in shares["Datapoints"] if each["Timestamp"] == point["Timestamp"]), shares["Datapoints"][0]
    )["ExtendedStatistics"]
    return {
        "metric": metric,
        "invocations": int(point["SampleCount"]),
        "mean_ms": point["Average"] / 1000,
        **{f"{share}_ms": extended[share] / 1000 for share in SHARES},
    }
