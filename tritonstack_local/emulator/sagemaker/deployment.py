"""A deployment in progress: a new fleet that starts, takes the calls over step by step, and is watched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.sagemaker.guardrails import Guardrails, Step


@dataclass(kw_only=True, eq=False)
class Deployment:
    """The new fleet's config and variants, and how far it is.

    Attributes:
        config_name: the config that is deployed.
        variants: its variants, as DescribeEndpoint shows them once they serve.
        deployment_config: the guardrails that were asked for, as they were.
        guardrails: the same, read; None where the endpoint moves as soon as the new fleet is up.
        started: seconds since the epoch.
        stage: a ``VariantStatus`` (API reference, ProductionVariantStatus).
        stage_started: seconds since the epoch.
        taken_back: why the calls are on their way back to the old fleet; None where they are not.
    """

    config_name: str
    variants: tuple[dict[str, Any], ...]
    deployment_config: dict[str, Any] | None
    guardrails: Guardrails | None
    started: float = field(default_factory=clock.now)
    stage: str = "Creating"
    stage_started: float = field(default_factory=clock.now)
    taken_back: str | None = None
    _step: int = -1
    _baked: Deadline | None = None
    _back: tuple[Step, ...] = ()

    @property
    def step(self) -> Step | None:
        """The step that traffic has come to; None before the new fleet is up."""
        return None if self._step < 0 or not self._steps else self._steps[self._step]

    @property
    def _steps(self) -> tuple[Step, ...]:
        """On the way forth, or back."""
        if self.taken_back is not None:
            return self._back
        return () if self.guardrails is None else self.guardrails.steps

    @property
    def baking(self) -> bool:
        """Whether the alarms are watched for a time."""
        return self.stage == "Baking"

    @property
    def baked(self) -> bool:
        """Whether that time is over."""
        return self._baked is not None and self._baked.passed

    @property
    def remaining(self) -> float | None:
        """Seconds until that time is over; None where there is none to wait for."""
        return None if self._baked is None else self._baked.remaining

    @property
    def at_last_step(self) -> bool:
        """Whether no step follows: every call goes to the new fleet, or on the way back to the last of it."""
        return self._step == len(self._steps) - 1

    @property
    def overdue(self) -> bool:
        """Whether the deployment has taken longer than it may."""
        limit = None if self.guardrails is None else self.guardrails.limit_seconds
        return limit is not None and clock.now() >= self.started + limit

    def shift(self) -> None:
        """Begin the next step: the new fleet is to take more of the calls."""
        self._step += 1
        self._baked = None
        self._enter("ActivatingTraffic")

    def go_back(self, reason: str) -> bool:
        """Begin to give the calls back batch by batch; False where they go back at once."""
        on = 0 if self.step is None else self.step.instances
        steps = () if self.guardrails is None else self.guardrails.back(on)
        if not steps:
            return False
        self.taken_back, self._back, self._step = reason, steps, -1
        self.shift()
        return True

    def bake(self) -> None:
        """The calls are where they should be: watch the alarms for the step's time."""
        if self.step is None:
            raise ValueError(f"{self.config_name}: no traffic was shifted")
        self._baked = clock.deadline(self.step.wait_seconds)
        self._enter("Baking")

    def old_instances(self, total: int) -> int:
        """Instances that the old fleet has left of ``total``: a rolling update ends as many as were turned on."""
        if self.guardrails is None or not self.guardrails.rolling:
            return total
        if self.taken_back is not None:
            on = 0 if self.step is None else self.step.instances
        else:
            on = self.guardrails.steps[self._step - 1].instances if self._step > 0 else 0
        return total - min(total, total * on // self.guardrails.count)

    def _enter(self, stage: str) -> None:
        self.stage, self.stage_started = stage, clock.now()

    def summary(self) -> dict[str, Any]:
        """``PendingDeploymentSummary``; CurrentInstanceCount is what takes calls, as in the guide's events."""
        return {
            "EndpointConfigName": self.config_name,
            "ProductionVariants": [self._pending(variant) for variant in self.variants],
            "StartTime": self.started,
        }

    def _pending(self, variant: dict[str, Any]) -> dict[str, Any]:
        status = {"Status": self.stage, "StatusMessage": self._message(variant), "StartTime": self.stage_started}
        return {**variant, "CurrentInstanceCount": self._active(variant), "VariantStatus": [status]}

    def _active(self, variant: dict[str, Any]) -> int:
        """Instances of a variant that take calls. The steps are counted on the first variant, others go along."""
        total: int = variant["DesiredInstanceCount"]
        if self.step is None or self.guardrails is None:
            return 0
        return min(total, -(-total * self.step.instances // self.guardrails.count))

    def _message(self, variant: dict[str, Any]) -> str:
        """In the words of the developer guide's examples ("Endpoint deployment state change")."""
        if self.step is None:
            return f"Launching {variant['DesiredInstanceCount']} instance(s)."
        on = f"on {self.step.capacity} capacity of {self._active(variant)} instance(s)."
        if self.baking:
            return f"Baking for {self.step.wait_seconds:g} seconds ({self.step.wait_name}) with traffic enabled {on}"
        return f"Activating traffic {on}"
