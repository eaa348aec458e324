"""Environment files: what to deploy where, as typed settings."""

from tritonstack.config.alarms import AlarmSettings, Thresholds
from tritonstack.config.builds import BuildNetwork, BuildSettings
from tritonstack.config.checks import check_archives, with_archives, with_default_models
from tritonstack.config.container import ContainerSettings
from tritonstack.config.data_capture import DataCapture
from tritonstack.config.endpoint import Endpoint, EndpointMetrics, LocalSettings, Timeouts
from tritonstack.config.environment import ArtifactSettings, Environment, engines_built_on_deploy
from tritonstack.config.load_test import GateSettings, LoadTestSettings
from tritonstack.config.loader import load_environment, load_environments
from tritonstack.config.logs import LogSettings
from tritonstack.config.network import CreatedNetwork, ImportedNetwork, NetworkSettings
from tritonstack.config.rollout import Rollout
from tritonstack.config.scaling import Scaling, Schedule
from tritonstack.config.verification import VerificationSettings

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
