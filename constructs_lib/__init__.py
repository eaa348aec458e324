"""Constructs for Triton on SageMaker, usable from any CDK app: one noun a file, keyword-only typed arguments.

The names below are what other apps use; each is read when it is first named, so that an app pays for no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constructs_lib.activation import Activation as Activation
    from constructs_lib.activation import Verification as Verification
    from constructs_lib.artifact_bucket import ArchiveStore as ArchiveStore
    from constructs_lib.artifact_bucket import ArtifactBucket as ArtifactBucket
    from constructs_lib.artifact_bucket import ArtifactBucketReference as ArtifactBucketReference
    from constructs_lib.artifact_bucket import OwnBucket as OwnBucket
    from constructs_lib.endpoint import CallableEndpoint as CallableEndpoint
    from constructs_lib.endpoint import Endpoint as Endpoint
    from constructs_lib.endpoint import Fleet as Fleet
    from constructs_lib.endpoint import MetricOptions as MetricOptions
    from constructs_lib.monitoring import Alarms as Alarms
    from constructs_lib.monitoring import AlarmTopic as AlarmTopic
    from constructs_lib.monitoring import Dashboard as Dashboard
    from constructs_lib.monitoring import EndpointLog as EndpointLog
    from constructs_lib.multi_model_endpoint import MultiModelEndpoint as MultiModelEndpoint
    from constructs_lib.network import Network as Network
    from constructs_lib.network import NetworkReference as NetworkReference
    from constructs_lib.permission import JoinedNetwork as JoinedNetwork
    from constructs_lib.triton_model import ExecutionRole as ExecutionRole
    from constructs_lib.triton_model import MultiModelData as MultiModelData
    from constructs_lib.triton_model import SingleModelData as SingleModelData
    from constructs_lib.triton_model import TritonImage as TritonImage
    from constructs_lib.triton_model import TritonModel as TritonModel
    from tritonstack.config import ContainerSettings as ContainerSettings
    from tritonstack.config import EndpointMetrics as EndpointMetrics
    from tritonstack.config import Rollout as Rollout
    from tritonstack.config import Scaling as Scaling
    from tritonstack.config import Timeouts as Timeouts

_MODULES = {
    "Activation": "constructs_lib.activation",
    "AlarmTopic": "constructs_lib.monitoring",
    "Alarms": "constructs_lib.monitoring",
    "ArchiveStore": "constructs_lib.artifact_bucket",
    "ArtifactBucket": "constructs_lib.artifact_bucket",
    "ArtifactBucketReference": "constructs_lib.artifact_bucket",
    "CallableEndpoint": "constructs_lib.endpoint",
    "ContainerSettings": "tritonstack.config",
    "Dashboard": "constructs_lib.monitoring",
    "Endpoint": "constructs_lib.endpoint",
    "EndpointLog": "constructs_lib.monitoring",
    "EndpointMetrics": "tritonstack.config",
    "ExecutionRole": "constructs_lib.triton_model",
    "Fleet": "constructs_lib.endpoint",
    "JoinedNetwork": "constructs_lib.permission",
    "MetricOptions": "constructs_lib.endpoint",
    "MultiModelData": "constructs_lib.triton_model",
    "MultiModelEndpoint": "constructs_lib.multi_model_endpoint",
    "Network": "constructs_lib.network",
    "NetworkReference": "constructs_lib.network",
    "OwnBucket": "constructs_lib.artifact_bucket",
    "Rollout": "tritonstack.config",
    "Scaling": "tritonstack.config",
    "SingleModelData": "constructs_lib.triton_model",
    "Timeouts": "tritonstack.config",
    "TritonImage": "constructs_lib.triton_model",
    "TritonModel": "constructs_lib.triton_model",
    "Verification": "constructs_lib.activation",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    """A public name, from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(_MODULES)
