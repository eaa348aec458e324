"""Graphs of the models that come and go on a multi-model endpoint."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import aws_names
from tritonstack.monitoring.call_graphs import milliseconds
from tritonstack.monitoring.graph import Graph
from tritonstack.monitoring.metric import Series
from tritonstack.monitoring.variant import Variant


def cache_graphs(variant: Variant) -> Iterator[Graph]:
    """Loaded models, hits, and what a load is made of; nothing for a single model, which is loaded once.

    With the cache disabled every call loads its model: a hit ratio would be 0 and the loaded models the calls in
    progress, so that neither is shown.
    """
    if not variant.settings.multi_model:
        return
    if variant.has_cache:
        yield Graph(
            key="loaded",
            title="Loaded models of an instance",
            unit="models",
            # An average, for the sum over a longer period would count every minute again.
            series=(
                Series.of(
                    "average", "average of the instances", variant.instance(aws_names.LOADED_MODEL_COUNT, "Average")
                ),
                Series.of("maximum", "fullest instance", variant.instance(aws_names.LOADED_MODEL_COUNT, "Maximum")),
            ),
        )
        yield Graph(
            key="hits",
            title="Calls whose model was loaded",
            unit="% of calls",
            series=(
                Series(
                    key="hits",
                    label="hit ratio",
                    metrics={"hit": variant.calls(aws_names.MODEL_CACHE_HIT, "Average")},
                    expression="100 * hit",
                ),
            ),
            maximum=100,
        )
    yield Graph(
        key="loading",
        title="A model's way into memory",
        unit="ms",
        series=(
            milliseconds("wait", "a call's wait", variant.calls(aws_names.MODEL_LOADING_WAIT_TIME, "Average")),
            milliseconds("download", "download", variant.calls(aws_names.MODEL_DOWNLOADING_TIME, "Average")),
            milliseconds("load", "load", variant.calls(aws_names.MODEL_LOADING_TIME, "Average")),
        ),
    )
    yield Graph(
        key="unloading",
        title="A model's way out of memory",
        unit="ms",
        series=(milliseconds("unload", "unload", variant.calls(aws_names.MODEL_UNLOADING_TIME, "Average")),),
        needs="unloading",
    )
