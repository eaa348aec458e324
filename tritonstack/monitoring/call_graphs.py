"""Graphs of calls: how many, how many of them failed, how long they took."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import aws_names
from tritonstack.monitoring.graph import Graph
from tritonstack.monitoring.metric import Metric, Series
from tritonstack.monitoring.variant import Variant

ERRORS = {
    aws_names.INVOCATION_4XX_ERRORS: ("errors4xx", "4XX: refused"),
    aws_names.INVOCATION_5XX_ERRORS: ("errors5xx", "5XX: failed"),
    aws_names.INVOCATION_MODEL_ERRORS: ("model_errors", "the container's own answers"),
}
PERCENTILES = ("p50", "p90", "p99")


def call_graphs(variant: Variant) -> Iterator[Graph]:
    """Traffic, errors, latency and overhead, which every endpoint has."""
    invocations = variant.calls(aws_names.INVOCATIONS, "Sum")
    yield Graph(
        key="traffic",
        title="Calls",
        unit="calls/s",
        series=(
            Series(
                key="calls",
                label="calls a second",
                metrics={"invocations": invocations},
                expression="invocations / PERIOD(invocations)",
            ),
        ),
    )
    yield Graph(
        key="concurrency",
        title="Calls in progress",
        unit="calls",
        series=(
            Series.of(
                "concurrent", "most at one moment", variant.calls(aws_names.CONCURRENT_REQUESTS_PER_MODEL, "Maximum")
            ),
        ),
    )
    yield Graph(
        key="errors",
        title="Errors",
        unit="% of calls",
        series=tuple(
            Series(
                key=key,
                label=label,
                metrics={f"sum_{key}": variant.calls(name, "Sum"), "invocations": invocations},
                expression=f"100 * sum_{key} / invocations",
            )
            for name, (key, label) in ERRORS.items()
        ),
    )
    yield Graph(
        key="latency",
        title="Model latency",
        unit="ms",
        series=tuple(
            milliseconds(each, f"{each} in the model", variant.calls(aws_names.MODEL_LATENCY, each))
            for each in PERCENTILES
        ),
    )
    yield Graph(
        key="overhead",
        title="Overhead of SageMaker",
        unit="ms",
        series=(
            milliseconds("average", "average", variant.calls(aws_names.OVERHEAD_LATENCY, "Average")),
            milliseconds("maximum", "maximum", variant.calls(aws_names.OVERHEAD_LATENCY, "Maximum")),
        ),
    )


def milliseconds(key: str, label: str, metric: Metric) -> Series:
    """A metric in microseconds as a line in milliseconds."""
    return Series(key=key, label=label, metrics={f"us_{key}": metric}, expression=f"us_{key} / 1000")
