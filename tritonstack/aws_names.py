"""AWS's own names that several parts must spell alike: namespaces, metrics, dimensions, scaling, log groups.

Names that are this project's (keys, parameters, tags) are in ``tritonstack.naming``. A Lambda imports neither and has
its own copies; ``tests/test_aws_names.py`` compares them.
"""

from __future__ import annotations

from collections.abc import Mapping

# CloudWatch namespaces, and the metrics in each (SageMaker developer guide, "Monitor SageMaker AI with CloudWatch").
SAGEMAKER = "AWS/SageMaker"
"""Metrics of requests and of model loading, for a production variant."""
INVOCATIONS = "Invocations"
INVOCATIONS_PER_INSTANCE = "InvocationsPerInstance"
INVOCATION_4XX_ERRORS = "Invocation4XXErrors"
INVOCATION_5XX_ERRORS = "Invocation5XXErrors"
INVOCATION_MODEL_ERRORS = "InvocationModelErrors"
MODEL_LATENCY = "ModelLatency"
OVERHEAD_LATENCY = "OverheadLatency"
CONCURRENT_REQUESTS_PER_MODEL = "ConcurrentRequestsPerModel"
MODEL_LOADING_WAIT_TIME = "ModelLoadingWaitTime"
MODEL_DOWNLOADING_TIME = "ModelDownloadingTime"
MODEL_LOADING_TIME = "ModelLoadingTime"
MODEL_UNLOADING_TIME = "ModelUnloadingTime"
MODEL_CACHE_HIT = "ModelCacheHit"

INSTANCES = "/aws/sagemaker/Endpoints"
"""Metrics of each instance of a production variant."""
CPU_UTILIZATION = "CPUUtilization"
MEMORY_UTILIZATION = "MemoryUtilization"
DISK_UTILIZATION = "DiskUtilization"
GPU_UTILIZATION = "GPUUtilization"
GPU_MEMORY_UTILIZATION = "GPUMemoryUtilization"
LOADED_MODEL_COUNT = "LoadedModelCount"

INVOCATIONS_PER_COPY = "InvocationsPerCopy"
CONCURRENT_REQUESTS_PER_COPY = "ConcurrentRequestsPerCopy"
NO_CAPACITY_FAILURES = "NoCapacityInvocationFailures"
"""Metrics of an inference component, beside those of requests, in ``SAGEMAKER``."""
COMPONENT_INSTANCES = "/aws/sagemaker/InferenceComponents"
"""Metrics of what an inference component's copies use of their reservations, each ``NORMALIZED``."""
NORMALIZED = "Normalized"

CODEBUILD = "AWS/CodeBuild"
BUILDS = "Builds"
SUCCEEDED_BUILDS = "SucceededBuilds"
FAILED_BUILDS = "FailedBuilds"
BUILD_DURATION = "Duration"
PROJECT_NAME = "ProjectName"

EVENTS = "AWS/Events"
RULE_NAME = "RuleName"

QUEUES = "AWS/SQS"
VISIBLE_MESSAGES = "ApproximateNumberOfMessagesVisible"
QUEUE_NAME = "QueueName"

# Dimensions of a production variant's metrics.
ENDPOINT_NAME = "EndpointName"
VARIANT_NAME = "VariantName"
COMPONENT_NAME = "InferenceComponentName"
INSTANCE_TYPE = "InstanceType"
"""A further dimension where instance pools have several types (developer guide, "Deploy to multiple instance types with
instance pools"); which metrics have it is UNVERIFIED."""
ENDPOINT_CONFIG_NAME = "EndpointConfigName"
"""The third dimension of one fleet's metrics (developer guide, "Auto-Rollback Configuration and Monitoring")."""

INSTANCE_ID = "InstanceId"
"""The third dimension of one instance's metrics, with enhanced metrics (developer guide, "Enhanced metrics")."""
ACCELERATOR_ID = "AcceleratorId"
"""The fourth dimension of one GPU's metrics, with enhanced metrics (the same page)."""
OF_INSTANCES = (
    INVOCATIONS,
    INVOCATIONS_PER_INSTANCE,
    INVOCATION_4XX_ERRORS,
    INVOCATION_5XX_ERRORS,
    INVOCATION_MODEL_ERRORS,
    MODEL_LATENCY,
    OVERHEAD_LATENCY,
)
"""Request metrics by InstanceId, with enhanced metrics (developer guide, "Metric name mapping: legacy to OTel")."""

# Application Auto Scaling (API reference: ScalingPolicy, PredefinedMetricSpecification).
VARIANT_INSTANCE_COUNT = "sagemaker:variant:DesiredInstanceCount"
"""The scalable dimension of a production variant."""
COMPONENT_COPY_COUNT = "sagemaker:inference-component:DesiredCopyCount"
"""The scalable dimension of an inference component."""
PREDEFINED_INVOCATIONS_PER_COPY = "SageMakerInferenceComponentInvocationsPerCopy"
PREDEFINED_CONCURRENT_REQUESTS_PER_COPY = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
PREDEFINED_INVOCATIONS_PER_INSTANCE = "SageMakerVariantInvocationsPerInstance"
PREDEFINED_CONCURRENT_REQUESTS = "SageMakerVariantConcurrentRequestsPerModelHighResolution"

# Log groups that SageMaker names itself; jobs also write their metrics in a namespace of this name.
ENDPOINT_LOG_GROUPS = "/aws/sagemaker/Endpoints/"
"""Prefix; the endpoint's name follows (developer guide, "Log Groups and Streams")."""
COMPONENT_LOG_GROUPS = "/aws/sagemaker/InferenceComponents/"
"""Prefix; the inference component's name follows."""
PROCESSING_JOBS = "/aws/sagemaker/ProcessingJobs"
RECOMMENDATION_JOBS = "/aws/sagemaker/InferenceRecommendationsJobs"


def variant_dimensions(endpoint_name: str, variant_name: str) -> dict[str, str]:
    """Dimensions of a production variant's metrics."""
    return {ENDPOINT_NAME: endpoint_name, VARIANT_NAME: variant_name}


def dimension_list(dimensions: Mapping[str, str]) -> list[dict[str, str]]:
    """Dimensions as the CloudWatch API takes them."""
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]
