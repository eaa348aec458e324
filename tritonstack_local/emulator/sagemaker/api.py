"""SageMaker's operations by name; models and endpoint configs."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from tritonstack_local.emulator.processing.jobs import ProcessingJobs
from tritonstack_local.emulator.processing.request import PROCESSING_JOB
from tritonstack_local.emulator.recommender import ModelPackages, RecommendationJobs
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.records import (
    API,
    ENDPOINT,
    ENDPOINT_CONFIG,
    MODEL,
    Record,
    check_execution_role,
)
from tritonstack_local.emulator.sagemaker.state import SageMakerState, Tags, listing, store
from tritonstack_local.emulator.services import JsonService, Operation

Request = dict[str, Any]


class Models:
    """The operations on models."""

    def __init__(self, state: SageMakerState) -> None:
        """Works on ``state``."""
        self._state = state

    def create(self, request: Request) -> dict[str, Any]:
        """CreateModel: one way of naming containers, each with an image or a package, and a role to assume."""
        containers = _containers(request)
        for container in containers:
            if not ("Image" in container or "ModelPackageName" in container):
                raise _refused("A container must have an Image or a ModelPackageName.")
            if "ModelDataUrl" in container and "ModelDataSource" in container:
                raise _refused("ModelDataUrl and ModelDataSource cannot be specified together.")
            if container.get("MultiModelConfig") and container.get("Mode") != "MultiModel":
                raise _refused("MultiModelConfig can only be specified for a container in MultiModel mode.")
        check_execution_role(request["ExecutionRoleArn"])
        record = Record(name=request["ModelName"], arn=MODEL.arn(request["ModelName"]), request=request)
        with self._state.changed:
            self._state.models.add(record)
            store(self._state, record.arn, request.get("Tags", []))
        return {"ModelArn": record.arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeModel."""
        record = self._state.models.get(request["ModelName"])
        kept = {name: value for name, value in record.request.items() if name != "Tags"}
        return {
            "EnableNetworkIsolation": False,
            **kept,
            "ModelArn": record.arn,
            "CreationTime": record.created,
        }

    def delete(self, request: Request) -> None:
        """DeleteModel: "deletes only the model entry"; an endpoint that uses it goes on (API reference)."""
        with self._state.changed:
            record = self._state.models.remove(request["ModelName"])
            self._state.tags.pop(record.arn, None)


def _containers(request: Request) -> list[dict[str, Any]]:
    primary, several = request.get("PrimaryContainer"), request.get("Containers")
    if bool(primary) == bool(several):
        raise _refused("Exactly one of PrimaryContainer and Containers must be specified.")
    if "ExecutionRoleArn" not in request:
        raise _refused("ExecutionRoleArn must be specified.")
    return [primary] if primary else list(several or [])


def _refused(sentence: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{API}, CreateModel")


logger = logging.getLogger("tritonstack.emulator")

PUBLISH_SECONDS = (10, 30, 60, 120, 180, 240, 300)
"""Which ``MetricPublishFrequencyInSeconds`` there are (API reference, MetricsConfig; botocore's model has no list)."""
METRICS_DEFAULTS = {"EnableDetailedObservability": True}
"""Default of a configuration made today (developer guide, "Getting started with detailed
observability": configurations created after June 17, 2026)."""


class EndpointConfigs:
    """The operations on endpoint configs."""

    def __init__(self, state: SageMakerState) -> None:
        """Works on ``state``."""
        self._state = state

    def create(self, request: Request) -> dict[str, Any]:
        """CreateEndpointConfig: variants have names of their own, instances, and models that exist."""
        variants = [*request["ProductionVariants"], *request.get("ShadowProductionVariants", [])]
        for name, count in Counter(variant["VariantName"] for variant in variants).items():
            if count > 1:
                raise _refusal(f"The production variant name {name} is used {count} times.", "CreateEndpointConfig")
        name = request["EndpointConfigName"]
        record = Record(name=name, arn=ENDPOINT_CONFIG.arn(name), request=request)
        with self._state.changed:
            for variant in variants:
                self._check_variant(variant)
                _check_routing(variant)
            _check_metrics(request.get("MetricsConfig", {}))
            self._state.endpoint_configs.add(record)
            store(self._state, record.arn, request.get("Tags", []))
        return {"EndpointConfigArn": record.arn}

    def _check_variant(self, variant: dict[str, Any]) -> None:
        if "ModelName" in variant:
            self._state.models.get(variant["ModelName"])
        elif "ServerlessConfig" in variant:
            raise _refusal(f"Variant {variant['VariantName']} names no model.", "CreateEndpointConfig")
        instances = {"InstanceType", "InitialInstanceCount"} <= variant.keys() or "InstancePools" in variant
        if instances == ("ServerlessConfig" in variant):
            raise _refusal(
                f"Variant {variant['VariantName']} must have InstanceType and InitialInstanceCount,"
                " or ServerlessConfig.",
                "CreateEndpointConfig",
            )

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeEndpointConfig."""
        record = self._state.endpoint_configs.get(request["EndpointConfigName"])
        kept = {name: value for name, value in record.request.items() if name != "Tags"}
        kept["MetricsConfig"] = METRICS_DEFAULTS | kept.get("MetricsConfig", {})
        return {**kept, "EndpointConfigArn": record.arn, "CreationTime": record.created}

    def delete(self, request: Request) -> None:
        """DeleteEndpointConfig: one that is in use goes, too, and the endpoint serves on.

        "You must not delete an EndpointConfig in use by an endpoint that is live" (API reference) is advice: the same
        page names what is lost then, the SageMaker SDK deletes it before the endpoint (``Predictor.delete_endpoint``),
        and hashicorp/terraform-provider-aws has endpoints whose config was deleted under them (issues 40048, 48997).
        What is lost is the next update: see ``Endpoints.update``.
        """
        with self._state.changed:
            record = self._state.endpoint_configs.remove(request["EndpointConfigName"])
            self._state.tags.pop(record.arn, None)
            users = sorted(e.name for e in self._state.endpoints if record.name.lower() in e.configs_in_use)
        if users:
            logger.warning(
                "endpoint config %s was deleted while %s used it, and cannot be updated any more: AWS says «must not»",
                record.name,
                ", ".join(users),
            )


def _check_routing(variant: dict[str, Any]) -> None:
    """What the two strategies for prompts need (API reference, ProductionVariantRoutingConfig)."""
    routing = variant.get("RoutingConfig", {})
    strategy, prefix = routing.get("RoutingStrategy"), routing.get("PrefixAwareRoutingConfig")
    name = variant["VariantName"]
    if strategy == "PREFIX_AWARE" and {"PrefixLength", "ConcurrencyThreshold"} - set(prefix or {}):
        sentence = f"Variant {name}: PrefixLength and ConcurrencyThreshold are required with PREFIX_AWARE."
    elif strategy != "PREFIX_AWARE" and prefix is not None:
        sentence = f"Variant {name}: PrefixAwareRoutingConfig is for PREFIX_AWARE only, not for {strategy}."
    elif strategy == "KV_AWARE":
        sentence = f"Variant {name}: KV_AWARE works only with supported containers, of which Triton is none."
    else:
        return
    raise _refusal(sentence, "CreateEndpointConfig, ProductionVariantRoutingConfig")


def _check_metrics(metrics: dict[str, Any]) -> None:
    seconds = metrics.get("MetricPublishFrequencyInSeconds", PUBLISH_SECONDS[0])
    if seconds not in PUBLISH_SECONDS:
        raise _refusal(
            f"MetricPublishFrequencyInSeconds is {seconds}; valid values: {', '.join(map(str, PUBLISH_SECONDS))}.",
            "CreateEndpointConfig, MetricsConfig",
        )


def _refusal(sentence: str, operation: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{API}, {operation}")


def sagemaker_service(state: SageMakerState, endpoints: Endpoints, jobs: ProcessingJobs) -> JsonService:
    """SageMaker as far as hosting, processing and Inference Recommender go."""
    models, configs, tagging = Models(state), EndpointConfigs(state), Tags(state)
    packages = ModelPackages(state)
    recommendations = RecommendationJobs(state, packages)
    operations: dict[str, Operation] = {
        "CreateModel": models.create,
        "DescribeModel": models.describe,
        "DeleteModel": models.delete,
        "ListModels": lambda request: listing(MODEL, state.models, request),
        "CreateEndpointConfig": configs.create,
        "DescribeEndpointConfig": configs.describe,
        "DeleteEndpointConfig": configs.delete,
        "ListEndpointConfigs": lambda request: listing(ENDPOINT_CONFIG, state.endpoint_configs, request),
        "CreateEndpoint": endpoints.create,
        "UpdateEndpoint": endpoints.update,
        "UpdateEndpointWeightsAndCapacities": endpoints.scale,
        "DescribeEndpoint": endpoints.describe,
        "DeleteEndpoint": endpoints.delete,
        "ListEndpoints": lambda request: listing(ENDPOINT, state.endpoints, request),
        "CreateProcessingJob": jobs.create,
        "DescribeProcessingJob": jobs.describe,
        "StopProcessingJob": jobs.stop,
        "ListProcessingJobs": lambda request: listing(PROCESSING_JOB, state.processing_jobs, request),
        "CreateModelPackageGroup": packages.create_group,
        "DescribeModelPackageGroup": packages.describe_group,
        "DeleteModelPackageGroup": packages.delete_group,
        "CreateModelPackage": packages.create,
        "DescribeModelPackage": packages.describe,
        "DeleteModelPackage": packages.delete,
        "ListModelPackages": packages.list,
        "CreateInferenceRecommendationsJob": recommendations.create,
        "DescribeInferenceRecommendationsJob": recommendations.describe,
        "StopInferenceRecommendationsJob": recommendations.stop,
        "AddTags": tagging.add,
        "DeleteTags": tagging.delete,
        "ListTags": tagging.list,
    }

    def forget() -> None:
        jobs.end_all()
        recommendations.clear()
        packages.clear()
        state.clear()

    return JsonService(service="sagemaker", target_prefix="SageMaker", operations=operations, forget=forget)
