"""The gate: limits of a load test's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tritonstack import aws_names
from tritonstack.config.load_test import GateSettings
from tritonstack_capacity.bench.document import BenchDocument, ResultPart
from tritonstack_capacity.bench.measuring import PointPart, StopConditions
from tritonstack_capacity.csv_file import THIS_MACHINE

SHARE = "95"
LIMITS = StopConditions()
"""Share of failed requests above which a load's figures mean nothing: they are of successful requests alone."""
MILLION = 1_000_000
MINUTES = 60
UsdPerHour = Callable[[str], float | None]
"""Instance type → price of an instance; None where it is unknown."""
DeployedOn = Callable[[str], str | None]
"""A model's name, ``[endpoint/]model`` → the instance type of its endpoint; None where it is not known."""
Verdict = Literal["passed", "failed", "unknown", "beside"]
"""``beside``: of an instance type that is not deployed: reported, not held against the gate."""


@dataclass(frozen=True)
class GateLine:
    """One result against one limit, in words."""

    verdict: Verdict
    sentence: str


def hold(
    document: BenchDocument, gate: GateSettings, *, usd_per_hour: UsdPerHour, deployed_on: DeployedOn = lambda _: None
) -> list[GateLine]:
    """Compare each result with each limit that is set. No result at all fails the gate.

    So does a test that did not complete, and a result that is marked as failed, whatever figures they have.
    Results on the deployed instance type are judged; results on other types are only reported.

    Where ``deployed_on`` (the models' instance types) is None, every result is judged.
    """
    measured_on = {(result.name, result.instance_type) for result in document.results if result.points}
    lines: list[GateLine] = []
    if not document.complete:
        sentence = f"the test of {document.started} did not come to its end: not all that it is of was measured"
        lines.append(GateLine("failed", sentence))
    for result in document.results:
        found = list(_lines(result, gate, usd_per_hour))
        own = deployed_on(result.name)
        another = own is not None and own != result.instance_type and (result.name, own) in measured_on
        if another and result.points and not result.failed:
            found = [GateLine("beside", f"{each.sentence}; it is deployed on {own}") for each in found]
        lines += found
    if not document.results:
        lines.append(GateLine("failed", "there is no result at all"))
    return lines


def passes(lines: Iterable[GateLine], gate: GateSettings) -> bool:
    """Whether nothing failed; an unknown price fails only with ``unknown_price_fails``."""
    return not any(
        line.verdict == "failed" or (line.verdict == "unknown" and gate.unknown_price_fails) for line in lines
    )


def _lines(result: ResultPart, gate: GateSettings, usd_per_hour: UsdPerHour) -> Iterable[GateLine]:
    name = f"{result.configuration} on {result.instance_type} ({result.payload_format})"
    measured = [point for point in result.points if point.per_minute.mean > 0]
    if not measured:
        yield GateLine("failed", f"{name}: nothing was measured: {result.ended_by}")
        return
    if result.failed:
        yield GateLine("failed", f"{name}: its test failed: {result.ended_by}")
    within = [point for point in measured if _within(result, point, gate)]
    if gate.p95_ms is not None:
        yield _latency_line(name, result, within, gate)
    if gate.usd_per_million is not None:
        best = max(within or measured, key=lambda point: point.per_minute.mean)
        yield _cost_line(name, result, best, gate.usd_per_million, usd_per_hour)


def _within(result: ResultPart, point: PointPart, gate: GateSettings) -> bool:
    if LIMITS.too_many_failed(point.all):
        return False
    if gate.p95_ms is None:
        return True
    p95 = p95_of(result, point)
    return p95 is not None and p95 <= gate.p95_ms


def _least(points: list[PointPart]) -> PointPart:
    """The least requested load. Not the least rate: an overloaded endpoint may serve less."""

    def asked(point: PointPart) -> float:
        # Where a load is neither users nor a rate, all are equal, and the first is taken.
        return point.users or point.rate_per_second or 0.0

    return min(points, key=asked)


def _latency_line(name: str, result: ResultPart, within: list[PointPart], gate: GateSettings) -> GateLine:
    """The limit holds at the load that the gate names, or at the least that was measured."""
    limit = gate.p95_ms or 0.0
    wanted = gate.per_minute
    if not [point for point in result.points if p95_of(result, point) is not None]:
        return GateLine("failed", f"{name}: no 95th percentile is known of it: {result.ended_by}")
    if wanted is None:
        point = _least(result.points)
        if LIMITS.too_many_failed(point.all):
            return _too_many_failed(name, point)
        p95 = p95_of(result, point)
        good = p95 is not None and p95 <= limit
        found = "unknown" if p95 is None else f"{p95:,.1f} ms"
        sentence = f"{name}: p95 {found} at {point.per_minute.mean:,.0f} a minute; {limit:g} ms allowed"
        return GateLine("passed" if good else "failed", sentence)
    best = max((point.per_minute.mean / result.instance_count for point in within), default=0.0)
    sentence = (
        f"{name}: {best:,.0f} a minute and instance within a p95 of {limit:g} ms; {wanted:,.0f} wanted"
        if within
        else f"{name}: no load was served within a p95 of {limit:g} ms"
    )
    return GateLine("passed" if best >= wanted else "failed", sentence)


def _too_many_failed(name: str, point: PointPart) -> GateLine:
    calls = point.all.answered + point.all.failed
    sentence = (
        f"{name}: {point.all.failed:,} of {calls:,} requests failed at {point.load}; "
        f"{LIMITS.failed_share:.0%} may, for its figures to mean anything"
    )
    return GateLine("failed", sentence)


def _cost_line(name: str, result: ResultPart, point: PointPart, limit: float, usd_per_hour: UsdPerHour) -> GateLine:
    if LIMITS.too_many_failed(point.all):
        return _too_many_failed(name, point)
    price = None if result.instance_type == THIS_MACHINE else usd_per_hour(result.instance_type)
    if price is None:
        sentence = f"{name}: no source gives a price of {result.instance_type}, so its cost is unknown"
        return GateLine("unknown", sentence)
    cost = price * result.instance_count / (point.per_minute.mean * MINUTES) * MILLION
    sentence = f"{name}: {cost:,.2f} USD a million at {point.per_minute.mean:,.0f} a minute; {limit:g} USD allowed"
    return GateLine("passed" if cost <= limit else "failed", sentence)


def p95_of(result: ResultPart, point: PointPart) -> float | None:
    """A load's 95th percentile end to end, milliseconds; else what CloudWatch has of the model over the whole test."""
    found = point.all.percentiles_ms.get(SHARE)
    if found is not None:
        return found
    return next((each.p95_ms for each in result.endpoint_figures if each.metric == aws_names.MODEL_LATENCY), None)
