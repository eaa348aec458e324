"""The environment's CloudFormation stacks: which ones a deployment has, their states, and what they made."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritonstack.engines.order import Served
from tritonstack.preflight.once import Once
from tritonstack.read_only_aws import NotKnownError, ReadOnlyCalls
from tritonstack.releases.deployed import stack_name
from tritonstack.settings import engines_built_on_deploy

_NO_STACK = "does not exist"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One stack as CloudFormation describes it.

    Attributes:
        status: its state (``UPDATE_COMPLETE``).
        reason: of that state, or empty.
        protected: whether termination protection is on.
    """

    status: str
    reason: str
    protected: bool


class Stacks:
    """Each stack and its resources are read once, whoever asks."""

    def __init__(self, calls: ReadOnlyCalls) -> None:
        """``calls``: of the environment's account and region."""
        self._calls = calls
        self._lock = threading.Lock()
        self._stacks: dict[str, Once[Stack | None]] = {}
        self._resources: dict[str, Once[Mapping[str, tuple[str, ...]]]] = {}

    def get(self, name: str) -> Stack | None:
        """The stack; None where there is none. Raises :class:`NotKnownError`."""
        with self._lock:
            found = self._stacks.setdefault(name, Once(lambda: self._describe(name)))
        return found.get()

    def made(self, name: str, resource_type: str) -> tuple[str, ...]:
        """The physical ids of a stack's resources of a type; none where there is no stack. Raises as ``get``."""
        with self._lock:
            found = self._resources.setdefault(name, Once(lambda: self._list(name)))
        return found.get().get(resource_type, ())

    def _describe(self, name: str) -> Stack | None:
        try:
            rows = self._calls.must("cloudformation", "describe_stacks", StackName=name)["Stacks"]
        except NotKnownError as error:
            if _NO_STACK in error.found:  # CloudFormation has no code of its own for it (ValidationError)
                return None
            raise
        row: dict[str, Any] = rows[0]
        return Stack(
            status=row["StackStatus"],
            reason=row.get("StackStatusReason", ""),
            protected=bool(row.get("EnableTerminationProtection")),
        )

    def _list(self, name: str) -> dict[str, tuple[str, ...]]:
        if self.get(name) is None:
            return {}
        found: dict[str, list[str]] = {}
        rows = self._calls.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
        for row in rows:
            if row.get("PhysicalResourceId") and row.get("ResourceStatus") != "DELETE_COMPLETE":
                found.setdefault(row["ResourceType"], []).append(row["PhysicalResourceId"])
        return {kind: tuple(ids) for kind, ids in found.items()}


def stack_names(served: Served) -> tuple[str, ...]:
    """The stacks that a deployment of the environment has, in its order (``stacks/stage.py`` makes them)."""
    environment = served.environment
    name = environment.environment
    names = [f"{name}-artifacts"]
    if environment.network is not None:
        names.append(f"{name}-network")
    if engines_built_on_deploy(environment, bool(served.engines.builds)):
        names.append(f"{name}-builds")
    names += [stack_name(environment=name, endpoint=endpoint.name) for endpoint in environment.endpoints]
    if environment.dashboard or environment.alarms is not None:
        names.append(f"{name}-observability")
    return tuple(names)
