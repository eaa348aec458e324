"""Rules about ensembles that Triton loads and whose requests fail, or are never answered.

Source: core src/ensemble_scheduler/ensemble_scheduler.cc (EnsembleContext::InitStep, ReshapeTensorDims), tried with
Triton 24.10: requests of one row and of several, with and without the optional input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritonstack.lint.completion import Completion, complete
from tritonstack.lint.ensemble import EnsembleStep
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_config import Tensor
from tritonstack.models.model_view import ModelView


def check_requests(view: RepositoryView) -> Iterator[Finding]:
    """Where requests fail of ensembles that load."""
    for ensemble in view.ensembles:
        steps = [EnsembleStep.of(node, index, view.models) for index, node in enumerate(ensemble.config.steps)]
        yield from _both_ways(ensemble, steps)
        given: dict[str, tuple[Tensor, bool]] = {  # tensor → its shape behind the batch, and whether it has one
            tensor.name: (tensor, ensemble.is_batched) for tensor in ensemble.config.inputs
        }
        models = {step.index: complete(view, step.model) for step in steps if step.model and step.model is not ensemble}
        for step in steps:
            if step.index in models:
                outputs = {tensor.name: tensor for tensor in models[step.index].outputs}
                batches = models[step.index].max_batch_size > 0
                given |= {
                    name: (outputs[key], batches)
                    for key, name in step.outputs.items()
                    if key in outputs and name not in given
                }
        for step in steps:
            if step.index in models and models[step.index].is_known:
                yield from _optional(ensemble, step, models[step.index])
                yield from _rows(ensemble, step, models[step.index], given)


def _both_ways(ensemble: ModelView, steps: list[EnsembleStep]) -> Iterator[Finding]:
    """A tensor that the request gives and a step, too: the step waits for itself, and the request for ever."""
    inputs = {tensor.name for tensor in ensemble.config.inputs}
    for step in steps:
        for key, name in step.outputs.items():
            if name in inputs:
                found = f"{step}: output {key} is called {name}, like an input of the ensemble"
                yield at_field(ensemble, "output_map", "ensemble-name-reused", found, node=step.node)


def _optional(ensemble: ModelView, step: EnsembleStep, model: Completion) -> Iterator[Finding]:
    """An input of the ensemble that a request may leave out, and a step may not."""
    required = {tensor.name for tensor in model.inputs if not tensor.optional}
    for tensor in ensemble.config.inputs:
        keys = [key for key, name in step.inputs.items() if name == tensor.name and key in required]
        if tensor.optional and keys:
            found = f"optional input {tensor.name}, which {step} takes as {keys[0]} and cannot do without"
            allowed = f"no optional, or optional: true for {keys[0]} of {step.name}, too"
            yield at_line(ensemble, tensor.line, "ensemble-optional", found, allowed)


def _rows(
    ensemble: ModelView, step: EnsembleStep, model: Completion, given: Mapping[str, tuple[Tensor, bool]]
) -> Iterator[Finding]:
    """Tensors that have a batch dimension on one side alone, where Triton drops or adds one of length 1."""
    takes = {tensor.name: tensor for tensor in model.inputs}
    step_batches = model.max_batch_size > 0
    for key, name in step.inputs.items():
        if key not in takes or name not in given:
            continue
        tensor, batches = given[name]
        dims, wanted = _behind_batch(tensor), takes[key].dims
        if len(dims) != len(wanted) or batches == step_batches:
            continue  # whole shapes agree, or another rule says that they differ
        if batches and ensemble.config.max_batch_size > 1:
            found = f"max_batch_size {ensemble.config.max_batch_size}, and {step} does not batch: it takes one row"
            allowed = f"max_batch_size: 1, or a step that batches, or dims {[-1, *wanted]} of its {key}"
            yield at_field(ensemble, "max_batch_size", "ensemble-unbatched-step", found, allowed)
        elif step_batches and not ensemble.is_batched and tensor in ensemble.config.inputs:
            free = [length == -1 and other != -1 for length, other in zip(dims, wanted, strict=True)]
            if any(free):
                found = f"input {name} with dims {list(dims)}, and {step} batches: it takes {list(wanted)} alone"
                allowed = f"dims: {[-1, *wanted]}, whose first axis is the step's batch, or {list(wanted)}"
                yield at_line(ensemble, tensor.line, "ensemble-batched-step", found, allowed)


def _behind_batch(tensor: Tensor) -> tuple[int, ...]:
    """The lengths that a step sees: a reshape changes them."""
    return tensor.dims if tensor.reshape is None else tensor.reshape
