"""Graphs of instances: how busy, how full, how many, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import aws_names
from tritonstack.monitoring.graph import Graph, Limit, Needs
from tritonstack.monitoring.metric import Metric, Series
from tritonstack.monitoring.variant import Variant, number

SECONDS_IN_AN_HOUR = 3600


def instance_graphs(variant: Variant) -> Iterator[Graph]:
    """GPU, CPU, memory and disk of the instances."""
    instance = variant.settings.instance
    yield _share(variant, key="gpu", title="GPU", of=aws_names.GPU_UTILIZATION, parts=instance.gpu_count, needs="gpu")
    yield _share(
        variant,
        key="gpu_memory",
        title="GPU memory",
        of=aws_names.GPU_MEMORY_UTILIZATION,
        parts=instance.gpu_count,
        needs="gpu",
    )
    yield _share(variant, key="cpu", title="CPU", of=aws_names.CPU_UTILIZATION, parts=instance.vcpu)
    yield _share(variant, key="memory", title="Memory", of=aws_names.MEMORY_UTILIZATION)
    yield _share(variant, key="disk", title="Disk", of=aws_names.DISK_UTILIZATION)


def fleet_graphs(variant: Variant) -> Iterator[Graph]:
    """How many instances there are, and their cost where the price is known."""
    scaling = variant.settings.scaling
    limits: tuple[Limit, ...] = (Limit(label="as set", value=variant.settings.initial_instance_count),)
    if scaling is not None:
        limits = (Limit(label="minimum", value=scaling.minimum), Limit(label="maximum", value=scaling.maximum))
    yield Graph(
        key="instances",
        title="Instances",
        unit="instances",
        series=(
            Series(
                key="instances",
                label="instances that answered",
                metrics=instance_metrics(variant),
                expression=INSTANCE_COUNT,
            ),
        ),
        limits=limits,
    )
    if variant.price is None:
        return
    usd = variant.price.usd_per_hour
    yield Graph(
        key="cost_per_hour",
        title="Cost of the instances",
        unit="USD/h",
        series=(cost_per_hour(variant, usd_per_hour=usd),),
    )
    share = instance_metrics(variant)["share"]
    yield Graph(
        key="cost_per_million",
        title="Cost of a million calls",
        unit="USD",
        series=(
            Series(
                key="cost",
                label="at the traffic of the moment",
                metrics={"share": share},
                # Instances x hours x price, over calls: calls / instances is the share that one instance answered.
                expression=f"{number(usd * 1_000_000 / SECONDS_IN_AN_HOUR)} * PERIOD(share) / share",
            ),
        ),
    )


INSTANCE_COUNT = "invocations / share"
"""Sum(Invocations) over Sum(InvocationsPerInstance) is the number of instances while calls come; no metric is."""


def instance_metrics(variant: Variant) -> dict[str, Metric]:
    """What ``INSTANCE_COUNT`` reads."""
    return {
        "invocations": variant.calls(aws_names.INVOCATIONS, "Sum"),
        "share": variant.calls(aws_names.INVOCATIONS_PER_INSTANCE, "Sum"),
    }


def cost_per_hour(variant: Variant, *, usd_per_hour: float) -> Series:
    """What the instances that answered cost an hour."""
    return Series(
        key="cost",
        label="on-demand price x instances",
        metrics=instance_metrics(variant),
        expression=f"{number(usd_per_hour)} * {INSTANCE_COUNT}",
    )


def _share(variant: Variant, *, key: str, title: str, of: str, parts: int = 1, needs: Needs | None = None) -> Graph:
    """A utilization of 0 to 100, of each of ``parts`` where the metric is their sum."""
    each = {"gpu": "each GPU", "gpu_memory": "each GPU", "cpu": "each vCPU"}.get(key)
    lines = []
    for statistic, label in (("Average", "average of the instances"), ("Maximum", "highest instance")):
        line = statistic.lower()
        metric = variant.instance(of, statistic)
        if parts == 1:
            lines.append(Series.of(line, label, metric))
        else:
            lines.append(
                Series(key=line, label=label, metrics={f"sum_{line}": metric}, expression=f"sum_{line} / {parts}")
            )
    unit = f"% of {each}" if each else "%"
    return Graph(key=key, title=title, unit=unit, series=tuple(lines), maximum=100, needs=needs)
