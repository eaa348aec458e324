"""Environment files: what to deploy where, as typed settings.

The names below are imported with the first of them that is used: reading a recipe, or linting a folder, needs none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonstack.config.alarms import AlarmSettings, Thresholds
    from tritonstack.config.builds import BuildSettings
    from tritonstack.config.container import ContainerSettings
    from tritonstack.config.endpoint import EndpointSettings, Timeouts
    from tritonstack.config.endpoint_metrics import EndpointMetrics
    from tritonstack.config.environment import Environment, engines_built_on_deploy
    from tritonstack.config.load_test import GateSettings, LoadTestSettings
    from tritonstack.config.loader import load_environment, load_environments
    from tritonstack.config.network import CreatedNetwork, ImportedNetwork, NetworkSettings
    from tritonstack.config.rollout import Rollout
    from tritonstack.config.scaling import Scaling

__all__ = [
    "AlarmSettings",
    "BuildSettings",
    "ContainerSettings",
    "CreatedNetwork",
    "EndpointMetrics",
    "EndpointSettings",
    "Environment",
    "GateSettings",
    "ImportedNetwork",
    "LoadTestSettings",
    "NetworkSettings",
    "Rollout",
    "Scaling",
    "Thresholds",
    "Timeouts",
    "engines_built_on_deploy",
    "load_environment",
    "load_environments",
]

_MODULES = (
    "alarms", "builds", "container", "endpoint", "endpoint_metrics", "environment", "load_test",
    "loader", "network", "rollout", "scaling",
)  # fmt: skip


if not TYPE_CHECKING:  # else every wrong name would pass the type checker

    def __getattr__(name: str) -> Any:
        """Import every module on the first use of a name of ``__all__`` (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        for module in map(importlib.import_module, (f"{__name__}.{each}" for each in _MODULES)):
            globals().update({each: getattr(module, each) for each in __all__ if hasattr(module, each)})
        return globals()[name]
