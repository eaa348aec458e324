"""Whether an endpoint can be called, as far as this caller may know."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.cache import TimedCache
from tritonstack.naming import endpoint_name

STATE_SECONDS = 5.0
CALLABLE = frozenset({"InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed"})
"""Endpoint states in which a fleet answers: botocore's service model of sagemaker, DescribeEndpoint."""


class EndpointStates:
    """Endpoints' states, each read at most once in some seconds. Thread safe."""

    def __init__(
        self,
        *,
        environment: str,
        sagemaker: Callable[[], Any],
        now: Callable[[], float] = time.monotonic,
        seconds: float = STATE_SECONDS,
    ) -> None:
        """Takes a function that gives the boto3 SageMaker client."""
        self._environment = environment
        self._sagemaker = sagemaker
        self._states: TimedCache[str, str] = TimedCache(seconds=seconds, now=now)

    def unready(self, endpoint: str) -> str:
        """Why an endpoint cannot be called; empty where it can, or where nobody tells this caller."""
        return self._states.get(endpoint, lambda: self._read(endpoint))

    def _read(self, endpoint: str) -> str:
        name = endpoint_name(environment=self._environment, endpoint=endpoint)
        try:
            status = str(self._sagemaker().describe_endpoint(EndpointName=name)["EndpointStatus"])
        except ClientError as error:
            missing = "Could not find" in str(error.response.get("Error", {}).get("Message", ""))
            return f"there is no endpoint {name}" if missing else ""
        except BotoCoreError:
            return ""
        return "" if status in CALLABLE else f"endpoint {name} is {status}"
