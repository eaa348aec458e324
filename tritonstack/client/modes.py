"""An endpoint's mode, read where its serving stack wrote it: the outputs parameter beside its release records.

``docs/outputs.md`` has the contract of that parameter; ``mode`` is in it since its first version.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.cache import TimedCache
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.naming import outputs_parameter

CONTRACT = 1
"""The contract of outputs that a client reads: ``tritonstack.outputs.contract``, which a test compares with it."""
MODE_SECONDS = 900.0
"""A mode changes with a deployment only, and a refused request reads it again at once: seldom is often enough."""
ACCESS_DENIED = frozenset({"AccessDeniedException", "AccessDenied"})


@dataclass(frozen=True, kw_only=True)
class EndpointMode:
    """Whether requests carry a TargetModel.

    Attributes:
        multi_model: they do.
        unread: why the mode could not be read, and what to do; multi-model is assumed then. Empty: it was read.
    """

    multi_model: bool = True
    unread: str = ""


class EndpointModes:
    """The modes of one environment's endpoints. Thread safe."""

    def __init__(self, *, environment: str, ssm: Callable[[], Any], now: Callable[[], float]) -> None:
        """Takes a function that gives the boto3 SSM client, and a monotonic clock."""
        self._environment = environment
        self._ssm = ssm
        self._modes: TimedCache[str, EndpointMode] = TimedCache(
            seconds=MODE_SECONDS, now=now, stale_errors=(ReleaseLookupError,)
        )

    def mode(self, endpoint: str, *, loaded_since: float = float("-inf")) -> EndpointMode:
        """The mode of an endpoint (its own name, without its environment), read at ``loaded_since`` or later.

        Raises:
            ReleaseLookupError: SSM gives no answer, or the parameter is damaged or of another contract.
        """
        return self._modes.get(endpoint, lambda: self._read(endpoint), loaded_since=loaded_since)

    def _read(self, endpoint: str) -> EndpointMode:
        name = outputs_parameter(environment=self._environment, stack=f"serving-{endpoint}")
        deploy = f"cdk deploy '{self._environment}/serving-{endpoint}'"
        try:
            value = str(self._ssm().get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            if code == "ParameterNotFound":
                # Deployed by a version before outputs. Such a stack's endpoints go on as they were called then.
                return EndpointMode(unread=f"there is no parameter {name}\n  do: {deploy} writes it")
            if code in ACCESS_DENIED:
                allow = "allow this caller ssm:GetParameter on it (docs/clients.md)"
                return EndpointMode(unread=f"this caller may not read the parameter {name}\n  do: {allow}")
            raise ReleaseLookupError(f"the endpoint's mode cannot be read from {name}: {error}") from error
        except BotoCoreError as error:
            raise ReleaseLookupError(f"the endpoint's mode cannot be read from {name}: {error}") from error
        return EndpointMode(multi_model=_multi_model(value, name=name, deploy=deploy))


def _multi_model(value: str, *, name: str, deploy: str) -> bool:
    """The mode that a parameter's value holds. Raises ReleaseLookupError where it holds none by this contract."""
    try:
        outputs = json.loads(value)
        contract, mode = outputs["contract"], outputs.get("mode")
    except (ValueError, KeyError, TypeError, AttributeError):
        contract = mode = None
    if isinstance(contract, int) and contract > CONTRACT:
        raise ReleaseLookupError(
            f"{name} is of contract {contract}, and this version of tritonstack reads contract {CONTRACT}\n"
            "  do: use the tritonstack that deployed the endpoint"
        )
    if contract != CONTRACT or mode not in ("multi-model", "single-model"):
        raise ReleaseLookupError(
            f"{name} holds {value[:60]!r}; allowed: what the stack wrote, with mode multi-model or single-model\n"
            f"  do: {deploy} after a change, or put the stack's own value back"
        )
    return bool(mode == "multi-model")
