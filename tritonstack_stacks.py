"""In a checkout: ``stacks`` under the name that a wheel gives it, so that examples read the same in both."""

from stacks import EnvironmentStage

__all__ = ["EnvironmentStage"]
