"""SageMaker's operations by name; models and endpoint configs."""

from __future__ import annotations

import logging
import types
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack_local.emulator.iam.service_calls import key_arn, names
from tritonstack_local.emulator.processing.container import PROCESSING_JOB
from tritonstack_local.emulator.processing.jobs import ProcessingJobs
from tritonstack_local.emulator.recommender import ModelPackages, RecommendationJobs
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.components import Components
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.fleets import check_model_data, check_weights, shown_metrics
from tritonstack_local.emulator.sagemaker.pools import check_pools, models_of, types_of
from tritonstack_local.emulator.sagemaker.records import (
    ENDPOINT,
    ENDPOINT_CONFIG,
    MODEL,
    Record,
    check_execution_role,
    refused,
)
from tritonstack_local.emulator.sagemaker.state import SageMakerState, Tags, listing, store
from tritonstack_local.emulator.services import JsonService

Request = dict[str, Any]


class Models:
    """The operations on models."""

    def __init__(self, state: SageMakerState) -> None:
        self._state = state

    def create_model(self, request: Request) -> dict[str, Any]:
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

    def describe_model(self, request: Request) -> dict[str, Any]:
        record = self._state.models.get(request["ModelName"])
        return {"EnableNetworkIsolation": False, **_kept(record), "ModelArn": record.arn}

    def delete_model(self, request: Request) -> None:
        """DeleteModel: "deletes only the model entry"; an endpoint that uses it goes on (API reference)."""
        with self._state.changed:
            record = self._state.models.remove(request["ModelName"])
            self._state.tags.pop(record.arn, None)


def _kept(record: Record) -> dict[str, Any]:
    """The request of a record, without its tags, and its time."""
    return {name: value for name, value in record.request.items() if name != "Tags"} | {"CreationTime": record.created}


logger = logging.getLogger("tritonstack.emulator")

PUBLISH_SECONDS = (10, 30, 60, 120, 180, 240, 300)
"""Which ``MetricPublishFrequencyInSeconds`` there are (API reference, MetricsConfig; botocore's model has no list)."""


class EndpointConfigs:
    """The operations on endpoint configs."""

    def __init__(self, state: SageMakerState) -> None:
        self._state = state
        names["volume_key"] = self._volume_key

    def create_endpoint_config(self, request: Request) -> dict[str, Any]:
        """CreateEndpointConfig: variants with instances, each of a model that exists."""
        name = request["EndpointConfigName"]
        record = Record(name=name, arn=ENDPOINT_CONFIG.arn(name), request=request)
        with self._state.changed:
            self._check_variants(request["ProductionVariants"])
            _check_for_components(request)
            _check_metrics(request.get("MetricsConfig", {}))
            _check_reservations(request["ProductionVariants"])
            _check_key(request)
            self._state.endpoint_configs.add(record)
            store(self._state, record.arn, request.get("Tags", []))
        return {"EndpointConfigArn": record.arn}

    def _volume_key(self, name: str) -> str | None:
        config = self._state.endpoint_configs.find(name)
        return key_arn(config.request["KmsKeyId"]) if config is not None and "KmsKeyId" in config.request else None

    def _check_variants(self, variants: list[dict[str, Any]]) -> None:
        names = [variant["VariantName"] for variant in variants]
        for name, variant in zip(names, variants, strict=True):
            type_of = "InstancePools" if variant.get("InstancePools") else "InstanceType"
            missing = {type_of, "InitialInstanceCount"} - variant.keys()
            if missing:
                sentence = f"Variant {name} must have {', '.join(sorted(missing))}."
                raise refused(sentence, "CreateEndpointConfig")
            if "ModelName" not in variant:
                continue
            container = self._state.models.get(variant["ModelName"]).request["PrimaryContainer"]
            for model in models_of(variant):
                self._state.models.get(model)
            check_pools(variant, multi_model=container.get("Mode") == "MultiModel")
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

    def describe_endpoint_config(self, request: Request) -> dict[str, Any]:
        record = self._state.endpoint_configs.get(request["EndpointConfigName"])
        kept = _kept(record)
        kept["MetricsConfig"] = shown_metrics(kept)
        return {**kept, "EndpointConfigArn": record.arn}

    def delete_endpoint_config(self, request: Request) -> None:
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


def _check_for_components(request: Request) -> None:
    """Refuse a config whose variants cannot run inference components as they are to.

    The sentence on managed scaling: hashicorp/terraform-provider-aws, issue 45926. A config for components without an
    execution role ends in 400 (stdapi.ai, issue 43); its sentence is UNVERIFIED.
    """
    for variant in request["ProductionVariants"]:
        name, managed = variant["VariantName"], variant.get("ManagedInstanceScaling") or {}
        if "ModelName" in variant:
            if managed:
                sentence = "ManagedInstanceScaling is only supported for inference component endpoints."
                raise refused(sentence, "CreateEndpointConfig")
            continue
        if "ExecutionRoleArn" not in request:
            sentence = f"ExecutionRoleArn is required: variant {name} has no ModelName."
            raise refused(sentence, "CreateEndpointConfig")
        least = managed.get("MinInstanceCount", 0)
        most = managed.get("MaxInstanceCount", least)
        if most < least:
            sentence = f"MaxInstanceCount {most} of variant {name} is less than its MinInstanceCount {least}."
            raise refused(sentence, "ProductionVariantManagedInstanceScaling (derived)")
    if "ExecutionRoleArn" in request:
        check_execution_role(request["ExecutionRoleArn"])


def _check_reservations(variants: list[dict[str, Any]]) -> None:
    """Refuse two plans: "You can use exactly one plan per inference endpoint". SageMaker's sentence is UNVERIFIED."""
    given = [each.get("CapacityReservationConfig", {}).get("MlReservationArn") for each in variants]
    if len(set(given)) > 1:
        raise RefusedError(
            "ValidationException",
            f"The production variants of an endpoint must use one capacity reservation, not {given}.",
            source="SageMaker developer guide, Deploy an inference endpoint (training plans)",
        )


def _check_key(request: Request) -> None:
    """Refuse a key of instances with local storage: the call fails with one (API reference, CreateEndpointConfig)."""
    for variant in request["ProductionVariants"] if "KmsKeyId" in request else ():
        for kind in map(load_catalogue().instance, types_of(variant)):
            if kind is not None and kind.local_nvme_gb:
                sentence = f"KmsKeyId: {kind.name} has local storage and takes no key."
                raise refused(sentence, "CreateEndpointConfig, KmsKeyId")


def sagemaker_service(
    state: SageMakerState, endpoints: Endpoints, components: Components, jobs: ProcessingJobs
) -> JsonService:
    """SageMaker as far as hosting, processing and Inference Recommender go."""
    packages = ModelPackages(state)
    lists = types.SimpleNamespace(
        list_models=lambda request: listing(MODEL, state.models, request),
        list_endpoint_configs=lambda request: listing(ENDPOINT_CONFIG, state.endpoint_configs, request),
        list_endpoints=lambda request: listing(ENDPOINT, state.endpoints, request),
        list_processing_jobs=lambda request: listing(PROCESSING_JOB, state.processing_jobs, request),
    )
    owners = (
        Models(state),
        EndpointConfigs(state),
        endpoints,
        components,
        jobs,
        packages,
        RecommendationJobs(state, packages),
        Tags(state),
        lists,
    )

    return JsonService(*owners, service="sagemaker", target_prefix="SageMaker")
