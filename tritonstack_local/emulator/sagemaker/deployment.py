"""A deployment in progress: its guardrails, the steps of its traffic; the endpoint that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.records import Record, refused

# Sources: API reference (DeploymentConfig, TrafficRoutingConfig, RollingUpdatePolicy, CapacitySize) and developer
# guide, "Blue/Green Deployments" and "Use rolling deployments". How SageMaker rounds a share of an instance is
# UNVERIFIED: here it is rounded down, to one at least.
_LEAST = {"CanarySize": 0, "LinearStepSize": 10, "MaximumBatchSize": 5}
_MOST = 50
EXCLUSIONS = "SageMaker developer guide, Exclusions (deployment guardrails)"
_SIZES = {"CANARY": "CanarySize", "LINEAR": "LinearStepSize"}


@dataclass(frozen=True, kw_only=True)
class ShiftStep:
    """One shift of traffic."""

    instances: int  # of the new fleet, that receive requests from then on
    wait_seconds: float  # how long the alarms are watched before the next step, or before the old fleet ends


@dataclass(frozen=True, kw_only=True)
class Guardrails:
    """Guardrails of one deployment."""

    count: int  # the instances of the new fleet's first variant, on which the steps are counted
    steps: tuple[ShiftStep, ...]  # in order; the last one turns every instance on
    alarms: tuple[str, ...]  # names of CloudWatch alarms; one in ALARM rolls the deployment back
    rolling: bool = False  # whether old instances end after each step
    limit_seconds: float | None = None  # MaximumExecutionTimeoutInSeconds: what takes longer is rolled back


def guardrails(config: dict[str, Any] | None, *, counts: Sequence[int]) -> Guardrails | None:
    """The guardrails of a DeploymentConfig for a fleet; None where there are none.

    ``counts``: the instances of each variant; a step must be of an allowed size for all of them.

    Raises RefusedError: SageMaker would refuse it, or the local AWS cannot show it.
    """
    if not config:
        return None
    if "RollingUpdatePolicy" in config and "BlueGreenUpdatePolicy" in config:
        sentence = "Only one update policy can be used: BlueGreenUpdatePolicy or RollingUpdatePolicy."
        raise refused(sentence, "DeploymentConfig")
    alarms = tuple(alarm["AlarmName"] for alarm in config.get("AutoRollbackConfiguration", {}).get("Alarms", []))
    rolling = "RollingUpdatePolicy" in config
    if rolling and len(counts) > 1:
        sentence = "A rolling deployment cannot be used for an endpoint with several production variants."
        raise RefusedError("ValidationException", sentence, source=EXCLUSIONS)
    policy = config.get("RollingUpdatePolicy") or config.get("BlueGreenUpdatePolicy", {})
    steps = [tuple(_batches(policy, count) if rolling else _steps(policy, count)) for count in counts]
    limit = policy.get("MaximumExecutionTimeoutInSeconds")
    _check_limit(limit, waits=max(sum(each.wait_seconds for each in of_one) for of_one in steps))
    return Guardrails(count=counts[0], steps=steps[0], alarms=alarms, rolling=rolling, limit_seconds=limit)


def _check_limit(limit: int | None, *, waits: float) -> None:
    """Refuse a deployment that its waits alone end.

    API reference, BlueGreenUpdatePolicy: "the timeout value should be larger than the total waiting time specified in
    TerminationWaitInSeconds and WaitIntervalInSeconds". That SageMaker refuses it, and how, is UNVERIFIED.
    """
    if limit is not None and limit <= waits:
        raise refused(
            f"MaximumExecutionTimeoutInSeconds ({limit}) must be larger than the total waiting time, which is "
            f"{waits:g} seconds.",
            "BlueGreenUpdatePolicy",
        )


def _batches(policy: dict[str, Any], count: int) -> list[ShiftStep]:
    """Batches of a rolling update, each of which is watched; after it as many instances of the old fleet end."""
    size = _size(policy["MaximumBatchSize"], member="MaximumBatchSize", count=count)
    return [
        ShiftStep(instances=min(on, count), wait_seconds=policy["WaitIntervalInSeconds"])
        for on in range(size, count + size, size)
    ]


def _steps(policy: dict[str, Any], count: int) -> list[ShiftStep]:
    routing = policy.get("TrafficRoutingConfiguration", {})
    kind, wait = routing.get("Type", "ALL_AT_ONCE"), routing.get("WaitIntervalInSeconds", 0)
    strange = sorted(member for of, member in _SIZES.items() if of != kind and member in routing)
    if strange:
        # The API reference names for each size the type that it is of; that SageMaker refuses others is UNVERIFIED.
        sentence = f"{' and '.join(strange)} must not be given for traffic routing type {kind}."
        raise refused(sentence, "TrafficRoutingConfig (derived)")
    last = ShiftStep(instances=count, wait_seconds=policy.get("TerminationWaitInSeconds", 0))
    if kind == "ALL_AT_ONCE":
        return [last]
    size = _size(routing.get(_SIZES[kind]), member=_SIZES[kind], count=count)
    before = [size] if kind == "CANARY" else range(size, count, size)
    return [*(ShiftStep(instances=on, wait_seconds=wait) for on in before), last]


def _size(size: dict[str, Any] | None, *, member: str, count: int) -> int:
    """Instances of one step."""
    policy = "RollingUpdatePolicy" if member == "MaximumBatchSize" else "TrafficRoutingConfig"
    if size is None:
        kind = next(kind for kind, name in _SIZES.items() if name == member)
        raise refused(f"{member} is required for traffic routing type {kind}.", policy)
    value = size["Value"]
    percent = value if size["Type"] == "CAPACITY_PERCENT" else 100 * value / count
    least = _LEAST[member]
    if not least <= percent <= _MOST:
        limits = f"{least}-{_MOST}%" if least else f"less than or equal to {_MOST}%"
        raise refused(f"{member} must be {limits} of the variant's total instance count, which is {count}.", policy)
    return max(1, int(count * percent / 100)) if size["Type"] == "CAPACITY_PERCENT" else int(value)


@dataclass(kw_only=True, eq=False)
class Deployment:
    """The new fleet's config and variants, and how far it is."""

    config_name: str  # the config that is deployed
    variants: tuple[dict[str, Any], ...]  # its variants, as DescribeEndpoint shows them once they serve
    deployment_config: dict[str, Any] | None  # the requested guardrails, unchanged
    guardrails: Guardrails | None  # the same, read; None where the endpoint moves as soon as the new fleet is up
    started: float = field(default_factory=clock.now)  # seconds since the epoch
    stage: str = "Creating"  # a ``VariantStatus`` (API reference, ProductionVariantStatus)
    stage_started: float = field(default_factory=clock.now)  # seconds since the epoch
    _step: int = -1
    _baked: Deadline | None = None

    @property
    def step(self) -> ShiftStep | None:
        """The step that traffic has come to; None before the new fleet is up."""
        return None if self._step < 0 or not self._steps else self._steps[self._step]

    @property
    def _steps(self) -> tuple[ShiftStep, ...]:
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
    def over_time(self) -> bool:
        """Whether it takes longer than its guardrails allow."""
        limit = None if self.guardrails is None else self.guardrails.limit_seconds
        return limit is not None and clock.now() - self.started > limit

    @property
    def at_last_step(self) -> bool:
        """Whether no step follows: every request goes to the new fleet."""
        return self._step == len(self._steps) - 1

    def land(self, types: Mapping[str, str]) -> None:
        """Count the instances of variants with instance pools on the type that they landed on: variant → type."""
        for variant in self.variants:
            for pool in variant.get("InstancePools", ()):
                landed = types.get(variant["VariantName"]) == pool["InstanceType"]
                pool["CurrentInstanceCount"] = variant["DesiredInstanceCount"] if landed else 0

    def shift(self) -> None:
        """Begin the next step: the new fleet is to receive more of the requests."""
        self._step += 1
        self._baked = None
        self._enter("ActivatingTraffic")

    def bake(self) -> None:
        """The traffic has shifted: watch the alarms for the step's time."""
        if self.step is None:
            raise ValueError(f"{self.config_name}: no traffic was shifted")
        self._baked = clock.deadline(self.step.wait_seconds)
        self._enter("Baking")

    def old_instances(self, total: int) -> int:
        """Instances that the old fleet has left of ``total``: a rolling update ends as many as were turned on."""
        if self.guardrails is None or not self.guardrails.rolling:
            return total
        on = self.guardrails.steps[self._step - 1].instances if self._step > 0 else 0
        return total - min(total, total * on // self.guardrails.count)

    def _enter(self, stage: str) -> None:
        self.stage, self.stage_started = stage, clock.now()

    def summary(self) -> dict[str, Any]:
        """``PendingDeploymentSummary``; CurrentInstanceCount: those that receive requests, as in the guide."""
        return {
            "EndpointConfigName": self.config_name,
            "ProductionVariants": [
                {
                    **variant,
                    "CurrentInstanceCount": self._active(variant["DesiredInstanceCount"]),
                    "VariantStatus": [{"Status": self.stage, "StartTime": self.stage_started}],
                }
                for variant in self.variants
            ],
            "StartTime": self.started,
        }

    def _active(self, total: int) -> int:
        """Instances of ``total`` that receive requests. Steps are counted on the first variant; others follow it."""
        if self.step is None or self.guardrails is None:
            return 0
        return min(total, -(-total * self.step.instances // self.guardrails.count))


_SETTLED = ("InService", "Failed")


@dataclass(kw_only=True)
class EndpointRecord(Record):
    """An endpoint."""

    config_name: str  # the config of the fleet that serves (of the fleet being created, while there is none)
    variants: tuple[dict[str, Any], ...] = ()  # that fleet's variants, as DescribeEndpoint shows them
    status: str = "Creating"  # an ``EndpointStatus``
    pending: Deployment | None = None  # the deployment in progress, None where there is none
    failure_reason: str | None = None  # of the last deployment, None where it succeeded
    deployment_config: dict[str, Any] | None = None  # the guardrails of the last deployment

    @property
    def settled(self) -> bool:
        """Whether no deployment is in progress."""
        return self.status in _SETTLED

    @property
    def configs_in_use(self) -> set[str]:
        """The configs, in lower case, that the endpoint serves from or is being moved to."""
        pending = {self.pending.config_name.lower()} if self.pending else set()
        serving = set() if self.status == "Failed" else {self.config_name.lower()}
        return serving | pending

    def begin(self, deployment: Deployment, *, status: str) -> None:
        """Start a deployment (``Creating`` or ``Updating``)."""
        self.pending = deployment
        self.status = status
        self.modified = clock.now()

    def succeed(self) -> None:
        """The new fleet is ready: it is the endpoint's from now on."""
        if self.pending is None:
            raise ValueError(f"{self.name}: no deployment in progress")
        self.config_name = self.pending.config_name
        self.variants = self.pending.variants
        self.deployment_config = self.pending.deployment_config
        self.pending = None
        self.status = "InService"
        self.failure_reason = None
        self.modified = clock.now()

    def fail(self, reason: str | None) -> None:
        """The new fleet could not be started: a first one leaves nothing, a later one leaves the old fleet serving.

        Without a ``reason`` it is silent.
        """
        self.status = "Failed" if self.status == "Creating" else "InService"
        self.pending = None
        self.failure_reason = reason
        self.modified = clock.now()

    def _shown(self, variant: dict[str, Any]) -> dict[str, Any]:
        """A variant with the instances that a rolling update has left of it."""
        if self.pending is None:
            return variant
        return {**variant, "CurrentInstanceCount": self.pending.old_instances(variant["CurrentInstanceCount"])}

    def describe(self) -> dict[str, Any]:
        """DescribeEndpoint's response."""
        answer: dict[str, Any] = {
            "EndpointName": self.name,
            "EndpointArn": self.arn,
            "EndpointConfigName": self.config_name,
            "EndpointStatus": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }
        if self.variants:
            answer["ProductionVariants"] = [self._shown(variant) for variant in self.variants]
        if self.failure_reason is not None:
            answer["FailureReason"] = self.failure_reason
        if self.deployment_config is not None:
            answer["LastDeploymentConfig"] = self.deployment_config
        if self.pending is not None:
            answer["PendingDeploymentSummary"] = self.pending.summary()
        return answer
