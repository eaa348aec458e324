"""Environment files: what to deploy where, as typed settings."""

from tritonstack.settings.checks import check_archives, with_archives, with_default_models
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
    "check_archives",
    "load_environment",
    "load_environments",
    "with_archives",
    "with_default_models",
]
