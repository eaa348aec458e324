"""Rules of SageMaker that the local AWS and the simulation share: pure functions, standard library only.

Multi-model cache: SageMaker evicts *unused* models when memory is short, and keeps *frequently used* ones (developer
guide, multi-model-caching). It does not publish the order: least recently used is an assumption. A model was last used
when its last request ended, or its load. A model with a request in flight is never unloaded.

Target tracking: capacity changes in proportion to the metric, and both cooldowns (user guide, "How target tracking
scaling works"; API reference, TargetTrackingScalingPolicyConfiguration). Not published, so assumed: the number of
periods of both alarms, and the share of the target below which the low one is on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar


def traffic_shares(weights: Sequence[float]) -> tuple[float, ...]:
    """Each variant's share of the requests, 0 to 1 (API reference, ProductionVariant: InitialVariantWeight)."""
    return tuple(weight / (sum(weights) or 1) for weight in weights)


API_PAYLOAD_BYTES = 6 * 1024 * 1024
"""The largest body of a request by the API (API reference of InvokeEndpoint, and the service model: BodyBlob)."""
MAX_PAYLOAD_BYTES = 25 * 1024 * 1024
"""The largest body of a request by the page on hosting, which is the newer one (developer guide, "Model deployment
options in SageMaker AI": 25 MB for real-time inference). The two disagree; which holds is UNVERIFIED, so that nothing
here refuses less."""
INSUFFICIENT_STORAGE = 507
"""Status of a load or an inference that memory is too small for (developer guide, mms-container-apis). SageMaker evicts
another model and loads again; a model that does not fit alone gets it as its ModelError."""


class ModelState(Enum):
    """State of a model in a container. RETIRING: finishes what is in flight and takes no new request."""

    LOADING = "loading"
    LOADED = "loaded"
    RETIRING = "retiring"
    UNLOADING = "unloading"


class CachedModel(Protocol):
    """A model as the eviction rules read it."""

    state: ModelState
    in_flight: int


Model = TypeVar("Model", bound=CachedModel)


def is_idle(model: CachedModel) -> bool:
    """Whether it may be unloaded now."""
    return not model.in_flight and model.state in (ModelState.LOADED, ModelState.RETIRING)


def is_leaving(model: CachedModel) -> bool:
    """Whether it takes no new request until it is loaded again."""
    return model.state in (ModelState.RETIRING, ModelState.UNLOADING)


def model_to_evict(oldest_first: Iterable[Model]) -> Model | None:
    """The least recently used idle model; None if every model is in use. ``oldest_first``: by last use."""
    return next((model for model in oldest_first if is_idle(model)), None)


def model_to_retire(oldest_first: Iterable[Model]) -> Model | None:
    """The model that becomes RETIRING after a load waited too long for an idle one: the least recently used.

    None if a model is idle or leaving, which makes room without it. Under steady load no model is ever idle.
    """
    models = list(oldest_first)
    if any(is_idle(model) or is_leaving(model) for model in models):
        return None
    return next((model for model in models if model.state is ModelState.LOADED), None)


def unloads_when_idle(model: CachedModel, *, cache_enabled: bool) -> bool:
    """Whether a model whose last request ended is unloaded at once: retired, or ``ModelCacheSetting: Disabled``."""
    return model.state is ModelState.RETIRING or (not cache_enabled and model.state is ModelState.LOADED)


HIGH_PERIODS = 3
"""Periods above the target before AlarmHigh is on."""
LOW_PERIODS = 15
"""Periods below ``LOW_SHARE`` of the target before AlarmLow is on."""
LOW_SHARE = 0.9
DEFAULT_COOLDOWN_SECONDS = 300
"""ScaleOutCooldown and ScaleInCooldown of SageMaker variants."""


def desired_instances(instances: int, *, value: float, target: float) -> int:
    """Instances in proportion to a per-instance metric, rounded up. ``instances``: their number at ``value``."""
    return math.ceil(instances * value / target)


def wanted_instances(instances: int, *, more: Sequence[int | None], fewer: Sequence[int | None]) -> int:
    """Instances wanted by several policies together: any may add instances, all must agree to remove some.

    The largest capacity wins in both directions (user guide, "Multiple scaling policies"). None: that alarm is off.
    """
    most = max((each for each in more if each is not None), default=instances)
    ready = [each for each in fewer if each is not None]
    if most > instances or not ready or len(ready) < len(fewer):
        return max(most, instances)
    return min(max(ready), instances)


@dataclass
class Cooldowns:
    """Cooldowns of one scalable target or policy. Times are seconds of the caller's clock."""

    # when the cooldown began
    scaled_out: float = -math.inf
    scaled_in: float = -math.inf
    added: int = 0  # instances that the scale-out in cooldown added

    def allow_scale_out(self, now: float, *, added: int, cooldown: float) -> bool:
        """Whether ``added`` more instances may come now.

        ScaleOutCooldown: capacity is not increased again "unless either a larger scale out is triggered or the cooldown
        period ends". AWS does not define larger; here: it adds more instances than the scale-out before.
        """
        return now - self.scaled_out >= cooldown or added > self.added

    def scale_out(self, now: float, *, added: int) -> None:
        """Begin the scale-out cooldown. "The scale-in cooldown period stops and doesn't complete" (ScaleInCooldown)."""
        self.scaled_out, self.scaled_in, self.added = now, -math.inf, added

    def allow_scale_in(self, now: float, *, cooldown: float) -> bool:
        """Whether instances may be removed now."""
        return now - self.scaled_in >= cooldown
