"""Copies of inference components on the instances of a variant: where they fit, and instances that come and go.

Sources: API reference (InferenceComponentComputeResourceRequirements, InferenceComponentSchedulingConfig,
ProductionVariantManagedInstanceScaling) and developer guide, "Scale an endpoint to zero instances". What no source
settles is an assumption of the local AWS and stands in its fidelity page: ``RESERVED_MB``, and that instances start
at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonstack.catalogue import load_catalogue

RESERVED_MB = 13 * 1024
"""Memory of an instance that copies cannot reserve. No source has a formula; this agrees with every size that public
samples saw accepted (10,409 MB on ml.g5.2xlarge, 104,096 MB on ml.g5.12xlarge) or refused (4,096 MB on ml.g5.xlarge,
where 1,024 MB pass)."""
DEFAULT_COOLDOWN_MINUTES = 20
DEFAULT_STEP = 1


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What one copy reserves of an instance."""

    gpus: float = 0.0
    cpus: float = 0.0
    memory_mb: int = 0

    @classmethod
    def of(cls, requirements: Mapping[str, Any]) -> Needs:
        """Of a component's ComputeResourceRequirements."""
        return cls(
            gpus=requirements.get("NumberOfAcceleratorDevicesRequired", 0.0),
            cpus=requirements.get("NumberOfCpuCoresRequired", 0.0),
            memory_mb=requirements["MinMemoryRequiredInMb"],
        )

    def times(self, copies: int) -> Needs:
        """What so many copies reserve."""
        return Needs(gpus=self.gpus * copies, cpus=self.cpus * copies, memory_mb=self.memory_mb * copies)

    def __add__(self, other: Needs) -> Needs:
        return Needs(
            gpus=self.gpus + other.gpus, cpus=self.cpus + other.cpus, memory_mb=self.memory_mb + other.memory_mb
        )

    def fits(self, room: Needs) -> bool:
        """Whether ``room`` holds it."""
        return self.gpus <= room.gpus and self.cpus <= room.cpus and self.memory_mb <= room.memory_mb


def room_of(instance_type: str) -> Needs:
    """What the copies on one instance of a type can reserve together; without end where the type is not known."""
    found = load_catalogue().instance(instance_type)
    if found is None:
        return Needs(gpus=math.inf, cpus=math.inf, memory_mb=2**62)
    memory = int(found.memory_gib * 1024) - RESERVED_MB
    return Needs(gpus=found.gpu_count, cpus=found.vcpu, memory_mb=max(memory, 0))


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Copies of one component, as many as are wanted."""

    component: str
    copies: int
    needs: Needs  # of each copy
    strategy: str | None = None  # SPREAD, BINPACK; None: SageMaker's own choice, here as SPREAD


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many instances a variant may have."""

    minimum: int
    maximum: int
    step: int = DEFAULT_STEP  # instances that end at a time
    cooldown_minutes: int = DEFAULT_COOLDOWN_MINUTES  # between an instance that idles, or ended, and the next end

    @classmethod
    def of(cls, variant: Mapping[str, Any]) -> Limits:
        """Of a production variant: fixed at its initial count without managed instance scaling."""
        count = variant.get("InitialInstanceCount", 1)
        managed = variant.get("ManagedInstanceScaling") or {}
        if managed.get("Status") != "ENABLED":
            return cls(minimum=count, maximum=count)
        policy = managed.get("ScaleInPolicy") or {}
        return cls(
            minimum=managed.get("MinInstanceCount", count),
            maximum=max(managed.get("MaxInstanceCount", count), count),
            step=policy.get("MaximumStepSize", DEFAULT_STEP),
            cooldown_minutes=policy.get("CooldownInMinutes", DEFAULT_COOLDOWN_MINUTES),
        )


@dataclass(kw_only=True, eq=False)
class Instance:
    """An instance and the copies that it runs."""

    copies: Counter[str] = field(default_factory=Counter)  # component → its copies here
    idle_since: float = 0.0  # since when it runs none, seconds since the epoch; meaningless while it runs any


@dataclass(kw_only=True)
class Placement:
    """The instances of one variant. Copies stay where they are for as long as they are wanted."""

    room: Needs  # of one instance
    limits: Limits
    instances: list[Instance] = field(default_factory=list)
    may_start: Callable[[], bool] = lambda: True  # whether AWS has another instance of the type
    _ended_at: float = 0.0  # when the last instance ended

    def place(self, demands: Sequence[Demand], *, now: float) -> dict[str, int]:
        """Take away what is no longer wanted, add what is missing. Returns component → copies that have no place.

        An instance starts where nothing else has room and the limits allow one.
        """
        wanted = {demand.component: demand for demand in demands}
        for instance in self.instances:
            for component in [each for each in instance.copies if each not in wanted]:
                self._remove(instance, component, now=now)
        for demand in demands:
            for _ in range(self.running(demand.component) - demand.copies):
                self._remove(self._fullest(demand.component), demand.component, copies=1, now=now)
        self._grow(to=self.limits.minimum, now=now)
        lacking = {}
        for demand in demands:
            missing = demand.copies - self.running(demand.component)
            while missing > 0 and (found := self._instance_for(demand, wanted, now=now)) is not None:
                found.copies[demand.component] += 1
                missing -= 1
            if missing > 0:
                lacking[demand.component] = missing
        return lacking

    def release(self, *, now: float) -> int:
        """End instances that have been idle for the cooldown, down to the minimum. Returns how many."""
        since = now - 60 * self.limits.cooldown_minutes
        idle = [each for each in self.instances if not each.copies and each.idle_since <= since]
        spare = len(self.instances) - self.limits.minimum
        if not idle or spare <= 0 or self._ended_at > since:
            return 0
        ended = idle[: min(self.limits.step, spare)]
        self.instances = [each for each in self.instances if each not in ended]
        self._ended_at = now
        return len(ended)

    def running(self, component: str) -> int:
        """Copies of a component that have a place."""
        return sum(instance.copies[component] for instance in self.instances)

    def _grow(self, *, to: int, now: float) -> None:
        while len(self.instances) < to:
            self.instances.append(Instance(idle_since=now))

    def _instance_for(self, demand: Demand, wanted: Mapping[str, Demand], *, now: float) -> Instance | None:
        """The instance that takes the next copy: a running one by the strategy, else a new one, else None."""

        def fits(instance: Instance) -> bool:
            used = demand.needs
            for component, copies in instance.copies.items():
                used += wanted[component].needs.times(copies)
            return used.fits(self.room)

        able = [each for each in self.instances if fits(each)]
        if able and demand.strategy == "BINPACK":
            return max(able, key=lambda each: each.copies.total())
        if able:
            return min(able, key=lambda each: (each.copies[demand.component], each.copies.total()))
        if len(self.instances) >= self.limits.maximum or not demand.needs.fits(self.room) or not self.may_start():
            return None
        self._grow(to=len(self.instances) + 1, now=now)
        return self.instances[-1]

    def _fullest(self, component: str) -> Instance:
        return max(self.instances, key=lambda each: each.copies[component])

    def _remove(self, instance: Instance, component: str, *, copies: int | None = None, now: float) -> None:
        instance.copies[component] -= instance.copies[component] if copies is None else copies
        instance.copies = +instance.copies  # without those that ended
        if not instance.copies:
            instance.idle_since = now
