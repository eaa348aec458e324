"""Instances that endpoints do not get: the account's quota of a type is used up, or AWS has none of it.

The local AWS has as many as anybody wants; a fault takes them away (``faults``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.records import API
from tritonstack_local.emulator.sagemaker.state import SageMakerState

NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. Please retry using a "
    "different ML instance type or after some time. Consider configuring InstancePools in your EndpointConfig with "
    "multiple instance types for priority-based fallback to improve capacity availability."
)
"""The FailureReason of an endpoint (aws/deep-learning-containers, pull request 6673, from a failed deployment)."""
LIMIT = "ResourceLimitExceeded"
Variant = Mapping[str, Any]


class Instances:
    """What stands between a request for instances and the instances."""

    def __init__(self, state: SageMakerState) -> None:
        """Counts what the endpoints of ``state`` have."""
        self._state = state
        self.short_of: Callable[[str, str], bool] = lambda _instance_type, _what: False
        """Whether new instances of a type are to be refused for want of ``limit`` or ``capacity`` (``faults``)."""

    def check_limit(self, config_name: str, operation: str, *, added: int | None = None) -> None:
        """Refuse a request for instances beyond the account's quota.

        The sentence is SageMaker's (developer guide, "Check the status of a scaling activity by describing scaling
        activities").

        Args:
            config_name: whose variants are asked for.
            operation: that asks.
            added: how many, where they are added to a fleet; None: as many as the config says.
        """
        for variant in _variants(self._state, config_name):
            kind, count = variant.get("InstanceType", ""), added or variant.get("InitialInstanceCount", 1)
            if self.short_of(kind, "limit"):
                used = self._used(kind)
                raise RefusedError(
                    LIMIT,
                    f"The account-level service limit '{kind} for endpoint usage' is {used} Instances, with current "
                    f"utilization of {used} Instances and a request delta of {count} Instances. Please use "
                    "AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not available, "
                    f"contact AWS support to request an increase for this quota. (Error Code: {LIMIT})",
                    source=f"{API}, {operation}",
                )

    def lacking(self, config_name: str) -> str | None:
        """Why a fleet of this config cannot be had; None where it can."""
        kinds = [variant.get("InstanceType", "") for variant in _variants(self._state, config_name)]
        lacks = any(self.short_of(kind, "capacity") for kind in kinds)
        return NO_CAPACITY if lacks else None

    def _used(self, kind: str) -> int:
        """Instances of a type that the account's endpoints have."""
        used = 0
        for record in self._state.endpoints:
            variants = _variants(self._state, record.config_name)
            names = {variant["VariantName"] for variant in variants if variant.get("InstanceType") == kind}
            used += sum(each["CurrentInstanceCount"] for each in record.variants if each["VariantName"] in names)
        return used


def _variants(state: SageMakerState, config_name: str) -> Sequence[Variant]:
    """The variants of a config; none where it was deleted."""
    found = [config for config in state.endpoint_configs if config.name == config_name]
    return [variant for config in found for variant in config.request["ProductionVariants"]]
