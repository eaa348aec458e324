"""The answer as JSON, the same bytes for the same scenario and seed, and in sentences."""

from __future__ import annotations

from typing import Any

from tritonstack_capacity.simulation.answer import Answer, Comparison, difference_sentence
from tritonstack_capacity.simulation.che import Holding
from tritonstack_capacity.simulation.figures import Latencies
from tritonstack_capacity.simulation.split import BUSIEST, MOST_REPLAYED, Split, SplitAdvice

UNKNOWN = "unknown"


def about(found: Answer) -> str:
    """What was simulated, and which of it is counted."""
    warm_up = found.scenario.warm_up_minutes
    counted = f", of which {found.calls.calls:,} after {warm_up:g} min of warm-up are counted" if warm_up else ""
    minutes = found.trace.seconds / 60
    return f"{len(found.trace):,} calls of {len(found.models):,} models in {minutes:,.1f} min{counted}"


def sentences(found: Answer) -> list[str]:
    """Loads, limit, instances, cost, and whether to split."""
    loads, calls = found.loads, found.calls
    least, mean, greatest = found.instances
    rate = f"{loads.loads_per_minute:,.1f} a minute (at most {loads.peak_loads_per_minute:,})"
    gone = ("evictions", "evicted") if found.holding is not None else ("unloads", "unloaded")
    again = f"{loads.again:,} loads of a model that was {gone[1]} less than {loads.thrash_seconds:g} s before"
    again += " (thrash)" if found.holding is not None else ""
    lines = [f"{loads.loads:,} loads, {rate}, {loads.evictions:,} {gone[0]}; {again}"]
    if calls.late:
        lines.append(f"{calls.late:,} calls take longer than 60 s: SageMaker would have answered with an error")
    if found.keeps_limit is not None:
        word = "is kept" if found.keeps_limit else "is not kept"
        lines.append(
            f"the limit of {found.scenario.latency_limit_ms:g} ms {word}: 95 % of the calls within "
            f"{calls.everyone.percentiles[95]:,.0f} ms"
        )
    count = f"{least}" if least == greatest else f"{least} to {greatest}, on average {mean:.2f}"
    lines.append(f"instances: {count}; the busiest minute's calls take {100 * found.busiest:.0f} % of what they can do")
    if found.busiest > 1:
        lines.append("that is too much: calls pile up, and latency is as long as the overload lasts")
    if found.loading > 1:
        effect = "models are evicted as soon as they are loaded, and no estimate of hits holds"
        whose = "the fullest instance's container has" if found.scenario.routing == "sticky" else "containers have"
        lines.append(
            f"loads are too much: in the busiest minute they ask for {100 * found.loading:.0f} % of the time that "
            f"{whose} for them; {'calls wait for them' if found.holding is None else effect}"
        )
    lines.append(cost_sentence(found))
    lines.append(split_sentence(found))
    if found.compared is not None and found.holding is not None and not found.compared.agrees:
        changing = least != greatest
        lines.append(difference_sentence(found.compared, copies=found.holding.at_most, changing=changing))
    return lines


def cost_sentence(found: Answer) -> str:
    """What it costs; an unknown price is said."""
    cost = found.cost
    if cost.total is None or cost.mean_per_hour is None:
        return f"cost: unknown ({cost.source}); {cost.instance_hours:,.2f} instance hours"
    million = UNKNOWN if cost.per_million is None else f"{cost.per_million:,.2f}"
    return (
        f"cost: {cost.total:,.2f} USD for {cost.instance_hours:,.2f} instance hours, {cost.mean_per_hour:,.2f} an hour"
        f", {million} a million calls (price: {cost.source})"
    )


def holding_sentence(found: Answer) -> str:
    """How many models an instance holds."""
    if found.holding is None:
        return "models on an instance: each only while it is called, since model_cache is disabled"
    simulated = "" if found.held is None else f"{found.held[0]:,.1f} on average, at most {found.held[1]:,.1f}; "
    held = found.holding
    limit = "all models fit" if held.bound == "nothing" else f"limited by {held.bound}"
    bound = "at most " if held.at_most else ""
    once = ", as if no model were loaded twice" if held.at_most else ""
    return (
        f"models on an instance: {simulated}in the long run {held.models:,.1f} with a hit ratio of {bound}"
        f"{100 * held.hit_ratio:.2f} %, by Che's approximation{once} ({limit})"
    )


def split_sentence(found: Answer) -> str:
    """One endpoint, or two."""
    advice, decided = found.split, found.verdict
    if found.holding is None:
        return "split: nothing to gain, since with model_cache disabled no endpoint keeps a model"
    if advice is None or decided is None:
        return "split: there is one called model, and nothing to split"
    if advice.best is None:
        return (
            f"split: not with {advice.instances} instances: no division keeps both sides at most "
            f"{100 * BUSIEST:.0f} % busy"
        )
    best = advice.best
    same = f"{_instances(advice.instances)}{_price(found, advice)}"
    parts = (
        f"the hottest {best.hot_models:,} on {_instances(best.hot_instances)}, the others on "
        f"{_instances(best.cold_instances)}: {_both_hits(found, advice, best)}, both with {same}"
    )
    if decided.fewer is not None:
        parts += f"; {decided.fewer.instances} instances in a split hit as often as {advice.instances} in one"
    verdict = "split" if decided.worth_while else "do not split"
    return f"{verdict} the models over two endpoints: {parts}"


def _both_hits(found: Answer, advice: SplitAdvice, best: Split) -> str:
    estimated = f"{100 * best.hit_ratio:.2f} % hits against {100 * advice.one:.2f} % of one endpoint"
    replayed = found.replayed
    if replayed is None:
        return f"{estimated} (estimated only: up to {MOST_REPLAYED:,} calls are simulated)"
    return (
        f"{100 * replayed.split:.2f} % hits against {100 * replayed.one:.2f} % of one endpoint (simulated; estimated: "
        f"{100 * best.hit_ratio:.2f} % against {100 * advice.one:.2f} %)"
    )


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count:,} instances"


def _price(found: Answer, advice: SplitAdvice) -> str:
    price = found.cost.usd_per_hour
    return ", price unknown" if price is None else f", {price * advice.instances:,.2f} USD an hour"


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
