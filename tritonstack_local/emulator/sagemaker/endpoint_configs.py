"""CreateEndpointConfig, DescribeEndpointConfig, DeleteEndpointConfig."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker import tags
from tritonstack_local.emulator.sagemaker.records import API, ENDPOINT_CONFIG, Record
from tritonstack_local.emulator.sagemaker.state import SageMakerState

Request = dict[str, Any]
logger = logging.getLogger("tritonstack.emulator")

PUBLISH_SECONDS = (10, 30, 60, 120, 180, 240, 300)
"""Which ``MetricPublishFrequencyInSeconds`` there are (API reference, MetricsConfig; botocore's model has no list)."""
METRICS_DEFAULTS = {"EnableDetailedObservability": True}
"""What a configuration made today has unless told otherwise (developer guide, "Getting started with detailed
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
                raise _refused(f"The production variant name {name} is used {count} times.", "CreateEndpointConfig")
        name = request["EndpointConfigName"]
        record = Record(name=name, arn=ENDPOINT_CONFIG.arn(name), request=request)
        with self._state.changed:
            for variant in variants:
                self._check_variant(variant)
                _check_routing(variant)
            _check_metrics(request.get("MetricsConfig", {}))
            self._state.endpoint_configs.add(record)
            tags.store(self._state, record.arn, request.get("Tags", []))
        return {"EndpointConfigArn": record.arn}

    def _check_variant(self, variant: dict[str, Any]) -> None:
        if "ModelName" in variant:
            self._state.models.get(variant["ModelName"])
        elif "ServerlessConfig" in variant:
            raise _refused(f"Variant {variant['VariantName']} names no model.", "CreateEndpointConfig")
        instances = {"InstanceType", "InitialInstanceCount"} <= variant.keys() or "InstancePools" in variant
        if instances == ("ServerlessConfig" in variant):
            raise _refused(
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
        page says what is lost then, the SageMaker SDK deletes it before the endpoint (``Predictor.delete_endpoint``),
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
    raise _refused(sentence, "CreateEndpointConfig, ProductionVariantRoutingConfig")


def _check_metrics(metrics: dict[str, Any]) -> None:
    seconds = metrics.get("MetricPublishFrequencyInSeconds", PUBLISH_SECONDS[0])
    if seconds not in PUBLISH_SECONDS:
        raise _refused(
            f"MetricPublishFrequencyInSeconds is {seconds}; valid values: {', '.join(map(str, PUBLISH_SECONDS))}.",
            "CreateEndpointConfig, MetricsConfig",
        )


def _refused(sentence: str, operation: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{API}, {operation}")
