"""Graphs of a dashboard: requests, model loading, instances and cost of an endpoint, and builds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tritonstack import aws_names
from tritonstack.config import Endpoint, Environment
from tritonstack.monitoring.metric import Metric, Series

Needs = Literal["gpu", "codebuild", "unloading"]
"""What must be there for a graph to have data: a GPU, builds in CodeBuild, models that are unloaded."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A level that a graph is read against."""

    label: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Lines over time.

    Attributes:
        key: unique in its section.
        title: what is shown.
        unit: of the vertical axis (``ms``, ``% of one GPU``).
        series: the lines.
        maximum: the axis' end, where it has one (100 for percent); it begins at 0.
        limits: levels drawn across.
        needs: what must be there for it to have data, besides an endpoint that is called.
    """

    key: str
    title: str
    unit: str
    series: tuple[Series, ...]
    maximum: float | None = None
    limits: tuple[Limit, ...] = ()
    needs: Needs | None = None


@dataclass(frozen=True, kw_only=True)
class Section:
    """The graphs of one endpoint, or of the builds.

    Attributes:
        key: unique in the dashboard (an endpoint's name).
        title: of the section.
        notes: sentences under the title; what is not shown is said here, with the reason.
        graphs: in the order of reading.
    """

    key: str
    title: str
    notes: tuple[str, ...]
    graphs: tuple[Graph, ...]


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """Everything that is shown of one environment."""

    name: str
    region: str
    sections: tuple[Section, ...]

    def graphs(self) -> Iterator[tuple[Section, Graph]]:
        """Every graph with its section."""
        for section in self.sections:
            for graph in section.graphs:
                yield section, graph


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD an hour of one instance, and who says so."""

    usd_per_hour: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One endpoint's production variant.

    Attributes:
        settings: the endpoint's.
        endpoint_name: at SageMaker.
        price: of one of its instances; None where no source gives it.
    """

    settings: Endpoint
    endpoint_name: str
    price: Price | None

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """EndpointName and VariantName: strings, so that no stack refers to another."""
        return tuple(aws_names.variant_dimensions(self.endpoint_name, self.settings.variant_name).items())

    @property
    def has_cache(self) -> bool:
        """Whether models stay loaded between calls, so that a hit ratio says something."""
        return self.settings.model_cache_setting == "Enabled"

    def calls(self, name: str, statistic: str) -> Metric:
        """A metric that SageMaker writes about calls and about loading models."""
        return Metric(namespace=aws_names.SAGEMAKER, name=name, dimensions=self.dimensions, statistic=statistic)

    def instance(self, name: str, statistic: str) -> Metric:
        """A metric that each instance writes once a minute."""
        return Metric(namespace=aws_names.INSTANCES, name=name, dimensions=self.dimensions, statistic=statistic)


def variant_of(environment: Environment, endpoint: Endpoint) -> Variant:
    """The variant of one endpoint of an environment."""
    known = environment.price(endpoint.instance_type)
    price = None if known is None else Price(usd_per_hour=known.usd_per_hour, source=known.short)
    return Variant(settings=endpoint, endpoint_name=endpoint.sagemaker_name(environment.environment), price=price)


def number(value: float) -> str:
    """A number as metric math reads it: no exponent, no digits that say nothing."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


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


@dataclass(frozen=True, kw_only=True)
class BuildProjects:
    """The names of an environment's CodeBuild projects.

    Attributes:
        build: the project that is given orders.
        engines: the project of the GPU machine; None where CodeBuild builds no engine.
    """

    build: str
    engines: str | None = None

    def named(self) -> Iterator[tuple[str, str, str]]:
        """A key, what the project builds, and its name."""
        yield "archives", "archives", self.build
        if self.engines is not None:
            yield "engines", "engines", self.engines


def project_metric(project: str, name: str, statistic: str) -> Metric:
    """A metric that CodeBuild writes about one project."""
    return Metric(
        namespace=aws_names.CODEBUILD, name=name, dimensions=((aws_names.PROJECT_NAME, project),), statistic=statistic
    )


def build_graphs(projects: BuildProjects) -> Iterator[Graph]:
    """How builds ended, and how long they took."""
    for key, what, project in projects.named():
        yield Graph(
            key=f"{key}_ends",
            title=f"Builds of {what}",
            unit="builds",
            series=(
                Series.of("succeeded", "succeeded", project_metric(project, aws_names.SUCCEEDED_BUILDS, "Sum")),
                Series.of("failed", "failed", project_metric(project, aws_names.FAILED_BUILDS, "Sum")),
            ),
            needs="codebuild",
        )
        yield Graph(
            key=f"{key}_minutes",
            title=f"Duration of builds of {what}",
            unit="minutes",
            series=(
                Series(
                    key="minutes",
                    label="average",
                    metrics={"seconds": project_metric(project, aws_names.BUILD_DURATION, "Average")},
                    expression="seconds / 60",
                ),
            ),
            needs="codebuild",
        )
