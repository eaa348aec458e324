"""Endpoints whose number of instances changes: by hand, and as targets of Application Auto Scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.deployment import EndpointRecord, Guardrails
from tritonstack_local.emulator.sagemaker.records import API
from tritonstack_local.emulator.sagemaker.state import SageMakerState

_GUIDE = "SageMaker developer guide"
Variant = dict[str, Any]


def check_scaled(state: SageMakerState, record: EndpointRecord, config_name: str) -> None:
    """Refuse an update that takes away a variant which is a scalable target, or gives it another instance type.

    A change of its model passes (developer guide, "Update endpoints that use auto scaling").
    """
    before = _instance_types(state, record.config_name)
    after = _instance_types(state, config_name)
    changed = sorted(
        name for name in state.scaled_variants(record.name) if name not in after or after[name] != before.get(name)
    )
    if changed:
        raise RefusedError(
            "ValidationException",
            f'The variant(s) "[{", ".join(changed)}]" must be deregistered as scalable targets with AWS Auto Scaling'
            " before they can be removed or have their instance type updated.",
            source=f"{_GUIDE}, Update endpoints that use auto scaling",
        )


def check_same_variants(guardrails: Guardrails, *, before: Sequence[Variant], after: Sequence[Variant]) -> None:
    """Refuse traffic that shifts in steps between fleets with other variants.

    The guide says it of every blue/green deployment; that a whole shift passes is UNVERIFIED.
    """
    names = [{variant["VariantName"] for variant in variants} for variants in (before, after)]
    if len(guardrails.steps) > 1 and names[0] != names[1]:
        raise RefusedError(
            "ValidationException",
            "When doing a blue/green or rolling deployment, your new endpoint configuration must have the same variant"
            f" name as the old endpoint configuration: {sorted(names[1])} instead of {sorted(names[0])}.",
            source=f"{_GUIDE}, Exclusions (deployment guardrails)",
        )


def check_one_variant(guardrails: Guardrails, variants: Sequence[Variant]) -> None:
    """Refuse a rolling update of several variants.

    The guide excludes it, and says that such an endpoint goes all at once instead; that would not be seen here.
    """
    if guardrails.rolling and len(variants) > 1:
        raise RefusedError(
            "ValidationException",
            f"A rolling deployment is not available for multi-variant inference endpoints: {len(variants)} variants.",
            source=f"{_GUIDE}, Exclusions (deployment guardrails)",
        )


def scale(record: EndpointRecord, wanted: Sequence[dict[str, Any]]) -> None:
    """Give variants other numbers of instances and weights, at once: no instance takes time to start here."""
    variants = {variant["VariantName"]: dict(variant) for variant in record.variants}
    for each in wanted:
        variant = variants.get(each["VariantName"])
        if variant is None:
            raise RefusedError(
                "ValidationException",
                f"Endpoint {record.name} has no variant {each['VariantName']}; it has {', '.join(variants)}.",
                source=f"{API}, UpdateEndpointWeightsAndCapacities",
            )
        if "DesiredInstanceCount" in each:
            variant["CurrentInstanceCount"] = variant["DesiredInstanceCount"] = each["DesiredInstanceCount"]
        if "DesiredWeight" in each:
            variant["CurrentWeight"] = variant["DesiredWeight"] = each["DesiredWeight"]
    record.variants = tuple(variants.values())
    record.modified = clock.now()


def _instance_types(state: SageMakerState, config_name: str) -> dict[str, str | None]:
    """Variant → instance type, of a config."""
    variants = state.endpoint_configs.get(config_name).request["ProductionVariants"]
    return {variant["VariantName"]: variant.get("InstanceType") for variant in variants}
