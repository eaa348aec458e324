"""Multi-model cache: which loaded model is evicted for another one, and when.

SageMaker evicts *unused* models when memory is short, and keeps *frequently used* ones (developer guide,
multi-model-caching). It does not publish the order: least recently used is an assumption. A model was last used when
its last request ended, or its load. A model with a request in flight is never unloaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol, TypeVar

INSUFFICIENT_STORAGE = 507
"""Status of a load or an inference that memory is too small for (developer guide, mms-container-apis). SageMaker evicts
another model and loads again; a model that does not fit alone gets it as its ModelError."""


class ModelState(Enum):
    """State of a model in a container. RETIRING: answers what is in flight and takes no new request."""

    LOADING = "loading"
    LOADED = "loaded"
    RETIRING = "retiring"
    UNLOADING = "unloading"


class CachedModel(Protocol):
    """What the rules read of a model."""

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
