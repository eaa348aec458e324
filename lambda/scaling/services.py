"""The services that the function talks to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..shared.clients import client

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling.client import ApplicationAutoScalingClient
    from mypy_boto3_sagemaker.client import SageMakerClient


@dataclass(frozen=True)
class Aws:
    """SageMaker and Application Auto Scaling."""

    sagemaker: SageMakerClient
    scaling: ApplicationAutoScalingClient

    @classmethod
    def of_session(cls) -> Aws:
        """With the function's role."""
        return cls(client("sagemaker"), client("application-autoscaling"))
