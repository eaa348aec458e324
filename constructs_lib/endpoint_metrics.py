"""The CloudWatch metrics of an endpoint's production variant, a method each."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

if TYPE_CHECKING:
    import aws_cdk as cdk
    from aws_cdk import aws_cloudwatch as cloudwatch

SAGEMAKER = "AWS/SageMaker"
INSTANCES = "/aws/sagemaker/Endpoints"
"""Namespaces of calls, and of what each instance writes (developer guide, "Monitor SageMaker AI with CloudWatch")."""


class MetricOptions(TypedDict, total=False):
    """What a metric method takes, each by its name.

    Attributes:
        statistic: one that AWS documents for the metric (``Sum``, ``Average``, ``p99``). Default: the method's own.
        period: over which it is taken. Default: one minute, in which SageMaker writes.
        label: what a graph's legend says. Default: the metric's name.
        color: six hexadecimal digits after ``#``. Default: CloudWatch chooses.
    """

    statistic: str
    period: cdk.Duration
    label: str
    color: str


class EndpointMetrics:
    """Metrics with the right namespace, dimensions and unit, and by default a statistic that means something.

    A statistic that AWS does not document for the metric is refused (LookupError): CloudWatch would show nothing.
    Another account's or region's: ``endpoint.metric_invocations().with_(region="eu-west-1")``.

    Attributes:
        endpoint_name: the endpoint's name.
        variant_name: its production variant's.
    """

    endpoint_name: str
    variant_name: str

    def _metric(self, namespace: str, name: str, statistic: str, options: MetricOptions) -> cloudwatch.Metric:
        from aws_cdk import Duration  # noqa: PLC0415 - most apps look at no metric
        from aws_cdk import aws_cloudwatch as cloudwatch  # noqa: PLC0415 - as above

        from tritonstack.observability.known_metrics import unit_of  # noqa: PLC0415 - as above
        from tritonstack.observability.metric import Metric  # noqa: PLC0415 - as above

        chosen = options.get("statistic", statistic)
        dimensions = {"EndpointName": self.endpoint_name, "VariantName": self.variant_name}
        known = Metric(namespace=namespace, name=name, dimensions=tuple(dimensions.items()), statistic=chosen)
        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=name,
            dimensions_map=dimensions,
            unit=cloudwatch.Unit[unit_of(known).upper()],
            statistic=chosen,
            period=options.get("period") or Duration.minutes(1),
            label=options.get("label"),
            color=options.get("color"),
        )

    def metric_invocations(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Calls of the endpoint. Default: ``Sum``."""
        return self._metric(SAGEMAKER, "Invocations", "Sum", options)

    def metric_invocations_per_instance(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Calls for each instance; ``Sum`` is its only statistic that means something. Default: ``Sum``."""
        return self._metric(SAGEMAKER, "InvocationsPerInstance", "Sum", options)

    def metric_invocation_4xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Calls that the caller got wrong; ``Average`` is their share of all. Default: ``Sum``."""
        return self._metric(SAGEMAKER, "Invocation4XXErrors", "Sum", options)

    def metric_invocation_5xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Calls that failed here; ``Average`` is their share of all. Default: ``Sum``."""
        return self._metric(SAGEMAKER, "Invocation5XXErrors", "Sum", options)

    def metric_invocation_model_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Calls that the container did not answer with 2XX; ``Average`` is their share of all. Default: ``Sum``."""
        return self._metric(SAGEMAKER, "InvocationModelErrors", "Sum", options)

    def metric_model_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How long the container takes, with the way to it and back. Default: ``Average``."""
        return self._metric(SAGEMAKER, "ModelLatency", "Average", options)

    def metric_overhead_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """What SageMaker adds to the container's time. Default: ``Average``."""
        return self._metric(SAGEMAKER, "OverheadLatency", "Average", options)

    def metric_concurrent_requests_per_model(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Calls at the same time, those in the container's queue too. Default: ``Maximum``."""
        return self._metric(SAGEMAKER, "ConcurrentRequestsPerModel", "Maximum", options)

    def metric_model_loading_wait_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How long a call waits for its model to be downloaded or loaded. Multi-model mode. Default: ``Average``."""
        return self._metric(SAGEMAKER, "ModelLoadingWaitTime", "Average", options)

    def metric_model_loading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How long the container takes to load a model. Multi-model mode. Default: ``Average``."""
        return self._metric(SAGEMAKER, "ModelLoadingTime", "Average", options)

    def metric_model_unloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How long the container takes to unload a model. Multi-model mode. Default: ``Average``."""
        return self._metric(SAGEMAKER, "ModelUnloadingTime", "Average", options)

    def metric_model_downloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """How long an archive takes to come from S3. Multi-model mode. Default: ``Average``."""
        return self._metric(SAGEMAKER, "ModelDownloadingTime", "Average", options)

    def metric_model_cache_hit(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The share of calls whose model was loaded before. Multi-model mode. Default: ``Average``."""
        return self._metric(SAGEMAKER, "ModelCacheHit", "Average", options)

    def metric_cpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """0 to 100 for each vCPU, added up over an instance. Default: ``Average``."""
        return self._metric(INSTANCES, "CPUUtilization", "Average", options)

    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Of an instance's memory. Default: ``Average``."""
        return self._metric(INSTANCES, "MemoryUtilization", "Average", options)

    def metric_gpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """0 to 100 for each GPU, added up over an instance. Default: ``Average``."""
        return self._metric(INSTANCES, "GPUUtilization", "Average", options)

    def metric_gpu_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """0 to 100 for each GPU, added up over an instance. Default: ``Average``."""
        return self._metric(INSTANCES, "GPUMemoryUtilization", "Average", options)

    def metric_disk_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Of an instance's disk. Default: ``Average``."""
        return self._metric(INSTANCES, "DiskUtilization", "Average", options)

    def metric_loaded_model_count(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """Models that an instance has loaded. Multi-model mode. Default: ``Average``."""
        return self._metric(INSTANCES, "LoadedModelCount", "Average", options)
