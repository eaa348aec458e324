"""Environment files: what to deploy where, as typed settings."""

from tritonstack.config.alarms import AlarmSettings, Thresholds
from tritonstack.config.archives import check_archives, with_archives, with_default_models
from tritonstack.config.builds import BuildNetwork, BuildSettings
from tritonstack.config.container import ContainerSettings
from tritonstack.config.endpoint import (
    DataCapture,
    Endpoint,
    EndpointMetrics,
    LocalSettings,
    Timeouts,
    VerificationSettings,
)
from tritonstack.config.environment import ArtifactSettings, Environment, LogSettings, engines_built_on_deploy
from tritonstack.config.load_test import GateSettings, LoadTestSettings
from tritonstack.config.loader import load_environment, load_environments
from tritonstack.config.network import CreatedNetwork, ImportedNetwork, NetworkSettings
from tritonstack.config.rollout import Rollout
from tritonstack.config.scaling import Scaling, Schedule

__all__ = [
    "AlarmSettings",
    "ArtifactSettings",
    "BuildNetwork",
    "BuildSettings",
    "ContainerSettings",
    "CreatedNetwork",
    "DataCapture",
    "Endpoint",
    "EndpointMetrics",
    "Environment",
    "GateSettings",
    "ImportedNetwork",
    "LoadTestSettings",
    "LocalSettings",
    "LogSettings",
    "NetworkSettings",
    "Rollout",
    "Scaling",
    "Schedule",
    "Thresholds",
    "Timeouts",
    "VerificationSettings",
    "check_archives",
    "engines_built_on_deploy",
    "load_environment",
    "load_environments",
    "with_archives",
    "with_default_models",
]
