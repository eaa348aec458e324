"""Environment files: what to deploy where, as typed settings."""

from tritonstack.settings.alarms import AlarmSettings, Thresholds
from tritonstack.settings.builds import BuildNetwork, BuildSettings
from tritonstack.settings.checks import check_archives, with_archives, with_default_models
from tritonstack.settings.container import ContainerSettings
from tritonstack.settings.data_capture import DataCapture
from tritonstack.settings.endpoint import Endpoint, EndpointMetrics, LocalSettings, Timeouts
from tritonstack.settings.environment import ArtifactSettings, Environment, engines_built_on_deploy
from tritonstack.settings.load_test import GateSettings, LoadTestSettings
from tritonstack.settings.loader import load_environment, load_environments
from tritonstack.settings.logs import LogSettings
from tritonstack.settings.network import CreatedNetwork, ImportedNetwork, NetworkSettings
from tritonstack.settings.rollout import Rollout
from tritonstack.settings.scaling import Scaling, Schedule
from tritonstack.settings.verification import VerificationSettings

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
