"""Rules about Triton's response cache: what keeps a model's responses out of it, or makes it wrong."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.instances import gpu_instances
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.view import ModelView, RepositoryView, at_line
from tritonstack.models.model_config import Node

# Source: triton-inference-server/server docs/user_guide/response_cache.md; core src/model_config_utils.cc
# (ValidateModelConfig); core pull requests 338 and 352 (May 2024: requests to an ensemble itself).


ENSEMBLES_SINCE = "24.05"
"""The first release whose ensembles have responses of their own in the cache."""


def check_response_cache(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with ``response_cache`` of a model, by itself and on the endpoint."""
    cache, release = enabled(model), view.target.release
    if cache is None:
        return
    steps = {step.text("model_name") for ensemble in view.ensembles for step in ensemble.config.steps}
    named = (view.models.get(step.text("model_name")) for step in model.config.steps)
    own = [model, *(each for each in named if each is not None)]
    other = "decoupled" if any(each.config.decoupled for each in own) else ""
    other = "sequence_batching" if model.config.node.has("sequence_batching") else other
    stateful = [each.name for each in own if each.config.node.has("sequence_batching")]
    if other:
        yield at_line(model, cache.line, "response-cache", f"response_cache with {other}")
    elif stateful:
        found = f"response_cache of an ensemble with the sequences of {stateful[0]}"
        allowed = "one of the two: a repeated request gets the earlier answer, whatever the sequence has come to"
        yield at_line(model, cache.line, "response-cache-ensemble", found, allowed)
    elif view.target.response_cache is False:
        found = f"response_cache, and the container of {view.target.name} has none"
        yield at_line(model, cache.line, "response-cache-off", found)
    elif model.is_ensemble and release is not None and not release.at_least(ENSEMBLES_SINCE):
        found = f"response_cache of an ensemble, with release {release.version}"
        allowed = f"release {ENSEMBLES_SINCE} or newer, or response_cache in a model of its steps"
        yield at_line(model, cache.line, "response-cache-ensemble", found, allowed)
    elif model.name in steps and gpu_instances(model):
        found = "response_cache of an ensemble's step, with instances on the GPU"
        yield at_line(model, cache.line, "response-cache-step", found)


def enabled(model: ModelView) -> Node | None:
    """A model's ``response_cache``, where it is switched on."""
    cache = model.config.node.node("response_cache")
    return cache if cache is not None and cache.flag("enable") else None
