"""A deployment's guardrails: in which steps the new fleet takes the calls, and which alarms are watched meanwhile.

Sources: API reference (DeploymentConfig, TrafficRoutingConfig, CapacitySize) and developer guide, "Blue/Green
Deployments". How SageMaker rounds a share of an instance is UNVERIFIED: here it is rounded down, to one at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonstack.local.emulator.refusal import RefusedError
from tritonstack.local.emulator.sagemaker.records import API

_LEAST_LINEAR, _MOST = 10, 50
_SIZES = {"CANARY": "CanarySize", "LINEAR": "LinearStepSize"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One shift of traffic.

    Attributes:
        instances: of the new fleet, that take calls from then on.
        wait_seconds: how long the alarms are watched before the next step, or before the old fleet ends.
        wait_name: the member that says so.
        capacity: what the instances are, in SageMaker's words (``canary``, ``full``).
    """

    instances: int
    wait_seconds: float
    wait_name: str
    capacity: str


@dataclass(frozen=True, kw_only=True)
class Guardrails:
    """How one deployment goes.

    Attributes:
        count: the instances of the new fleet.
        steps: in order; the last one turns every instance on.
        alarms: names of CloudWatch alarms; one in ALARM takes the deployment back.
        limit_seconds: after which an unfinished deployment is taken back; None for no limit.
    """

    count: int
    steps: tuple[Step, ...]
    alarms: tuple[str, ...]
    limit_seconds: float | None


def guardrails(config: dict[str, Any] | None, *, count: int) -> Guardrails | None:
    """The guardrails of a DeploymentConfig for a fleet of ``count`` instances; None where there are none.

    Raises:
        RefusedError: SageMaker would refuse it, or the local AWS cannot show it.
    """
    if not config:
        return None
    if "RollingUpdatePolicy" in config:
        raise RefusedError(
            "ValidationException",
            "RollingUpdatePolicy is not in the local AWS; it has BlueGreenUpdatePolicy",
            source="tritonstack.local.emulator",
        )
    policy = config.get("BlueGreenUpdatePolicy", {})
    alarms = config.get("AutoRollbackConfiguration", {}).get("Alarms", [])
    return Guardrails(
        count=count,
        steps=tuple(_steps(policy, count)),
        alarms=tuple(alarm["AlarmName"] for alarm in alarms),
        limit_seconds=policy.get("MaximumExecutionTimeoutInSeconds"),
    )


def _steps(policy: dict[str, Any], count: int) -> list[Step]:
    routing = policy.get("TrafficRoutingConfiguration", {})
    kind, wait = routing.get("Type", "ALL_AT_ONCE"), routing.get("WaitIntervalInSeconds", 0)
    last = Step(
        instances=count,
        wait_seconds=policy.get("TerminationWaitInSeconds", 0),
        wait_name="TerminationWaitInSeconds",
        capacity="full",
    )
    if kind == "ALL_AT_ONCE":
        return [last]
    size = _size(routing.get(_SIZES[kind]), kind=kind, count=count)
    before = [size] if kind == "CANARY" else range(size, count, size)
    capacity = "canary" if kind == "CANARY" else "partial"
    return [
        *(Step(instances=on, wait_seconds=wait, wait_name="WaitIntervalInSeconds", capacity=capacity) for on in before),
        last,
    ]


def _size(size: dict[str, Any] | None, *, kind: str, count: int) -> int:
    """Instances of one step."""
    member = _SIZES[kind]
    if size is None:
        raise _refused(f"{member} is required for traffic routing type {kind}.")
    value = size["Value"]
    percent = value if size["Type"] == "CAPACITY_PERCENT" else 100 * value / count
    least = _LEAST_LINEAR if kind == "LINEAR" else 0
    if not least <= percent <= _MOST:
        limits = f"{least}-{_MOST}%" if least else f"less than or equal to {_MOST}%"
        raise _refused(f"{member} must be {limits} of the variant's total instance count, which is {count}.")
    return max(1, int(count * percent / 100)) if size["Type"] == "CAPACITY_PERCENT" else int(value)


def _refused(sentence: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{API}, TrafficRoutingConfig")
