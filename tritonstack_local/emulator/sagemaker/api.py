"""SageMaker's operations by name; models and endpoint configs."""

from __future__ import annotations

import logging
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack_local.emulator.iam.service_calls import names
from tritonstack_local.emulator.processing.jobs import ProcessingJobs
from tritonstack_local.emulator.processing.request import PROCESSING_JOB
from tritonstack_local.emulator.recommender import ModelPackages, RecommendationJobs
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.execution_role import check_model_data
from tritonstack_local.emulator.sagemaker.fleets import check_weights
from tritonstack_local.emulator.sagemaker.records import (
    ENDPOINT,
    ENDPOINT_CONFIG,
    MODEL,
    Record,
    check_execution_role,
    refused,
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
        """CreateModel: one container with an image, and a role to assume."""
        for member in ("PrimaryContainer", "ExecutionRoleArn"):
            if member not in request:
                raise refused(f"{member} must be specified.", "CreateModel")
        container = request["PrimaryContainer"]
        if "Image" not in container:
            raise refused("A container must have an Image.", "CreateModel")
        if container.get("MultiModelConfig") and container.get("Mode") != "MultiModel":
            raise refused("MultiModelConfig can only be specified for a container in MultiModel mode.", "CreateModel")
        check_execution_role(request["ExecutionRoleArn"])
        check_model_data(request)
        record = Record(name=request["ModelName"], arn=MODEL.arn(request["ModelName"]), request=request)
        with self._state.changed:
            self._state.models.add(record)
            store(self._state, record.arn, request.get("Tags", []))
        return {"ModelArn": record.arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeModel."""
        record = self._state.models.get(request["ModelName"])
        return {"EnableNetworkIsolation": False, **_kept(record), "ModelArn": record.arn}

    def delete(self, request: Request) -> None:
        """DeleteModel: "deletes only the model entry"; an endpoint that uses it goes on (API reference)."""
        with self._state.changed:
            record = self._state.models.remove(request["ModelName"])
            self._state.tags.pop(record.arn, None)


def _kept(record: Record) -> dict[str, Any]:
    """What was asked for, without its tags, and when."""
    return {name: value for name, value in record.request.items() if name != "Tags"} | {"CreationTime": record.created}


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
        names.config_of = lambda name: found.request if (found := state.endpoint_configs.find(name)) else None

    def create(self, request: Request) -> dict[str, Any]:
        """CreateEndpointConfig: variants with instances, each of a model that exists."""
        name = request["EndpointConfigName"]
        record = Record(name=name, arn=ENDPOINT_CONFIG.arn(name), request=request)
        with self._state.changed:
            self._check_variants(request["ProductionVariants"])
            _check_metrics(request.get("MetricsConfig", {}))
            _check_key(request)
            self._state.endpoint_configs.add(record)
            store(self._state, record.arn, request.get("Tags", []))
        return {"EndpointConfigArn": record.arn}

    def _check_variants(self, variants: list[dict[str, Any]]) -> None:
        names = [variant["VariantName"] for variant in variants]
        for name, variant in zip(names, variants, strict=True):
            missing = {"ModelName", "InstanceType", "InitialInstanceCount"} - variant.keys()
            if missing:
                sentence = f"Variant {name} must have {', '.join(sorted(missing))}."
                raise refused(sentence, "CreateEndpointConfig")
            container = self._state.models.get(variant["ModelName"]).request["PrimaryContainer"]
            if len(variants) > 1 and container.get("Mode") == "MultiModel":
                raise RefusedError(
                    "ValidationException",
                    f"Model {variant['ModelName']} of variant {name} is a multi-model container, which an endpoint with"
                    f" several production variants cannot have: {', '.join(names)}.",
                    source="SageMaker developer guide, Model deployment feature matrix",
                )
        if len(set(names)) < len(names):
            sentence = f"The names of production variants must differ: {', '.join(names)}."
            raise RefusedError("ValidationException", sentence, source="github.com/mlflow/mlflow/pull/6486")
        check_weights([variant.get("InitialVariantWeight", 1.0) for variant in variants], "CreateEndpointConfig")

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeEndpointConfig."""
        record = self._state.endpoint_configs.get(request["EndpointConfigName"])
        kept = _kept(record)
        kept["MetricsConfig"] = METRICS_DEFAULTS | kept.get("MetricsConfig", {})
        return {**kept, "EndpointConfigArn": record.arn}

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


def _check_metrics(metrics: dict[str, Any]) -> None:
    seconds = metrics.get("MetricPublishFrequencyInSeconds", PUBLISH_SECONDS[0])
    if seconds not in PUBLISH_SECONDS:
        valid = ", ".join(map(str, PUBLISH_SECONDS))
        sentence = f"MetricPublishFrequencyInSeconds is {seconds}; valid values: {valid}."
        raise refused(sentence, "CreateEndpointConfig, MetricsConfig")


def _check_key(request: Request) -> None:
    """Refuse a key of instances with local storage: the call fails with one (API reference, CreateEndpointConfig)."""
    for variant in request["ProductionVariants"] if "KmsKeyId" in request else ():
        kind = load_catalogue().instance(variant["InstanceType"])
        if kind is not None and kind.local_nvme_gb:
            sentence = f"KmsKeyId: {kind.name} has local storage and takes no key."
            raise refused(sentence, "CreateEndpointConfig, KmsKeyId")


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
