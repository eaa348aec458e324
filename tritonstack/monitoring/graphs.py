"""Graphs of a dashboard: requests, model loading, instances and cost of an endpoint, and builds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tritonstack import aws_names, naming
from tritonstack.aws.sagemaker_rules import traffic_shares
from tritonstack.catalogue.prices import HostingPrice
from tritonstack.config import EndpointSettings, Environment
from tritonstack.monitoring.log_lines import LOG_METRICS, counts_log_lines, log_metrics_namespace
from tritonstack.monitoring.metric import Metric, Search, Series

Needs = Literal["gpu", "codebuild", "unloading", "publishing", "log lines"]
"""Without this a graph has no data: a GPU, builds in CodeBuild, models that are unloaded, clients that publish, lines
of the containers."""
PERCENTILES = ("p50", "p90", "p99")
SECONDS_IN_AN_HOUR = 3600
INSTANCE_COUNT = "invocations / share"
"""Sum(Invocations) / Sum(InvocationsPerInstance) is the number of instances while requests arrive; no metric is."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A horizontal line of a graph."""

    label: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Lines over time."""

    key: str  # unique in its section
    title: str  # with the metric's name in CloudWatch
    unit: str  # of the vertical axis (``ms``, ``% of each GPU``)
    series: tuple[Series, ...]  # the lines
    maximum: float | None = None  # end of the axis where it is fixed (100 for percent); the axis begins at 0
    limits: tuple[Limit, ...] = ()  # horizontal lines
    needs: Needs | None = None  # what it needs to have data, besides an endpoint with traffic
    period: int = 60  # seconds between two figures of its metrics; CloudWatch draws a longer one of a long time range


@dataclass(frozen=True, kw_only=True)
class Section:
    """The graphs of one endpoint, or of the builds."""

    key: str  # unique in the dashboard (an endpoint's name)
    title: str  # of the section
    notes: tuple[str, ...]  # sentences under the title, among them why a graph is absent
    graphs: tuple[Graph, ...]  # in the order of reading


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """All sections of one environment."""

    name: str
    region: str
    sections: tuple[Section, ...]

    def graphs(self) -> Iterator[tuple[Section, Graph]]:
        """Every graph with its section."""
        for section in self.sections:
            for graph in section.graphs:
                yield section, graph


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A production variant of an endpoint."""

    settings: EndpointSettings  # the endpoint's, as they hold for the variant
    endpoint_name: str  # at SageMaker
    share: float = 1  # of the endpoint's requests, 0 to 1
    # of one of its instances, of instance pools of the dearest type; None where no source has it, or that of a pool
    price: HostingPrice | None
    pool_prices: tuple[tuple[str, float], ...] = ()  # instance type of a pool and its USD per hour, cheapest first
    log_metrics: str | None = None  # namespace of the endpoint's counted log lines; None: they are not counted

    @property
    def label(self) -> str:
        """Suffix of an endpoint's name where it has several variants: ``.current``; no endpoint's name has a dot."""
        return f".{self.settings.variants[0].name}" if self.settings.variants else ""

    @property
    def subject(self) -> str:
        """Name in its alarms and its part of the dashboard."""
        return f"{self.endpoint_name}{self.label}"

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """EndpointName and VariantName: strings, so that no stack refers to another."""
        return tuple(aws_names.variant_dimensions(self.endpoint_name, self.settings.variant_name).items())

    @property
    def utilization_seconds(self) -> int:
        """Interval at which its instances publish what they use, seconds; a minute where that is longer, too."""
        metrics = self.settings.metrics
        return 60 if metrics is None else min(60, metrics.seconds)

    @property
    def enhanced(self) -> bool:
        """Whether SageMaker publishes metrics of each instance and GPU."""
        return self.settings.metrics is not None and self.settings.metrics.enhanced

    @property
    def has_cache(self) -> bool:
        """Whether models stay loaded between requests, so that a hit ratio means something."""
        return self.settings.model_cache_setting == "Enabled"

    def calls(self, name: str, statistic: str) -> Metric:
        """A metric of requests or of model loading."""
        return Metric(namespace=aws_names.SAGEMAKER, name=name, dimensions=self.dimensions, statistic=statistic)

    def published(self, name: str, statistic: str) -> Metric:
        """A metric that clients publish."""
        return Metric(namespace=naming.CLIENT_METRICS, name=name, dimensions=self.dimensions, statistic=statistic)

    def instance(self, name: str, statistic: str) -> Metric:
        """A metric that each instance writes, once a minute or at the interval of ``metrics.seconds``."""
        return Metric(namespace=aws_names.INSTANCES, name=name, dimensions=self.dimensions, statistic=statistic)


def variants_of(environment: Environment, endpoint: EndpointSettings) -> tuple[Variant, ...]:
    """The variants of one endpoint of an environment."""
    name = endpoint.sagemaker_name(environment.environment)
    pools = [(each, environment.price(each)) for each in endpoint.instance_types]
    priced = sorted(((each, price) for each, price in pools if price), key=lambda row: row[1].usd_per_hour)
    dearest = priced[-1][1] if priced and len(priced) == len(pools) else None
    shares = traffic_shares([each.weight for each in endpoint.variants] or [1])
    counted = log_metrics_namespace(environment, endpoint) if counts_log_lines(environment, endpoint) else None
    return tuple(
        Variant(
            settings=each,
            endpoint_name=name,
            price=dearest if pools else environment.price(each.instance_type),
            pool_prices=tuple((kind, price.usd_per_hour) for kind, price in priced) if dearest else (),
            share=share,
            log_metrics=counted,
        )
        for each, share in zip(endpoint.variant_settings, shares, strict=True)
    )


def number(value: float) -> str:
    """A number as metric math reads it: no exponent, no trailing zeros."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def milliseconds(key: str, label: str, metric: Metric) -> Series:
    """A metric in microseconds as a line in milliseconds."""
    return Series(key=key, label=label, metrics={f"us_{key}": metric}, expression=f"us_{key} / 1000")


def request_graphs(variant: Variant) -> Iterator[Graph]:
    """Requests, errors, latency and overhead, which every endpoint has, and the latency that clients publish.

    ContainerLatency is not among them: SageMaker writes it for inference pipelines and for multi-container endpoints
    with direct invocation alone (developer guide, "Metrics for multi-container endpoints with direct invocation").
    """
    invocations = variant.calls(aws_names.INVOCATIONS, "Sum")
    yield Graph(
        key="traffic",
        title="Requests (Invocations)",
        unit="requests/s",
        series=(
            Series(
                key="calls",
                label="requests per second",
                metrics={"invocations": invocations},
                expression="invocations / PERIOD(invocations)",
            ),
        ),
    )
    concurrent = variant.calls(aws_names.CONCURRENT_REQUESTS_PER_MODEL, "Maximum")
    yield Graph(
        key="concurrency",
        title="Concurrent requests (ConcurrentRequestsPerModel)",
        unit="requests",
        series=(Series.of("concurrent", "maximum", concurrent),),
    )
    errors = {
        "errors4xx": aws_names.INVOCATION_4XX_ERRORS,
        "errors5xx": aws_names.INVOCATION_5XX_ERRORS,
        "model_errors": aws_names.INVOCATION_MODEL_ERRORS,
    }
    yield Graph(
        key="errors",
        title="Errors (Invocation4XXErrors, Invocation5XXErrors, InvocationModelErrors)",
        unit="% of requests",
        series=tuple(
            Series(
                key=key,
                label=name,
                metrics={f"sum_{key}": variant.calls(name, "Sum"), "invocations": invocations},
                expression=f"100 * sum_{key} / invocations",
            )
            for key, name in errors.items()
        ),
    )
    yield Graph(
        key="latency",
        title="Model latency (ModelLatency)",
        unit="ms",
        series=tuple(milliseconds(each, each, variant.calls(aws_names.MODEL_LATENCY, each)) for each in PERCENTILES),
    )
    yield Graph(
        key="overhead",
        title="Overhead of SageMaker (OverheadLatency)",
        unit="ms",
        series=tuple(
            milliseconds(each.lower(), each.lower(), variant.calls(aws_names.OVERHEAD_LATENCY, each))
            for each in ("Average", "Maximum")
        ),
    )
    yield Graph(
        key="end_to_end",
        title="Latency at the client (EndToEndLatency)",
        unit="ms",
        series=tuple(Series.of(each, each, variant.published(naming.END_TO_END_LATENCY, each)) for each in PERCENTILES),
        needs="publishing",
    )


def loading_graphs(variant: Variant) -> Iterator[Graph]:
    """Loaded models, cache hits and load times; none for a single-model endpoint, which loads its model once.

    With the cache disabled every request loads its model: the hit ratio would be 0 and the loaded models the requests
    in progress, so neither is shown.
    """
    if not variant.settings.multi_model:
        return
    if variant.has_cache:
        yield Graph(
            key="loaded",
            title="Loaded models per instance (LoadedModelCount)",
            unit="models",
            # An average, for the sum over a longer period would count every minute again.
            series=(
                Series.of("average", "average", variant.instance(aws_names.LOADED_MODEL_COUNT, "Average")),
                Series.of("maximum", "highest instance", variant.instance(aws_names.LOADED_MODEL_COUNT, "Maximum")),
            ),
        )
        hits = variant.calls(aws_names.MODEL_CACHE_HIT, "Average")
        yield Graph(
            key="hits",
            title="Model cache hits (ModelCacheHit)",
            unit="% of requests",
            series=(Series(key="hits", label="hit ratio", metrics={"hit": hits}, expression="100 * hit"),),
            maximum=100,
        )
    yield Graph(
        key="loading",
        title="Model load time (ModelLoadingWaitTime)",
        unit="ms",
        series=(
            milliseconds("wait", "wait of a request", variant.calls(aws_names.MODEL_LOADING_WAIT_TIME, "Average")),
            milliseconds(
                "download",
                "download (ModelDownloadingTime)",
                variant.calls(aws_names.MODEL_DOWNLOADING_TIME, "Average"),
            ),
            milliseconds("load", "load (ModelLoadingTime)", variant.calls(aws_names.MODEL_LOADING_TIME, "Average")),
        ),
    )
    yield Graph(
        key="unloading",
        title="Model unload time (ModelUnloadingTime)",
        unit="ms",
        series=(milliseconds("unload", "average", variant.calls(aws_names.MODEL_UNLOADING_TIME, "Average")),),
        needs="unloading",
    )
    if variant.log_metrics is not None:
        yield Graph(
            key="log_lines",
            title="Models loaded and unloaded (ModelsLoaded, ModelsUnloaded: lines of the containers)",
            unit="models",
            series=tuple(
                Series.of(
                    each.label,
                    each.label,
                    Metric(namespace=variant.log_metrics, name=each.name, dimensions=(), statistic="Sum"),
                )
                for each in LOG_METRICS
            ),
            needs="log lines",
        )


def instance_graphs(variant: Variant) -> Iterator[Graph]:
    """GPU, CPU, memory and disk of the instances."""
    gpus, vcpus = variant.settings.instance.gpu_count, variant.settings.instance.vcpu
    yield _utilization(variant, "gpu", "GPU", aws_names.GPU_UTILIZATION, parts=gpus, each="GPU", needs="gpu")
    yield _utilization(
        variant, "gpu_memory", "GPU memory", aws_names.GPU_MEMORY_UTILIZATION, parts=gpus, each="GPU", needs="gpu"
    )
    yield _utilization(variant, "cpu", "CPU", aws_names.CPU_UTILIZATION, parts=vcpus, each="vCPU")
    yield _utilization(variant, "memory", "Memory", aws_names.MEMORY_UTILIZATION)
    yield _utilization(variant, "disk", "Disk", aws_names.DISK_UTILIZATION)


def _utilization(
    variant: Variant, key: str, name: str, metric: str, *, parts: int = 1, each: str = "", needs: Needs | None = None
) -> Graph:
    """A utilization of 0 to 100, of each of ``parts`` where the metric is their sum."""
    lines = tuple(
        Series.of(of.lower(), label, variant.instance(metric, of), parts=parts, total=f"sum_{of.lower()}")
        for of, label in (("Average", "average"), ("Maximum", "highest instance"))
    )
    unit = f"% of each {each}" if each else "%"
    return Graph(
        key=key,
        title=f"{name} ({metric})",
        unit=unit,
        series=lines,
        maximum=100,
        needs=needs,
        period=variant.utilization_seconds,
    )


def enhanced_graphs(variant: Variant) -> Iterator[Graph]:
    """Requests, server errors and latency of each instance, and the use of each GPU; none without enhanced metrics.

    Instances and GPUs are searched for: their ids are known only when they write.
    """
    if not variant.enhanced:
        return
    by_instance, by_gpu = (aws_names.INSTANCE_ID,), (aws_names.INSTANCE_ID, aws_names.ACCELERATOR_ID)
    for key, title, unit, metric, by in (
        (
            "instance_calls",
            "Requests of each instance",
            "requests",
            variant.calls(aws_names.INVOCATIONS, "Sum"),
            by_instance,
        ),
        (
            "instance_errors",
            "Server errors of each instance",
            "requests",
            variant.calls(aws_names.INVOCATION_5XX_ERRORS, "Sum"),
            by_instance,
        ),
        (
            "instance_latency",
            "Model latency of each instance",
            "ms",
            variant.calls(aws_names.MODEL_LATENCY, "p99"),
            by_instance,
        ),
        ("each_gpu", "Each GPU", "%", variant.instance(aws_names.GPU_UTILIZATION, "Average"), by_gpu),
        (
            "each_gpu_memory",
            "Memory of each GPU",
            "%",
            variant.instance(aws_names.GPU_MEMORY_UTILIZATION, "Maximum"),
            by_gpu,
        ),
    ):
        yield Graph(
            key=key,
            title=f"{title} ({metric.name} by {', '.join(by)})",
            unit=unit,
            series=(Series.each(key, Search(metric=metric, by=by, parts=1000 if unit == "ms" else 1)),),
            maximum=100 if unit == "%" else None,
            needs="gpu" if by is by_gpu else None,
            period=variant.utilization_seconds,
        )


def fleet_graphs(variant: Variant) -> Iterator[Graph]:
    """The number of instances, and their cost where the price is known."""
    scaling = variant.settings.scaling
    limits: tuple[Limit, ...] = (Limit(label="as set", value=variant.settings.initial_instance_count),)
    if scaling is not None:
        limits = (Limit(label="minimum", value=scaling.minimum), Limit(label="maximum", value=scaling.maximum))
    metrics = instance_metrics(variant)
    yield Graph(
        key="instances",
        title="Instances (Invocations / InvocationsPerInstance)",
        unit="instances",
        series=(Series(key="instances", label="instances with requests", metrics=metrics, expression=INSTANCE_COUNT),),
        limits=limits,
    )
    if variant.settings.instance_types:
        yield _landed_graph(variant)
    if variant.price is None:
        return
    # Of instance pools a range: were all instances of the cheapest type, or of the dearest.
    ends = dict.fromkeys((variant.pool_prices[0], variant.pool_prices[-1])) if variant.pool_prices else None
    prices = {"cost": ("", variant.price.usd_per_hour)}
    if ends is not None:
        prices = {f"cost{place}": (f", all of {kind}", usd) for place, (kind, usd) in enumerate(ends)}
    yield Graph(
        key="cost_per_hour",
        title="Cost of the instances per hour",
        unit="USD/h",
        series=tuple(
            replace(series, key=key, label=f"{series.label}{of}")
            for key, (of, usd) in prices.items()
            for series in (cost_per_hour(variant, usd_per_hour=usd),)
        ),
    )
    # Instances x hours x price / requests: requests / instances is the share that one instance received.
    yield Graph(
        key="cost_per_million",
        title="Cost of a million requests",
        unit="USD",
        series=tuple(
            Series(
                key=key,
                label=f"at the current traffic{of}",
                metrics={"share": metrics["share"]},
                expression=f"{number(usd * 1_000_000 / SECONDS_IN_AN_HOUR)} * PERIOD(share) / share",
            )
            for key, (of, usd) in prices.items()
        ),
    )


def _landed_graph(variant: Variant) -> Graph:
    """Requests by instance type: what the pools landed on. That Invocations has the dimension is UNVERIFIED."""
    return Graph(
        key="landed",
        title="Requests by instance type (Invocations)",
        unit="requests",
        series=tuple(
            Series.of(
                f"pool{place}",
                name,
                Metric(
                    namespace=aws_names.SAGEMAKER,
                    name=aws_names.INVOCATIONS,
                    dimensions=(*variant.dimensions, (aws_names.INSTANCE_TYPE, name)),
                    statistic="Sum",
                ),
            )
            for place, name in enumerate(variant.settings.instance_types)
        ),
    )


def instance_metrics(variant: Variant) -> dict[str, Metric]:
    """The metrics of ``INSTANCE_COUNT``."""
    return {
        "invocations": variant.calls(aws_names.INVOCATIONS, "Sum"),
        "share": variant.calls(aws_names.INVOCATIONS_PER_INSTANCE, "Sum"),
    }


def cost_per_hour(variant: Variant, *, usd_per_hour: float) -> Series:
    """Cost per hour of the instances that received requests, USD."""
    return Series(
        key="cost",
        label="on-demand price x instances",
        metrics=instance_metrics(variant),
        expression=f"{number(usd_per_hour)} * {INSTANCE_COUNT}",
    )


@dataclass(frozen=True, kw_only=True)
class BuildProjects:
    """Names of an environment's CodeBuild projects."""

    build: str  # the project that builds archives
    engines: str | None = None  # the project on a GPU machine; None where CodeBuild builds no engine

    def named(self) -> Iterator[tuple[str, str]]:
        """What each project builds, and its name."""
        yield "archives", self.build
        if self.engines is not None:
            yield "engines", self.engines


def project_metric(project: str, name: str, statistic: str) -> Metric:
    """A metric of one CodeBuild project."""
    dimensions = ((aws_names.PROJECT_NAME, project),)
    return Metric(namespace=aws_names.CODEBUILD, name=name, dimensions=dimensions, statistic=statistic)


def build_graphs(projects: BuildProjects) -> Iterator[Graph]:
    """Outcome and duration of builds."""
    for what, project in projects.named():
        yield Graph(
            key=f"{what}_ends",
            title=f"Builds of {what} (SucceededBuilds, FailedBuilds)",
            unit="builds",
            series=(
                Series.of("succeeded", "succeeded", project_metric(project, aws_names.SUCCEEDED_BUILDS, "Sum")),
                Series.of("failed", "failed", project_metric(project, aws_names.FAILED_BUILDS, "Sum")),
            ),
            needs="codebuild",
        )
        seconds = project_metric(project, aws_names.BUILD_DURATION, "Average")
        yield Graph(
            key=f"{what}_minutes",
            title=f"Build time of {what} (Duration)",
            unit="minutes",
            series=(Series(key="minutes", label="average", metrics={"seconds": seconds}, expression="seconds / 60"),),
            needs="codebuild",
        )
