"""Whether an endpoint is in single-model mode: asked only when a call with TargetModel was refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError


class SingleModelEndpoints:
    """The endpoints known to be in single-model mode, whose calls carry no TargetModel. Thread safe."""

    def __init__(self, sagemaker: Callable[[], Any]) -> None:
        """Takes a function that gives the boto3 SageMaker client."""
        self._sagemaker = sagemaker
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def __contains__(self, endpoint_name: object) -> bool:
        """Whether a look found this endpoint (by its SageMaker name) to be in single-model mode."""
        with self._lock:
            return endpoint_name in self._known

    def look(self, endpoint_name: str) -> bool:
        """Read the endpoint's model and remember whether it is in single-model mode.

        False where it is in multi-model mode, or where this caller may not describe it.
        """
        try:
            client = self._sagemaker()
            endpoint = client.describe_endpoint(EndpointName=endpoint_name)
            config = client.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
            model = client.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
        except (ClientError, BotoCoreError):
            return False
        containers = [model["PrimaryContainer"]] if "PrimaryContainer" in model else model.get("Containers", [])
        single = bool(containers) and containers[0].get("Mode", "SingleModel") == "SingleModel"
        with self._lock:
            if single:
                self._known.add(endpoint_name)
            else:
                self._known.discard(endpoint_name)
        return single
