"""What Application Auto Scaling scales: instances of an endpoint's variant, copies of an inference component.

Names: its API reference (ScalableTarget, PredefinedMetricSpecification) and user guide, "Amazon SageMaker AI and
Application Auto Scaling".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tritonstack import aws_names
from tritonstack.aws.sagemaker_rules import LOW_PERIODS
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.components import Components
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.state import SageMakerState

COPIES_LOW_PERIODS = 90
"""Periods of 10 seconds before the copies' AlarmLow is on, as a sample of AWS and a vendor's measurements saw it
(aws-samples/sagemaker-genai-hosting-examples; Hugging Face, July 2026): 15 idle minutes."""


@dataclass(frozen=True, kw_only=True)
class Predefined:
    """The metric behind a predefined metric type."""

    name: str
    statistic: str
    period: int  # seconds
    low_periods: int = LOW_PERIODS  # before AlarmLow is on
    idle_zeros: bool = True  # whether SageMaker writes zeros where no request comes


class Scalable(Protocol):
    """A kind of scalable target, by the ids of its resources."""

    dimension: str
    noun: str  # of its capacity in sentences: "Setting desired instance count to 2."
    predefined: Mapping[str, Predefined]  # by the metric type

    def check(self, resource: str) -> None:
        """Raise RefusedError where there is no such resource."""

    def count(self, resource: str) -> int | None:
        """Its desired capacity; None while it may not be scaled."""

    def scale(self, resource: str, count: int) -> str | None:
        """Give it another capacity. Returns why that failed, None where it did not. Raises RefusedError."""

    def metric_dimensions(self, resource: str) -> dict[str, str]:
        """The dimensions of its predefined metrics."""

    def tried(self, resource: str, any_name: str) -> list[tuple[str, str]]:
        """Actions that are tried with the caller's rights, each with a resource of SageMaker (``_check_caller``)."""


class VariantInstances:
    """Instances of a production variant: ``endpoint/NAME/variant/NAME``."""

    dimension = aws_names.VARIANT_INSTANCE_COUNT
    noun = "instance"
    predefined: Mapping[str, Predefined] = {
        aws_names.PREDEFINED_INVOCATIONS_PER_INSTANCE: Predefined(
            name=aws_names.INVOCATIONS_PER_INSTANCE, statistic="Sum", period=60
        ),
        # Which statistic AWS's alarm reads is UNVERIFIED.
        aws_names.PREDEFINED_CONCURRENT_REQUESTS: Predefined(
            name=aws_names.CONCURRENT_REQUESTS_PER_MODEL, statistic="Maximum", period=10
        ),
    }

    def __init__(self, state: SageMakerState, endpoints: Endpoints) -> None:
        self._state = state
        self._endpoints = endpoints

    def check(self, resource: str) -> None:
        parts = resource.split("/")
        if len(parts) == 4 and (parts[0], parts[2]) == ("endpoint", "variant"):
            endpoint = next((e for e in self._state.endpoints if e.name == parts[1]), None)
            if endpoint is not None and parts[3] in {v["VariantName"] for v in endpoint.variants}:
                return
        raise _missing(f"Endpoint variant does not exist: {resource}")

    def count(self, resource: str) -> int | None:
        _, endpoint, _, variant = resource.split("/")
        record = next((each for each in self._state.endpoints if each.name == endpoint), None)
        if record is None or record.status != "InService":
            return None
        counts = {each["VariantName"]: each["DesiredInstanceCount"] for each in record.variants}
        return counts.get(variant)

    def scale(self, resource: str, count: int) -> str | None:
        _, endpoint, _, variant = resource.split("/")
        wanted = [{"VariantName": variant, "DesiredInstanceCount": count}]
        self._endpoints.update_endpoint_weights_and_capacities(
            {"EndpointName": endpoint, "DesiredWeightsAndCapacities": wanted}
        )
        return next((each.failure_reason for each in self._state.endpoints if each.name == endpoint), None)

    def metric_dimensions(self, resource: str) -> dict[str, str]:
        _, endpoint, _, variant = resource.split("/")
        return aws_names.variant_dimensions(endpoint, variant)

    def tried(self, resource: str, any_name: str) -> list[tuple[str, str]]:
        return [
            ("sagemaker:DescribeEndpoint", f"endpoint/{resource.split('/')[1].lower()}"),
            ("sagemaker:DescribeEndpointConfig", f"endpoint-config/{any_name}"),
            ("sagemaker:UpdateEndpointWeightsAndCapacities", f"endpoint/{any_name}"),
        ]


class ComponentCopies:
    """Copies of an inference component: ``inference-component/NAME``; the only kind that may come to 0."""

    dimension = aws_names.COMPONENT_COPY_COUNT
    noun = "copy"
    predefined: Mapping[str, Predefined] = {
        # That SageMaker writes zeros of it, and so lets it come to 0, is UNVERIFIED.
        aws_names.PREDEFINED_INVOCATIONS_PER_COPY: Predefined(
            name=aws_names.INVOCATIONS_PER_COPY, statistic="Sum", period=60, idle_zeros=False
        ),
        aws_names.PREDEFINED_CONCURRENT_REQUESTS_PER_COPY: Predefined(
            name=aws_names.CONCURRENT_REQUESTS_PER_COPY, statistic="Maximum", period=10, low_periods=COPIES_LOW_PERIODS
        ),
    }

    def __init__(self, state: SageMakerState, components: Components) -> None:
        self._state = state
        self._components = components

    def check(self, resource: str) -> None:
        kind, _, name = resource.partition("/")
        if kind != "inference-component" or self._state.components.find(name) is None:
            raise _missing(f"Inference component does not exist: {resource}")

    def count(self, resource: str) -> int | None:
        record = self._state.components.find(resource.partition("/")[2])
        return record.desired if record is not None and record.status == "InService" else None

    def scale(self, resource: str, count: int) -> str | None:
        name = resource.partition("/")[2]
        self._components.update_inference_component_runtime_config(
            {"InferenceComponentName": name, "DesiredRuntimeConfig": {"CopyCount": count}}
        )
        return self._state.components.get(name).failure_reason

    def metric_dimensions(self, resource: str) -> dict[str, str]:
        return {aws_names.COMPONENT_NAME: resource.partition("/")[2]}

    def tried(self, resource: str, any_name: str) -> list[tuple[str, str]]:
        """By likeness to variants; which are tried of a component is UNVERIFIED."""
        return [
            ("sagemaker:DescribeInferenceComponent", resource.lower()),
            ("sagemaker:UpdateInferenceComponentRuntimeConfig", f"inference-component/{any_name}"),
        ]


Scalables = Mapping[str, Scalable]
"""By their dimension."""


def scalables(state: SageMakerState, endpoints: Endpoints, components: Components) -> Scalables:
    """Everything of SageMaker that is scaled here."""
    kinds: tuple[Scalable, ...] = (VariantInstances(state, endpoints), ComponentCopies(state, components))
    return {kind.dimension: kind for kind in kinds}


def _missing(sentence: str) -> RefusedError:
    source = "Application Auto Scaling API reference, RegisterScalableTarget"
    return RefusedError("ValidationException", sentence, source=source)
