"""The answer as JSON: the same bytes for the same scenario and seed."""

from __future__ import annotations

from typing import Any

from tritonstack_capacity.simulation.answer import Answer
from tritonstack_capacity.simulation.comparison import Comparison
from tritonstack_capacity.simulation.figures import Latencies
from tritonstack_capacity.simulation.holding import Holding

FORMAT = 1


def answer_document(found: Answer) -> dict[str, Any]:
    """Plain values. Times are seconds, latencies milliseconds; null is unknown, never zero."""
    calls, loads, cost = found.calls, found.loads, found.cost
    course = found.course
    return {
        "format": FORMAT,
        "seed": found.seed,
        "description": found.scenario.description,
        "seconds": found.trace.seconds,
        "models": len(found.models),
        "calls": {
            "simulated": len(found.trace),
            "counted": calls.calls,
            "hits": calls.hits,
            "waited_for_a_load": calls.waited,
            "loaded_from_disk": calls.from_disk,
            "downloaded": calls.downloaded,
            "hit_ratio": calls.hit_ratio,
            "longer_than_60_s": calls.late,
        },
        "latency_ms": {"all": _latencies(calls.everyone), "warm": _latencies(calls.warm)},
        "latency_limit": None
        if found.scenario.latency_limit_ms is None
        else {"ms": found.scenario.latency_limit_ms, "kept": found.keeps_limit},
        "loads": {
            "loads": loads.loads,
            "evictions": loads.evictions,
            "per_minute": loads.loads_per_minute,
            "peak_per_minute": loads.peak_loads_per_minute,
            "again": loads.again,
            "again_within_seconds": loads.thrash_seconds,
        },
        "instances": {
            **dict(zip(("least", "mean", "greatest"), found.instances, strict=True)),
            "changes": [
                {"seconds": each.seconds, "serving": each.serving, "paid": each.paid} for each in found.happening.fleet
            ],
            "busiest_minute": found.busiest,
        },
        "cost_usd": {
            "instance_hour": cost.usd_per_hour,
            "source": cost.source,
            "instance_hours": cost.instance_hours,
            "total": cost.total,
            "mean_hour": cost.mean_per_hour,
            "per_million_calls": cost.per_million,
        },
        "holding": {
            "simulated_mean": None if found.held is None else found.held[0],
            "simulated_most": None if found.held is None else found.held[1],
            "in_the_long_run": None if found.holding is None else _holding(found.holding),
            "against_simulation": _compared(found.compared),
        },
        "split": _split(found),
        "assumptions": list(found.assumptions),
        "sources": [{"figure": each.figure, "value": each.value, "origin": each.origin} for each in found.sources],
        "over_time": {
            "period_seconds": course.period,
            "calls_per_minute": course.calls,
            "hit_percent": course.hit_ratio,
            "loads_per_minute": course.loads,
            "loads_again_per_minute": course.thrash,
            "p50_ms": course.median,
            "p95_ms": course.p95,
            "warm_p95_ms": course.warm_p95,
            "models_held": course.held,
        },
    }


def _latencies(each: Latencies) -> dict[str, Any]:
    values = {f"p{percent}": value for percent, value in each.percentiles.items()}
    return {"calls": each.count, "mean": each.mean, **values, "greatest": each.greatest}


def _holding(found: Holding) -> dict[str, Any]:
    """By Che's approximation."""
    return {
        "models": found.models,
        "hit_ratio": found.hit_ratio,
        "is_upper_bound": found.at_most,
        "bound_by": found.bound,
        "hit_ratio_by_size": [{"times": scale, "hit_ratio": ratio} for scale, ratio in found.by_memory],
    }


def _compared(found: Comparison | None) -> dict[str, Any] | None:
    """Null where too few calls tell it."""
    if found is None:
        return None
    return {
        "calls": found.calls,
        "simulated_hit_ratio": found.simulated,
        "estimated_hit_ratio": found.estimated,
        "agrees": found.agrees,
    }


def _split(found: Answer) -> dict[str, Any] | None:
    advice, decided, replayed = found.split, found.verdict, found.replayed
    if advice is None or decided is None:
        return None
    price = found.cost.usd_per_hour
    best = advice.best
    return {
        "worth_while": decided.worth_while,
        "decided_by": "simulation" if decided.simulated else "estimate",
        "instances": advice.instances,
        "usd_per_hour": None if price is None else price * advice.instances,
        "one_endpoint_hit_ratio": advice.one,
        "best": None
        if best is None
        else {
            "hot_models": best.hot_models,
            "hot_instances": best.hot_instances,
            "cold_instances": best.cold_instances,
            "hit_ratio": best.hit_ratio,
        },
        "same_hit_ratio_with_instances": None if decided.fewer is None else decided.fewer.instances,
        "hit_ratio_by_hot_models": [{"hot_models": cut, "hit_ratio": ratio} for cut, ratio in advice.by_cut],
        "simulated": None
        if replayed is None
        else {
            "one_endpoint_hit_ratio": replayed.one,
            "split_hit_ratio": replayed.split,
            "fewer_instances_one_endpoint_hit_ratio": replayed.fewer_one,
            "fewer_instances_split_hit_ratio": replayed.fewer,
        },
    }
