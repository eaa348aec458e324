"""The result of a simulation as JSON, the same bytes for the same scenario and seed, and in sentences."""

from __future__ import annotations

from typing import Any

from tritonstack_capacity.simulation.hit_ratio import SteadyState
from tritonstack_capacity.simulation.result import Latencies, SimulationResult
from tritonstack_capacity.simulation.split import BUSIEST, MOST_SIMULATED, SplitAdvice

FORMAT = 3


def about(found: SimulationResult) -> str:
    """The simulated fleet and requests, and the part that is counted."""
    warm_up = found.scenario.warm_up_minutes
    counted = f", of which {found.calls.calls:,} after {warm_up:g} min of warm-up are counted" if warm_up else ""
    minutes = found.trace.seconds / 60
    return f"{len(found.trace):,} requests of {len(found.models):,} models in {minutes:,.1f} min{counted}"


def sentences(found: SimulationResult) -> list[str]:
    """Limit, instances, cost, loads, models on an instance, and whether to split."""
    loads, calls = found.loads, found.calls
    least, mean, greatest = found.instances
    cached = found.scenario.model_cache == "enabled"
    lines = []
    if found.keeps_limit is not None:
        word = "is kept" if found.keeps_limit else "is not kept"
        lines.append(
            f"the limit of {found.scenario.latency_limit_ms:,g} ms {word}: 95 % of the requests within "
            f"{calls.everyone.percentiles[95]:,.0f} ms"
        )
    if calls.late:
        lines.append(f"{calls.late:,} requests take longer than 60 s: SageMaker would have responded with an error")
    count = f"{least}" if least == greatest else f"{least} to {greatest}, on average {mean:.2f}"
    lines.append(f"instances: {count}; the busiest minute takes {100 * found.busiest:.0f} % of what they can execute")
    if found.busiest > 1:
        lines.append("that is too much: requests pile up, and latency is as long as the overload lasts")
    lines.append(_cost(found))
    gone = ("evictions", "evicted") if cached else ("unloads", "unloaded")
    again = f"{loads.again:,} loads of a model that was {gone[1]} less than {loads.thrash_seconds:g} s before"
    rate = f"{loads.loads_per_minute:,.1f} a minute (at most {loads.peak_loads_per_minute:,})"
    thrash = " (thrash)" if cached else ""
    lines.append(f"{loads.loads:,} loads, {rate}, {loads.evictions:,} {gone[0]}; {again}{thrash}")
    if found.steady is not None:
        lines += _steady(found, found.steady)
    if cached:
        lines.append(_split(found))
    return lines


def _steady(found: SimulationResult, steady: SteadyState) -> list[str]:
    held = "" if found.held is None else f"{found.held[0]:,.1f} on average, at most {found.held[1]:,.1f}; "
    limit = "all models fit" if steady.limited_by is None else f"limited by {steady.limited_by}"
    simulated = "" if found.calls.hit_ratio is None else f", {100 * found.calls.hit_ratio:.2f} % simulated"
    most, once = ("at most ", ", as if no model were loaded twice") if steady.is_upper_bound else ("", "")
    lines = [
        f"models on an instance: {held}{steady.models:,.1f} estimated in the long run ({limit})",
        f"hit ratio: {most}{100 * steady.hit_ratio:.2f} % estimated in the long run{once}{simulated}",
    ]
    if found.estimate_agrees is False:
        lines.append(
            "the two hit ratios differ: the estimate (Che's approximation, tritonstack docs simulate) takes loads as "
            "done at once, caches as full, requests as independent and the number of instances as fixed"
        )
    return lines


def _split(found: SimulationResult) -> str:
    advice = found.split
    if advice is None:
        return "two endpoints: one model is requested, there is nothing to split"
    best = advice.best
    if best is None:
        return (
            f"two endpoints: not with {_instances(advice.instances)}: however they are divided, one side is more than "
            f"{100 * BUSIEST:.0f} % busy"
        )
    verdict = "split" if advice.worth_while else "do not split"
    one, both = advice.simulated or (advice.one, best.hit_ratio)
    how = "simulated" if advice.simulated else f"estimated only: more than {MOST_SIMULATED:,} requests"
    price = found.cost.usd_per_hour
    cost = "price unknown" if price is None else f"{price * advice.instances:,.2f} USD an hour"
    return (
        f"{verdict} the models over two endpoints: the hottest {best.hot_models:,} on {_instances(best.hot_instances)} "
        f"and the others on {_instances(best.cold_instances)} have {100 * both:.2f} % hits, one endpoint has "
        f"{100 * one:.2f} % ({how}); both with {_instances(advice.instances)}, {cost}"
    )


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count:,} instances"


def _cost(found: SimulationResult) -> str:
    cost = found.cost
    if cost.total is None or cost.mean_per_hour is None:
        return f"cost: unknown ({cost.source}); {cost.instance_hours:,.2f} instance hours"
    million = "unknown" if cost.per_million is None else f"{cost.per_million:,.2f}"
    return (
        f"cost: {cost.total:,.2f} USD for {cost.instance_hours:,.2f} instance hours, {cost.mean_per_hour:,.2f} an hour"
        f", {million} a million requests (price: {cost.source})"
    )


def result_document(found: SimulationResult) -> dict[str, Any]:
    """Plain values. Times are seconds, latencies milliseconds; null is unknown, never zero."""
    calls, loads, cost = found.calls, found.loads, found.cost
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
        "models_on_an_instance": None if found.held is None else dict(zip(("mean", "most"), found.held, strict=True)),
        "steady_state": None if found.steady is None else _steady_document(found, found.steady),
        "split": None if found.split is None else _split_document(found.split),
        "assumptions": list(found.assumptions),
        "over_time": {name: values for name, values in vars(found.course).items() if name not in ("serving", "paid")},
    }


def _latencies(each: Latencies) -> dict[str, Any]:
    values = {f"p{percent}": value for percent, value in each.percentiles.items()}
    return {"calls": each.count, "mean": each.mean, **values, "greatest": each.greatest}


def _steady_document(found: SimulationResult, steady: SteadyState) -> dict[str, Any]:
    """The steady state by Che's approximation."""
    return {
        "models": steady.models,
        "hit_ratio": steady.hit_ratio,
        "is_upper_bound": steady.is_upper_bound,
        "limited_by": steady.limited_by,
        "agrees_with_simulation": found.estimate_agrees,
        "hit_ratio_by_size": [{"times": size, "hit_ratio": ratio} for size, ratio in steady.by_size],
    }


def _split_document(advice: SplitAdvice) -> dict[str, Any]:
    best = advice.best
    simulated = None
    if advice.simulated is not None:
        simulated = dict(zip(("one_endpoint_hit_ratio", "split_hit_ratio"), advice.simulated, strict=True))
    return {
        "worth_while": advice.worth_while,
        "decided_by": "estimate" if simulated is None else "simulation",
        "instances": advice.instances,
        "one_endpoint_hit_ratio": advice.one,
        "best": None
        if best is None
        else {
            "hot_models": best.hot_models,
            "hot_instances": best.hot_instances,
            "cold_instances": best.cold_instances,
            "hit_ratio": best.hit_ratio,
        },
        "simulated": simulated,
        "hit_ratio_by_hot_models": [
            {"hot_models": each.hot_models, "hit_ratio": each.hit_ratio} for each in advice.splits
        ],
    }
