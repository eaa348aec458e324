"""What Triton itself counted of a model, read from its metrics endpoint before and after.

Source of the names: Triton's user guide, «Metrics», inference request metrics; durations are cumulative microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINE = re.compile(r"^(nv_inference_\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_MODEL = re.compile(r'model="([^"]*)"')
Counters = Mapping[tuple[str, str], float]
"""(metric, Triton model) → value."""


@dataclass(frozen=True, kw_only=True)
class ServerFigures:
    """Of the answered requests of some time, of one Triton model; milliseconds a request.

    Attributes:
        model: Triton's name for it.
        requests: that were answered.
        mean_batch: inferences in one execution: above 1 where dynamic batching merges requests.
        request_ms: from the server's first byte to its answer.
        queue_ms: waiting for an instance, or for a batch to fill.
        input_ms, compute_ms, output_ms: copying in, running, copying out.
    """

    model: str
    requests: int
    mean_batch: float
    request_ms: float
    queue_ms: float
    input_ms: float
    compute_ms: float
    output_ms: float


def read_counters(text: str) -> dict[tuple[str, str], float]:
    """The inference counters in Prometheus' text format; of several versions of a model the sum."""
    found: dict[tuple[str, str], float] = {}
    for metric, labels, value in _LINE.findall(text):
        model = _MODEL.search(labels)
        if model is not None:
            key = metric, model[1]
            found[key] = found.get(key, 0.0) + float(value)
    return found


def between(before: Counters, after: Counters) -> tuple[ServerFigures, ...]:
    """What was counted between two readings, for each model that answered anything, the busiest first."""
    found = []
    for model in sorted({name for metric, name in after if metric == "nv_inference_request_success"}):
        gained = {
            metric: after[metric, name] - before.get((metric, name), 0.0) for metric, name in after if name == model
        }
        requests, runs = gained["nv_inference_request_success"], gained.get("nv_inference_exec_count", 0.0)
        if requests <= 0:
            continue

        def each(part: str, gained: dict[str, float] = gained, requests: float = requests) -> float:
            return gained.get(f"nv_inference_{part}_duration_us", 0.0) / requests / 1000

        found.append(
            ServerFigures(
                model=model,
                requests=int(requests),
                mean_batch=gained.get("nv_inference_count", 0.0) / runs if runs else 0.0,
                request_ms=each("request"),
                queue_ms=each("queue"),
                input_ms=each("compute_input"),
                compute_ms=each("compute_infer"),
                output_ms=each("compute_output"),
            )
        )
    return tuple(sorted(found, key=lambda one: -one.requests))
