"""Rules about an ensemble: its fields, its steps, the tensors between them, decoupled steps, and requests that fail.

Source of the last: core src/ensemble_scheduler/ensemble_scheduler.cc (EnsembleContext::InitStep, ReshapeTensorDims),
tried with Triton 24.10: requests of one row and of several, with and without the optional input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tritonstack.lint.completion import Completion, complete
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_config import Node, Tensor
from tritonstack.models.model_view import ModelView

# Source: core src/model_config_utils.cc (ValidateEnsembleSchedulingConfig), src/ensemble_scheduler/ensemble_utils.cc
# (ValidateEnsembleConfig), src/model_repository_manager/model_repository_manager.cc (dependencies).


_FORBIDDEN = ("instance_group", "optimization", "model_warmup")


def check_ensembles(view: RepositoryView) -> Iterator[Finding]:
    """Check the ensembles of an archive, and find models that none of them uses."""
    for model in view.models.values():
        if model.config.node.has("ensemble_scheduling") and not model.is_ensemble:
            found = f'platform: "{model.config.node.text("platform")}" with ensemble_scheduling'
            yield at_field(model, "ensemble_scheduling", "ensemble-platform", found)
    for ensemble in view.ensembles:
        yield from _ensemble(view, ensemble)
    if view.ensembles:
        used = {step.text("model_name") for ensemble in view.ensembles for step in ensemble.config.steps}
        for model in view.models.values():
            if model.name not in {*used, *view.called} and not model.is_ensemble:
                yield at_line(model, 0, "unused-model", f"no step uses {model.name}")


def _ensemble(view: RepositoryView, ensemble: ModelView) -> Iterator[Finding]:
    if not ensemble.config.steps:
        yield at_field(ensemble, "platform", "ensemble-without-steps", "an ensemble without steps")
        return
    for field in _FORBIDDEN:
        if ensemble.config.node.has(field):
            yield at_field(ensemble, field, "ensemble-field", f"{field} in an ensemble", f"no {field}")
    steps = [EnsembleStep.of(node, index, view.models) for index, node in enumerate(ensemble.config.steps)]
    for step in steps:
        yield from _step(view, ensemble, step)
    yield from _needs_itself(view, ensemble)
    yield from check_flow(ensemble, steps)
    yield from check_tensors(view, ensemble, steps)
    yield from check_decoupled(ensemble, steps)


def _step(view: RepositoryView, ensemble: ModelView, step: EnsembleStep) -> Iterator[Finding]:
    if step.model is None or step.model is ensemble:
        others = ", ".join(sorted(other for other in view.models if other != ensemble.name))
        found = f"step {step.name or '?'}"
        yield at_field(ensemble, "model_name", "ensemble-step", found, others or "a model of the archive", step.node)
        return
    # Protobuf gives 0 for a version that is left out, and Triton takes it at its word.
    version = step.node.integer("model_version")
    served = step.model.served_versions
    if version != -1 and str(version) not in served and (served or view.recipe is None):
        found = f"model_version: {version}" if step.node.has("model_version") else "no model_version, which means 0"
        allowed = f"-1 for the newest{''.join(f', {name}' for name in served)}"
        yield at_field(ensemble, "model_version", "ensemble-version", found, allowed, step.node)
    done = complete(view, step.model)
    limit = done.max_batch_size
    may_grow = step.model.backend == "python" and not done.is_known
    if limit != 0 and ensemble.config.max_batch_size > limit and not may_grow:
        found = f"max_batch_size {ensemble.config.max_batch_size}, step {step.name} has {limit}"
        yield at_field(ensemble, "max_batch_size", "ensemble-batch", found, f"up to {limit}")


def _needs_itself(view: RepositoryView, ensemble: ModelView) -> Iterator[Finding]:
    """An ensemble that needs itself by way of others."""
    reached = [step.text("model_name") for step in ensemble.config.steps]
    for model in (view.models[name] for name in reached if name in view.models):
        reached += {step.text("model_name") for step in model.config.steps} - set(reached)
    if ensemble.name in reached:
        found, allowed = f"{ensemble.name}, which needs itself", "steps that do not lead back"
        yield at_field(ensemble, "ensemble_scheduling", "ensemble-circle", found, allowed)


# Two checks, as in Triton: the flow of names with the ensemble's configuration alone, types and shapes with those
# of the models. Source: core src/model_config_utils.cc (BuildEnsembleGraph, ValidateEnsembleSchedulingConfig),
# src/ensemble_scheduler/ensemble_utils.cc (ValidateTensorMapping, ValidateTensorConsistency).


@dataclass(frozen=True, kw_only=True)
class EnsembleStep:
    """One step: the model that it names, and its maps from the model's tensors to the ensemble's."""

    node: Node
    name: str
    index: int
    model: ModelView | None
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @classmethod
    def of(cls, node: Node, index: int, models: Mapping[str, ModelView]) -> EnsembleStep:
        """A step as the configuration spells it; of a repeated key the last counts, as in protobuf."""
        inputs, outputs = (
            {key: str(value) for key, value in node.entries(name).items()} for name in ("input_map", "output_map")
        )
        name = node.text("model_name")
        return cls(node=node, name=name, index=index, model=models.get(name), inputs=inputs, outputs=outputs)

    def __str__(self) -> str:
        return f"step {self.name or self.index + 1}"


@dataclass(frozen=True, kw_only=True)
class _End:
    """One end of a connection: who gives or takes a tensor of these dims, behind a batch dimension or not."""

    owner: str
    data_type: str
    dims: tuple[int, ...]
    batches: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """With the batch dimension."""
        return (-1, *self.dims) if self.batches else self.dims

    def __str__(self) -> str:
        return f"{self.data_type} {list(self.shape)} of {self.owner}"

    def agrees(self, other: _End) -> bool:
        """Whether both can be one tensor, compared as Triton does: without the batch dimension, or else with it."""
        return self.data_type == other.data_type and (_same(self.dims, other.dims) or _same(self.shape, other.shape))


def check_flow(ensemble: ModelView, steps: Sequence[EnsembleStep]) -> Iterator[Finding]:
    """Check producers and consumers of the ensemble's tensors."""
    givers: dict[str, EnsembleStep] = {}
    for step in steps:
        for field, mapping in (("input_map", step.inputs), ("output_map", step.outputs)):
            if not mapping:
                found, allowed = f"{step}: no {field}", f"one {field} or more"
                yield at_field(ensemble, field, "ensemble-map", found, allowed, step.node)
        for name in step.outputs.values():
            if name in givers:
                found = f"{step} gives tensor {name}, which {givers[name]} gives"
                yield at_field(ensemble, "output_map", "ensemble-tensor-twice", found, "one giver", step.node)
            givers.setdefault(name, step)
    yield from _unused(ensemble, steps, givers)
    yield from _unwritten(ensemble, steps, givers)


def _unused(
    ensemble: ModelView, steps: Sequence[EnsembleStep], givers: Mapping[str, EnsembleStep]
) -> Iterator[Finding]:
    """Tensors that nothing takes: Triton refuses them."""
    outputs = {tensor.name for tensor in ensemble.config.outputs}
    taken = {name for step in steps for name in step.inputs.values()}
    for tensor in ensemble.config.inputs:
        if tensor.name not in taken and not (tensor.name in outputs and tensor.name in givers):
            found = f"input {tensor.name}, which no step takes"
            yield at_line(ensemble, tensor.line, "ensemble-tensor-unused", found)
    for name, step in givers.items():
        if name not in taken | outputs | {tensor.name for tensor in ensemble.config.inputs}:
            found = f"tensor {name} of {step}, which nothing takes"
            yield at_field(ensemble, "output_map", "ensemble-tensor-unused", found, node=step.node)


def _unwritten(
    ensemble: ModelView, steps: Sequence[EnsembleStep], givers: Mapping[str, EnsembleStep]
) -> Iterator[Finding]:
    """Tensors that are taken and that nothing gives, or that wait for each other."""
    inputs = {tensor.name for tensor in ensemble.config.inputs}
    given = inputs | givers.keys()
    allowed = ", ".join(sorted(given)) or "no tensor is given"
    for step in steps:
        for name in sorted(set(step.inputs.values()) - given):
            found = f"tensor {name}, which {step} takes and nothing gives{_dropped(steps, name)}"
            yield at_field(ensemble, "input_map", "ensemble-tensor-missing", found, allowed, step.node)
    for tensor in ensemble.config.outputs:
        is_taken = any(tensor.name in step.inputs.values() for step in steps)
        if tensor.name not in givers and not (tensor.name in inputs and is_taken):
            found = f"output {tensor.name}, which no step gives{_dropped(steps, tensor.name)}"
            yield at_line(ensemble, tensor.line, "ensemble-tensor-missing", found, allowed)
    _, stuck = _in_order(steps, inputs)
    if stuck and all(set(step.inputs.values()) <= given for step in stuck):
        found = f"steps {', '.join(f'{step.index + 1} ({step.name})' for step in stuck)} wait for each other"
        yield at_field(ensemble, "ensemble_scheduling", "ensemble-circle", found, "no circle")


def _dropped(steps: Sequence[EnsembleStep], name: str) -> str:
    """Why a step does not give a tensor that its output_map names: the key is there again, and the last counts."""
    for step in steps:
        for entry in step.node.nodes("output_map"):
            key = entry.text("key")
            if entry.text("value") == name and step.outputs.get(key) != name:
                line, value = entry.line, step.outputs.get(key)
                return f": output_map of {step} has the key {key} twice (line {line}), and the last, {value}, counts"
    return ""


def _in_order(steps: Sequence[EnsembleStep], inputs: Iterable[str]) -> tuple[list[EnsembleStep], list[EnsembleStep]]:
    """The steps in order of their inputs, and the steps that never have all their inputs."""
    ready, order, waiting = set(inputs), list[EnsembleStep](), list(steps)
    while able := [step for step in waiting if set(step.inputs.values()) <= ready]:
        order += able
        ready |= {name for step in able for name in step.outputs.values()}
        waiting = [step for step in waiting if step not in able]
    return order, waiting


def check_tensors(view: RepositoryView, ensemble: ModelView, steps: Sequence[EnsembleStep]) -> Iterator[Finding]:
    """Check keys, types and shapes: the first mention of a tensor decides."""
    settled: dict[str, _End] = {}
    for tensor in (*ensemble.config.inputs, *ensemble.config.outputs):
        # A caller sees an ensemble's dims; its steps see its reshape.
        dims = tensor.dims if tensor.reshape is None else tensor.reshape
        settled.setdefault(
            tensor.name, _End(owner="the ensemble", data_type=tensor.data_type, dims=dims, batches=ensemble.is_batched)
        )
    for step in steps:
        if step.model is None or step.model is ensemble:
            continue
        done = complete(view, step.model)
        yield from _mapped(ensemble, step, done, "input", settled)
        yield from _mapped(ensemble, step, done, "output", settled)


def _mapped(
    ensemble: ModelView, step: EnsembleStep, model: Completion, kind: str, settled: dict[str, _End]
) -> Iterator[Finding]:
    field, mapping = f"{kind}_map", step.inputs if kind == "input" else step.outputs
    tensors = {tensor.name: tensor for tensor in (model.inputs if kind == "input" else model.outputs)}
    by_program = step.model is not None and step.model.backend == "python" and not model.is_known
    if not model.is_known and (not tensors or by_program):
        return  # what its backend or its program makes of it cannot be read here
    outputs = Counter(tensor.name for tensor in model.outputs)
    for key, name in mapping.items():
        if kind == "output" and outputs[key] > 1:
            found = f"{step}: output {key}, which {step.name} has {outputs[key]} times"
            yield at_field(ensemble, field, "ensemble-map", found, "a model with each output once", step.node)
        if key not in tensors:
            found = f"{step}: {field} key {key}"
            yield at_field(
                ensemble, field, "ensemble-map", found, ", ".join(sorted(tensors)) or f"no {kind}", step.node
            )
            continue
        if not tensors[key].dims or not tensors[key].data_type:
            continue  # another rule's matter
        end = _End(
            owner=str(step), data_type=tensors[key].data_type, dims=tensors[key].dims, batches=model.max_batch_size > 0
        )
        if not settled.setdefault(name, end).agrees(end):
            found = f"tensor {name}: {settled[name]}, and {end}"
            yield at_field(ensemble, field, "ensemble-tensor-differs", found, node=step.node)
    missing = [name for name, tensor in tensors.items() if name not in mapping and not tensor.optional]
    if kind == "input" and missing and mapping:
        found = f"{step}: input {missing[0]} is not mapped"
        yield at_field(ensemble, field, "ensemble-map", found, "every input of the model", step.node)


def _same(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes agree; -1 is any length."""
    return len(one) == len(other) and all(-1 in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True))


# Source: core src/ensemble_scheduler/ensemble_utils.cc (ValidateEnsembleConfig).


def check_decoupled(ensemble: ModelView, steps: Sequence[EnsembleStep]) -> Iterator[Finding]:
    """Check tensors that meet at a step but have different numbers of responses."""
    # Tensor → the decoupled step that its responses are counted by; 0 for the request itself.
    label = {tensor.name: 0 for tensor in ensemble.config.inputs}
    for step in _in_order(steps, label)[0]:
        labels = {label[name] for name in step.inputs.values()}
        if len(labels) > 1:
            found = f"{step} takes tensors of different decoupled models"
            yield at_field(ensemble, "input_map", "ensemble-decoupled", found, node=step.node)
        is_decoupled = step.model is not None and step.model.config.decoupled
        own = step.index + 1 if is_decoupled else min(labels, default=0)
        label |= dict.fromkeys(step.outputs.values(), own)
    outputs = {label[tensor.name] for tensor in ensemble.config.outputs if tensor.name in label}
    if len(outputs) > 1:
        yield at_field(ensemble, "output", "ensemble-decoupled", "outputs of different decoupled models")


def check_requests(view: RepositoryView) -> Iterator[Finding]:
    """Check for requests that fail although the ensemble loads."""
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
            continue  # whole shapes agree, or another rule reports that they differ
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
