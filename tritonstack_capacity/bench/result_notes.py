"""What is said of a result besides its figures, in lines for a terminal and a page."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tritonstack_capacity.bench.document import EVERY_LOAD, BenchDocument, ResultPart

LATE_SHARE = 0.1
"""Of the median latency: where calls began later than that after they were due, latencies are the generator's too."""


def title(result: ResultPart) -> str:
    """How lines call a result."""
    return f"{result.configuration} ({result.payload_format})"


def where(document: BenchDocument) -> str:
    """On which machine a test ran."""
    told = document.machine
    machine = f"{told['processor']}, {told['cores']} cores, {told['memory']}, load before {told['load_before']}"
    if document.local:
        return f"This machine serves and calls: {machine}. No figure of a GPU."
    return f"Called from {machine}."


def result_notes(result: ResultPart) -> Iterator[str]:
    """Why it ended, its cold starts, what SageMaker measured, and the failure of each load that was most frequent."""
    name = title(result)
    if result.ended_by != EVERY_LOAD:
        yield f"{name}: {result.ended_by}"
    if result.first_call_ms is not None and result.cold is not None:
        times = ", ".join(f"{value:,.0f}" for value in result.cold.milliseconds) or "none"
        yield f"{name}: cold starts {times} ms; first call {result.first_call_ms:,.0f} ms"
    if result.cold is not None and result.cold.failures:
        yield f"{name}: cold starts that failed: {len(result.cold.failures)}, {result.cold.failures[0]}"
    for each in result.endpoint_figures:
        yield (
            f"{name}: {each.metric} p50 {each.p50_ms:.4g}, p95 {each.p95_ms:.4g}, p99 {each.p99_ms:.4g} ms "
            f"of the {each.invocations:,} calls that are counted in those minutes; this test made {result.calls:,}"
        )
    for point in result.points:
        worst = max(point.failures.items(), key=lambda item: item[1], default=None)
        if worst is not None:
            yield f"{name}: {point.load}: {worst[1]} times {worst[0]}"
        if point.all.late_ms > LATE_SHARE * point.all.percentiles_ms.get("50", math.inf):
            yield f"{name}: {point.load}: calls began up to {point.all.late_ms:.3g} ms late (p99): beyond the generator"
