"""Results of Inference Recommender and CloudWatch as the document and the table of ``tritonstack capacity bench``."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ..shared.clients import Aws
from .feeding import parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_cloudwatch.client import CloudWatchClient

    from .objects import Settings

    Described = Mapping[str, Mapping[str, Any] | None]

GENERATOR = "SageMaker Inference Recommender"
COLUMNS = (
    "configuration_name",
    "instance_type",
    "initial_instance_count",
    "invocations_per_min_per_instance",
    "model_latency_as_printed",
    "cost_per_hour_usd",
    "implied_hourly_price_usd",
    "cpu_utilization",
    "memory_utilization",
    "gpu_utilization",
    "gpu_memory_utilization",
)
"""Of the published load test's table, which ``tritonstack capacity size --measurements`` reads; utilization in per
cent as in the table of ``capacity bench``."""
EXPECTED = {"cpu_percent": "CpuUtilization", "memory_percent": "MemoryUtilization"}
"""What Inference Recommender reports, NaN where it has none (API reference: RecommendationMetrics)."""
INSTANCES = "/aws/sagemaker/Endpoints"
OF_INSTANCES = {
    "cpu_percent": "CPUUtilization",
    "memory_percent": "MemoryUtilization",
    "gpu_percent": "GPUUtilization",
    "gpu_memory_percent": "GPUMemoryUtilization",
}
"""What each instance of the job's endpoint writes to CloudWatch once a minute."""
NAMESPACE = "AWS/SageMaker"
METRICS = ("ModelLatency", "OverheadLatency")
"""In microseconds (developer guide: "Endpoint invocation metrics")."""
PERCENTILES = ("p50", "p95", "p99")
MINUTE = 60


def gathered(
    settings: Settings, described: Described, aws: Aws, *, complete: bool, not_started: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """The document, and the failures, a sentence a job. ``not_started``: job → why it could not be started."""
    results: list[dict[str, Any]] = []
    failed: list[str] = []
    for job in settings["jobs"]:
        description = described[job["name"]]
        found = list((description or {}).get("InferenceRecommendations") or ())
        skeleton = settings["results"][job["configuration"]]
        ended_by = _ended_by(description, why=not_started.get(job["name"]))
        if not found:
            failed.append(f"{job['name']} ({configuration(job)} on {job['instance_type'] or 'any'}): {ended_by}")
            missed = {"configuration": configuration(job), "instance_type": job["instance_type"] or "unknown"}
            failed_itself = job["name"] in not_started or (
                description is not None and description["Status"] == "FAILED"
            )
            results.append({**skeleton, **missed, "ended_by": ended_by, "failed": failed_itself})
        for recommendation in found:
            name = measured_name(job, recommendation, found)
            results.append(_result(skeleton, job, recommendation, aws, name=name, ended_by=ended_by))
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    return {**settings["document"], "complete": complete, "ended": ended, "results": results}, failed


def configuration(job: Mapping[str, Any]) -> str:
    """A job's configuration in tables: a recommendation differs from a load test on the same type."""
    name = str(job["configuration"])
    return f"{name} (default job)" if job["job_type"] == "Default" else name


def measured_name(
    job: Mapping[str, Any], recommendation: Mapping[str, Any], all_of_job: list[Mapping[str, Any]]
) -> str:
    """The configuration's name in tables; with the container parameters that tell tests of one job and type apart."""
    instance_type = recommendation["EndpointConfiguration"].get("InstanceType")
    same = [one for one in all_of_job if one["EndpointConfiguration"].get("InstanceType") == instance_type]
    parameters = [parameters_of(one) for one in same]
    own = parameters_of(recommendation)
    differing = [name for name in own if len({each.get(name) for each in parameters}) > 1]
    return " ".join([configuration(job), *(f"{name}={own[name]}" for name in differing)])


def table(settings: Settings, described: Described, document: Mapping[str, Any]) -> str:
    """The table, a line for each recommendation with figures. An unknown price is left out, never zero.

    A default job whose recommendation a load test of the same configuration and type has measured has no line: it has
    chosen what that one is run with. ``document``: what :func:`gathered` found, for the utilization.
    """
    used = {each["endpoint"]: each["points"][0]["utilization"] for each in document["results"] if each["points"]}
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    rows: dict[tuple[str, str], tuple[Mapping[str, Any], dict[str, Any]]] = {}
    for job in settings["jobs"]:
        found = list((described[job["name"]] or {}).get("InferenceRecommendations") or ())
        for each in found:
            utilization = used.get(each["EndpointConfiguration"]["EndpointName"]) or {}
            row = _row(measured_name(job, each, found), each, utilization)
            if row["invocations_per_min_per_instance"] and row["model_latency_as_printed"]:
                rows.setdefault((str(row["configuration_name"]), str(row["instance_type"])), (job, row))
    measured = {
        (job["configuration"], row["instance_type"]) for job, row in rows.values() if job["job_type"] == "Advanced"
    }
    for job, row in rows.values():
        if job["job_type"] == "Advanced" or (job["configuration"], row["instance_type"]) not in measured:
            writer.writerow(row)
    return text.getvalue()


def _row(name: str, recommendation: Mapping[str, Any], utilization: Mapping[str, Any]) -> dict[str, Any]:
    metrics, endpoint = recommendation.get("Metrics", {}), recommendation["EndpointConfiguration"]
    count = endpoint.get("InitialInstanceCount", 1)
    cost = metrics.get("CostPerHour") or None
    return {
        "configuration_name": name,
        "instance_type": endpoint["InstanceType"],
        "initial_instance_count": count,
        "invocations_per_min_per_instance": (metrics.get("MaxInvocations") or 0) / count,
        "model_latency_as_printed": metrics.get("ModelLatency"),
        "cost_per_hour_usd": "" if cost is None else round(cost, 4),
        "implied_hourly_price_usd": "" if cost is None else round(round(cost, 4) / count, 6),
        **{
            name: "" if (value := utilization.get(name.replace("_utilization", "_percent"))) is None else value
            for name in COLUMNS
            if name.endswith("_utilization")
        },
    }


def _result(
    skeleton: Mapping[str, Any],
    job: Mapping[str, Any],
    recommendation: Mapping[str, Any],
    aws: Aws,
    *,
    name: str,
    ended_by: str,
) -> dict[str, Any]:
    endpoint = recommendation["EndpointConfiguration"]
    figures, refused = endpoint_figures(recommendation, aws.cloudwatch)
    highest = {} if refused else _highest_minute(recommendation, aws.cloudwatch)
    point = {**_point(job, recommendation), "utilization": _utilization(recommendation, highest)}
    return {
        **skeleton,
        "configuration": name,
        "container_parameters": parameters_of(recommendation),
        "endpoint": endpoint["EndpointName"],
        "variant": endpoint["VariantName"],
        "instance_type": endpoint["InstanceType"],
        "instance_count": endpoint.get("InitialInstanceCount", 1),
        "points": [point],
        "endpoint_figures": figures,
        "utilization": {"source": "CloudWatch", **highest} if highest else None,
        "ended_by": f"{ended_by}; CloudWatch returned no figures: {refused}" if refused else ended_by,
    }


def _point(job: Mapping[str, Any], recommendation: Mapping[str, Any]) -> dict[str, Any]:
    """The one load that Inference Recommender reports: the most invocations a minute, and the latency there.

    It does not document which statistic the latency is: no percentile and no mean is claimed. It reports no number of
    responses either, so that is 0; CloudWatch's is in the endpoint's figures.
    """
    metrics = recommendation.get("Metrics", {})
    rate, latency = float(metrics.get("MaxInvocations") or 0), metrics.get("ModelLatency")
    figures: dict[str, Any] = {
        "seconds": _seconds(recommendation),
        "answered": 0,
        "failed": 0,
        "per_minute": rate,
        "mean_ms": None,
        "least_ms": None,
        "most_ms": None,
        "percentiles_ms": {},
        "late_ms": 0.0,
    }
    return {
        "load": job["load"],
        "users": None,
        "rate_per_second": None,
        "stable": False,
        "per_minute": {"mean": rate, "half_width": None},
        "latency_ms": None if latency is None else {"mean": float(latency), "half_width": None},
        "all": figures,
        "rounds": [],
        "failures": {},
        "server": [],
    }


def _seconds(recommendation: Mapping[str, Any]) -> float:
    began, ended = recommendation.get("InvocationStartTime"), recommendation.get("InvocationEndTime")
    return 0.0 if began is None or ended is None else float((ended - began).total_seconds())


def _ended_by(description: Mapping[str, Any] | None, *, why: str | None) -> str:
    if description is None:
        return "never started" if why is None else f"could not be started: {why}"
    reason = description.get("FailureReason")
    status = str(description["Status"])
    return f"{status}: {reason}" if reason else status


def endpoint_figures(
    recommendation: Mapping[str, Any], cloudwatch: CloudWatchClient
) -> tuple[list[dict[str, Any]], str]:
    """Each metric of a job's endpoint over the whole test, milliseconds, and CloudWatch's error, or "".

    These have the percentiles, which Inference Recommender does not report. There are none where CloudWatch has none,
    refuses, or the time is unknown.
    """
    query = _query(recommendation)
    if query is None:
        return [], ""
    seconds = int((query["EndTime"] - query["StartTime"]).total_seconds())
    query |= {"Namespace": NAMESPACE, "Period": max(MINUTE, seconds)}
    try:
        found = [_figures(name, query, cloudwatch) for name in METRICS]
    except (BotoCoreError, ClientError) as error:
        return [], str(error)
    return [each for each in found if each is not None], ""


def _query(recommendation: Mapping[str, Any]) -> dict[str, Any] | None:
    """The endpoint and the whole minutes of a recommendation's test; None where the time is unknown."""
    began, ended = recommendation.get("InvocationStartTime"), recommendation.get("InvocationEndTime")
    if began is None or ended is None:
        return None
    endpoint = recommendation["EndpointConfiguration"]
    return {
        "Dimensions": [
            {"Name": "EndpointName", "Value": endpoint["EndpointName"]},
            {"Name": "VariantName", "Value": endpoint["VariantName"]},
        ],
        # CloudWatch stores a minute's figures under its first second, and excludes the end.
        "StartTime": _minute(began.timestamp(), math.floor),
        "EndTime": _minute(ended.timestamp() + 1, math.ceil),
    }


def _highest_minute(recommendation: Mapping[str, Any], cloudwatch: CloudWatchClient) -> dict[str, float]:
    """The highest minute of each metric of the job's instances; empty where CloudWatch has none, or refuses."""
    query = _query(recommendation)
    found: dict[str, float] = {}
    if query is None:
        return found
    query |= {"Namespace": INSTANCES, "Period": MINUTE, "Statistics": ["Maximum"]}
    for field, metric in OF_INSTANCES.items():
        try:
            points = cloudwatch.get_metric_statistics(**query, MetricName=metric)["Datapoints"]
        except (BotoCoreError, ClientError):
            return {}
        if points:
            found[field] = max(point["Maximum"] for point in points)
    return found


def _utilization(recommendation: Mapping[str, Any], highest: Mapping[str, float]) -> dict[str, Any] | None:
    """Inference Recommender's own at the most invocations; what it does not report is CloudWatch's highest minute."""
    metrics = recommendation.get("Metrics", {})
    expected = {field: metrics.get(name) for field, name in EXPECTED.items()}
    reported = {field: value for field, value in expected.items() if value is not None and math.isfinite(value)}
    more = {field: value for field, value in highest.items() if field not in reported}
    sources = [GENERATOR] * bool(reported) + ["CloudWatch's highest minute"] * bool(more)
    return {"source": ", ".join(sources), **reported, **more} if sources else None


def _minute(seconds: float, rounded: Callable[[float], int]) -> datetime:
    return datetime.fromtimestamp(rounded(seconds / MINUTE) * MINUTE, tz=UTC)


def _figures(metric: str, query: dict[str, Any], cloudwatch: CloudWatchClient) -> dict[str, Any] | None:
    """One period covers the test; where its bounds cut it in two, the part with more requests counts."""
    plain = cloudwatch.get_metric_statistics(**query, MetricName=metric, Statistics=["Average", "SampleCount"])
    percentiles = cloudwatch.get_metric_statistics(**query, MetricName=metric, ExtendedStatistics=list(PERCENTILES))
    if not plain["Datapoints"] or not percentiles["Datapoints"]:
        return None
    point = max(plain["Datapoints"], key=lambda each: each["SampleCount"])
    same_time = [each for each in percentiles["Datapoints"] if each["Timestamp"] == point["Timestamp"]]
    extended = (same_time or percentiles["Datapoints"])[0]["ExtendedStatistics"]
    return {
        "metric": metric,
        "invocations": int(point["SampleCount"]),
        "mean_ms": point["Average"] / 1000,
        **{f"{each}_ms": extended[each] / 1000 for each in PERCENTILES},
    }
