"""Environment files: what to deploy where, as typed settings."""

from tritonstack.settings.checks import check_backends
from tritonstack.settings.container import ContainerSettings
from tritonstack.settings.endpoint import Endpoint, LocalSettings, Timeouts
from tritonstack.settings.environment import ArtifactSettings, Environment
from tritonstack.settings.loader import load_environment, load_environments

__all__ = [
    "ArtifactSettings",
    "ContainerSettings",
    "Endpoint",
    "Environment",
    "LocalSettings",
    "Timeouts",
    "check_backends",
    "load_environment",
    "load_environments",
]
