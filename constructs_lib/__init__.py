"""Constructs for Triton on SageMaker, usable from any CDK app: one noun a file, keyword-only typed arguments.

The names below are for other apps. A module is imported when one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tritonstack.extensions import require_modules

if TYPE_CHECKING:
    from constructs_lib.artifact_bucket import OwnBucket
    from constructs_lib.endpoint import CallableEndpoint, Endpoint, ProductionVariant, VariantInstances
    from constructs_lib.joined_network import JoinedNetwork
    from constructs_lib.multi_model_endpoint import MultiModelEndpoint
    from constructs_lib.triton_model import ExecutionRole, MultiModelData, SingleModelData, TritonImage, TritonModel
    from tritonstack.config import ContainerSettings, EndpointMetrics, Rollout, Scaling, Timeouts
    from tritonstack.naming import EndpointReference

__all__ = [
    "CallableEndpoint", "ContainerSettings", "Endpoint", "EndpointMetrics", "EndpointReference", "ExecutionRole",
    "JoinedNetwork", "MultiModelData", "MultiModelEndpoint", "OwnBucket", "ProductionVariant", "Rollout", "Scaling",
    "SingleModelData", "Timeouts", "TritonImage", "TritonModel", "VariantInstances",
]  # fmt: skip
_MODULES = {  # all others are settings
    "constructs_lib.artifact_bucket": {"OwnBucket"},
    "constructs_lib.endpoint": {"CallableEndpoint", "Endpoint", "ProductionVariant", "VariantInstances"},
    "constructs_lib.joined_network": {"JoinedNetwork"},
    "constructs_lib.multi_model_endpoint": {"MultiModelEndpoint"},
    "tritonstack.naming": {"EndpointReference"},
    "constructs_lib.triton_model": {"ExecutionRole", "MultiModelData", "SingleModelData", "TritonImage", "TritonModel"},
}


def __getattr__(name: str) -> object:
    """A public name, from its module."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = next((each for each, names in _MODULES.items() if name in names), "tritonstack.config")
    if module.startswith("constructs_lib"):
        require_modules("aws_cdk", "constructs")  # its message is the command that installs them
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
