"""A deployment's guardrails: in which steps the new fleet takes the calls, and which alarms are watched meanwhile.

Sources: API reference (DeploymentConfig, TrafficRoutingConfig, RollingUpdatePolicy, CapacitySize) and developer guide,
"Blue/Green Deployments" and "Use rolling deployments". How SageMaker rounds a share of an instance is UNVERIFIED: here
it is rounded down, to one at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.records import API

_LEAST = {"CanarySize": 0, "LinearStepSize": 10, "MaximumBatchSize": 5}
_MOST = 50
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
        rolling: whether old instances end after each step, so that the way back has steps, too.
        rollback_batch: rolling: instances that move back at a time.
    """

    count: int
    steps: tuple[Step, ...]
    alarms: tuple[str, ...]
    limit_seconds: float | None
    rolling: bool = False
    rollback_batch: int = 0

    def back(self, on: int) -> tuple[Step, ...]:
        """The steps back from ``on`` instances of the new fleet, but for the last one, which ends it.

        That nothing is waited for between them is UNVERIFIED.
        """
        if not self.rolling:
            return ()
        return tuple(
            Step(instances=left, wait_seconds=0, wait_name="RollbackMaximumBatchSize", capacity="partial")
            for left in range(on - self.rollback_batch, 0, -self.rollback_batch)
        )


def guardrails(config: dict[str, Any] | None, *, count: int) -> Guardrails | None:
    """The guardrails of a DeploymentConfig for a fleet of ``count`` instances; None where there are none.

    Raises:
        RefusedError: SageMaker would refuse it, or the local AWS cannot show it.
    """
    if not config:
        return None
    if "RollingUpdatePolicy" in config and "BlueGreenUpdatePolicy" in config:
        raise _refused(
            "Only one update policy can be used: BlueGreenUpdatePolicy or RollingUpdatePolicy.",
            source=f"{API}, DeploymentConfig",
        )
    alarms = tuple(alarm["AlarmName"] for alarm in config.get("AutoRollbackConfiguration", {}).get("Alarms", []))
    if "RollingUpdatePolicy" in config:
        return _rolling(config["RollingUpdatePolicy"], count=count, alarms=alarms)
    policy = config.get("BlueGreenUpdatePolicy", {})
    return Guardrails(
        count=count,
        steps=tuple(_steps(policy, count)),
        alarms=alarms,
        limit_seconds=policy.get("MaximumExecutionTimeoutInSeconds"),
    )


def _rolling(policy: dict[str, Any], *, count: int, alarms: tuple[str, ...]) -> Guardrails:
    """Batches, each of which is watched; after it as many instances of the old fleet end."""
    size = _size(policy["MaximumBatchSize"], member="MaximumBatchSize", count=count)
    back = policy.get("RollbackMaximumBatchSize")
    steps = [
        Step(
            instances=min(on, count),
            wait_seconds=policy["WaitIntervalInSeconds"],
            wait_name="WaitIntervalInSeconds",
            capacity="full" if on >= count else "partial",
        )
        for on in range(size, count + size, size)
    ]
    return Guardrails(
        count=count,
        steps=tuple(steps),
        alarms=alarms,
        limit_seconds=policy.get("MaximumExecutionTimeoutInSeconds"),
        rolling=True,
        rollback_batch=count if back is None else _rollback_batch(back, count=count),
    )


def _rollback_batch(size: dict[str, Any], *, count: int) -> int:
    """Its limits are not in the reference, which says that 100 % is the whole fleet at once."""
    value: int = size["Value"]
    percent = size["Type"] == "CAPACITY_PERCENT"
    if value > (100 if percent else count):
        raise _refused(
            f"RollbackMaximumBatchSize must be at most {'100%' if percent else count} of the variant's total instance"
            f" count, which is {count}.",
            source=f"{API}, RollingUpdatePolicy (derived)",
        )
    return max(1, int(count * value / 100)) if percent else value


def _steps(policy: dict[str, Any], count: int) -> list[Step]:
    routing = policy.get("TrafficRoutingConfiguration", {})
    kind, wait = routing.get("Type", "ALL_AT_ONCE"), routing.get("WaitIntervalInSeconds", 0)
    strange = sorted(member for of, member in _SIZES.items() if of != kind and member in routing)
    if strange:
        raise _refused(
            f"{' and '.join(strange)} must not be given for traffic routing type {kind}.",
            # The reference says of each size which type's steps it is for; that SageMaker refuses it is UNVERIFIED.
            source=f"{API}, TrafficRoutingConfig (derived)",
        )
    last = Step(
        instances=count,
        wait_seconds=policy.get("TerminationWaitInSeconds", 0),
        wait_name="TerminationWaitInSeconds",
        capacity="full",
    )
    if kind == "ALL_AT_ONCE":
        return [last]
    size = _size(routing.get(_SIZES[kind]), member=_SIZES[kind], count=count)
    before = [size] if kind == "CANARY" else range(size, count, size)
    capacity = "canary" if kind == "CANARY" else "partial"
    return [
        *(Step(instances=on, wait_seconds=wait, wait_name="WaitIntervalInSeconds", capacity=capacity) for on in before),
        last,
    ]


def _size(size: dict[str, Any] | None, *, member: str, count: int) -> int:
    """Instances of one step."""
    policy = "RollingUpdatePolicy" if member == "MaximumBatchSize" else "TrafficRoutingConfig"
    if size is None:
        kind = next(kind for kind, name in _SIZES.items() if name == member)
        raise _refused(f"{member} is required for traffic routing type {kind}.", source=f"{API}, {policy}")
    value = size["Value"]
    percent = value if size["Type"] == "CAPACITY_PERCENT" else 100 * value / count
    least = _LEAST[member]
    if not least <= percent <= _MOST:
        limits = f"{least}-{_MOST}%" if least else f"less than or equal to {_MOST}%"
        raise _refused(
            f"{member} must be {limits} of the variant's total instance count, which is {count}.",
            source=f"{API}, {policy}",
        )
    return max(1, int(count * percent / 100)) if size["Type"] == "CAPACITY_PERCENT" else int(value)


def _refused(sentence: str, *, source: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=source)
