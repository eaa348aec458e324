"""From the answers of Inference Recommender to the files of ``tritonstack capacity bench``: a document and a table."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .measured import endpoint_figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plan import Plan
    from .services import Clients

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
)
"""Of the published load test's table, which ``tritonstack capacity size --measurements`` reads."""


def gathered(plan: Plan, described: Described, clients: Clients, *, complete: bool) -> tuple[dict[str, Any], list[str]]:
    """The document, and what went wrong, a sentence a job."""
    results: list[dict[str, Any]] = []
    failed: list[str] = []
    for job in plan["jobs"]:
        answer = described[job["name"]]
        found = list((answer or {}).get("InferenceRecommendations") or ())
        skeleton = plan["results"][job["configuration"]]
        ended_by = _ended_by(answer)
        if not found:
            failed.append(f"{job['name']} ({configuration(job)} on {job['instance_type'] or 'any'}): {ended_by}")
            missed = {"configuration": configuration(job), "instance_type": job["instance_type"] or "unknown"}
            nobody_asked = answer is not None and answer["Status"] == "FAILED"
            results.append({**skeleton, **missed, "ended_by": ended_by, "failed": nobody_asked})
        for recommendation in found:
            results.append(_result(skeleton, job, recommendation, clients, ended_by=ended_by))
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    return {**plan["document"], "complete": complete, "ended": ended, "results": results}, failed


def configuration(job: Mapping[str, Any]) -> str:
    """How tables call what a job measures: recommendations are told apart from load tests on the same type."""
    name = str(job["configuration"])
    return f"{name} (default job)" if job["job_type"] == "Default" else name


def table(plan: Plan, described: Described) -> str:
    """The table, a line for each recommendation with figures. A price that is not known is left out, never zero."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    written: set[tuple[str, str]] = set()
    for job in plan["jobs"]:
        for each in (described[job["name"]] or {}).get("InferenceRecommendations") or ():
            row = _row(job, each)
            place = (str(row["configuration_name"]), str(row["instance_type"]))
            if row["invocations_per_min_per_instance"] and row["model_latency_as_printed"] and place not in written:
                written.add(place)
                writer.writerow(row)
    return text.getvalue()


def _row(job: Mapping[str, Any], recommendation: Mapping[str, Any]) -> dict[str, Any]:
    metrics, endpoint = recommendation.get("Metrics", {}), recommendation["EndpointConfiguration"]
    count = endpoint.get("InitialInstanceCount", 1)
    cost = metrics.get("CostPerHour") or None
    return {
        "configuration_name": configuration(job),
        "instance_type": endpoint["InstanceType"],
        "initial_instance_count": count,
        "invocations_per_min_per_instance": (metrics.get("MaxInvocations") or 0) / count,
        "model_latency_as_printed": metrics.get("ModelLatency"),
        "cost_per_hour_usd": "" if cost is None else round(cost, 4),
        "implied_hourly_price_usd": "" if cost is None else round(round(cost, 4) / count, 6),
    }


def _result(
    skeleton: Mapping[str, Any],
    job: Mapping[str, Any],
    recommendation: Mapping[str, Any],
    clients: Clients,
    *,
    ended_by: str,
) -> dict[str, Any]:
    endpoint = recommendation["EndpointConfiguration"]
    figures, refused = endpoint_figures(recommendation, clients.cloudwatch)
    return {
        **skeleton,
        "configuration": configuration(job),
        "endpoint": endpoint["EndpointName"],
        "variant": endpoint["VariantName"],
        "instance_type": endpoint["InstanceType"],
        "instance_count": endpoint.get("InitialInstanceCount", 1),
        "points": [_point(job, recommendation)],
        "endpoint_figures": figures,
        "ended_by": f"{ended_by}; CloudWatch told no figures: {refused}" if refused else ended_by,
    }


def _point(job: Mapping[str, Any], recommendation: Mapping[str, Any]) -> dict[str, Any]:
    """The one load that Inference Recommender tells of: the most invocations a minute, and the latency there.

    Of which calls the latency is the share, it does not say: no percentile and no mean is claimed. It tells no count
    of answers either, so that is nought; CloudWatch's count is in the endpoint's figures.
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


def _ended_by(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return "it was never started"
    reason = answer.get("FailureReason")
    status = str(answer["Status"])
    return f"{status}: {reason}" if reason else status
