"""Rules about an ensemble's graph: every step there, every tensor fed once, with one type and one shape, no circle.

Source: triton-inference-server/core src/model_config_utils.cc (ValidateEnsembleSchedulingConfig) and
src/ensemble_scheduler/ensemble_utils.cc (ValidateEnsembleConfig).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.view import ModelView, RepositoryView
from tritonstack.archives.model_config import Node, Tensor


@dataclass(frozen=True, kw_only=True)
class _End:
    """One end of a connection: who gives or takes a tensor, with its shape (the batch dimension included)."""

    owner: str
    tensor: Tensor
    dims: tuple[int, ...]
    shape: tuple[int, ...]
    line: int

    def __str__(self) -> str:
        return f"{self.tensor.data_type} {list(self.shape)} of {self.owner}"


@dataclass
class _Graph:
    """Ensemble tensor → who gives it and who takes it."""

    given: dict[str, _End] = field(default_factory=dict)
    taken: dict[str, list[_End]] = field(default_factory=dict)
    needs: list[tuple[str, set[str], set[str]]] = field(default_factory=list)  # step, tensors in, tensors out


def check_ensembles(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about the ensembles of an archive, and about models that none of them uses."""
    for ensemble in view.ensembles:
        yield from _check(view, ensemble)
    if view.ensembles:
        used = {step.text("model_name") for ensemble in view.ensembles for step in ensemble.config.steps}
        for model in view.models.values():
            if model.name not in used and not model.config.is_ensemble:
                yield Finding(
                    file=model.file,
                    rule="unused-model",
                    level="warning",
                    found=f"no step uses {model.name}",
                    allowed="models that the ensemble uses",
                )


def _check(view: RepositoryView, ensemble: ModelView) -> Iterator[Finding]:
    graph = _Graph()
    batched = ensemble.config.max_batch_size
    for tensor in ensemble.config.inputs:
        graph.given[tensor.name] = _end("the ensemble", tensor, batched, tensor.line)
    for index, step in enumerate(ensemble.config.steps):
        yield from _step(view, ensemble, step, index, graph)
    for tensor in ensemble.config.outputs:
        graph.taken.setdefault(tensor.name, []).append(_end("the ensemble", tensor, batched, tensor.line))
    yield from _connections(ensemble, graph)
    yield from _circle(ensemble, graph)


def _end(owner: str, tensor: Tensor, max_batch_size: int, line: int) -> _End:
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    shape = (-1, *dims) if max_batch_size > 0 else dims
    return _End(owner=owner, tensor=tensor, dims=dims, shape=shape, line=line)


def _step(view: RepositoryView, ensemble: ModelView, step: Node, index: int, graph: _Graph) -> Iterator[Finding]:
    name = step.text("model_name")
    model = view.models.get(name)
    if model is None or model is ensemble:
        allowed = (
            ", ".join(sorted(other for other in view.models if other != ensemble.name)) or "a model of the archive"
        )
        yield _at(ensemble, step.line_of("model_name"), "ensemble-step", f"step {name or '?'}", allowed)
        return
    if step.has("model_namespace"):
        line = step.line_of("model_namespace")
        yield _at(ensemble, line, "ensemble-namespace", "model_namespace", "none: SageMaker's namespaces are its own")
    version = step.integer("model_version") if step.has("model_version") else -1
    if version != -1 and str(version) not in model.versions:
        allowed = f"-1 for the newest, {', '.join(model.versions)}"
        yield _at(ensemble, step.line_of("model_version"), "ensemble-version", f"model_version: {version}", allowed)
    limit = model.config.max_batch_size
    if limit != 0 and ensemble.config.max_batch_size > limit:
        line = ensemble.config.node.line_of("max_batch_size")
        found = f"max_batch_size {ensemble.config.max_batch_size}, step {name} has {limit}"
        yield _at(ensemble, line, "ensemble-batch", found, f"up to {limit}")
    for kind in ("input", "output"):
        yield from _mapped(ensemble, model, step, kind, graph)
    ins, outs = (set(map(str, step.entries(f"{kind}_map").values())) for kind in ("input", "output"))
    graph.needs.append((f"{index + 1} ({name})", ins, outs))


def _mapped(ensemble: ModelView, model: ModelView, step: Node, kind: str, graph: _Graph) -> Iterator[Finding]:
    """One map of a step: model tensor → ensemble tensor."""
    field_name, owner = f"{kind}_map", f"step {model.name}"
    line = step.line_of(field_name)
    tensors = {tensor.name: tensor for tensor in (model.config.inputs if kind == "input" else model.config.outputs)}
    mapping = {key: str(value) for key, value in step.entries(field_name).items()}
    for key, name in mapping.items():
        if key not in tensors:
            allowed = ", ".join(sorted(tensors)) or f"no {kind}"
            yield _at(ensemble, line, "ensemble-map", f"{owner}: {field_name} key {key}", allowed)
            continue
        # A step's model sees its own shapes: Triton compares its ``dims``, not its ``reshape``.
        plain = dataclasses.replace(tensors[key], reshape=None)
        end = _end(owner, plain, model.config.max_batch_size, line)
        if kind == "input":
            graph.taken.setdefault(name, []).append(end)
        elif name in graph.given:
            found = f"{owner} gives tensor {name}, which {graph.given[name].owner} gives"
            yield _at(ensemble, line, "ensemble-tensor-twice", found, "one giver of each tensor")
        else:
            graph.given[name] = end
    missing = [name for name, tensor in tensors.items() if name not in mapping and not tensor.optional]
    if kind == "input" and missing:
        yield _at(
            ensemble, line, "ensemble-map", f"{owner}: input {missing[0]} is not mapped", "every input of the model"
        )
    if len(step.nodes(field_name)) > len(mapping):
        yield _at(ensemble, line, "ensemble-map", f"{owner}: a key of {field_name} twice", "each key once")
    if kind == "input" and not mapping and not missing:
        yield _at(ensemble, line, "ensemble-map", f"{owner}: no input is mapped", "one input or more")
    if kind == "output" and not mapping:
        yield _at(ensemble, line, "ensemble-map", f"{owner}: no output is mapped", "one output or more")


def _connections(ensemble: ModelView, graph: _Graph) -> Iterator[Finding]:
    for name, takers in graph.taken.items():
        giver = graph.given.get(name)
        for taker in takers:
            if giver is None:
                allowed = ", ".join(sorted(graph.given))
                found = f"tensor {name}, which {taker.owner} takes and nothing gives"
                yield _at(ensemble, taker.line, "ensemble-tensor-missing", found, allowed)
            elif giver.tensor.data_type != taker.tensor.data_type or not _agree(giver, taker):
                found = f"tensor {name}: {giver}, taken as {taker}"
                yield _at(ensemble, taker.line, "ensemble-tensor-differs", found, "one type and shape at both ends")
    for name, giver in graph.given.items():
        if name not in graph.taken:
            found = f"tensor {name} of {giver.owner}, which nothing takes"
            allowed = "tensors that a step or an output takes; an output of a model need not be mapped"
            yield _at(ensemble, giver.line, "ensemble-tensor-unused", found, allowed)


def _agree(one: _End, other: _End) -> bool:
    """Whether shapes can be the same, compared as Triton does: without the batch dimension, or else with it."""
    return _same(one.dims, other.dims) or _same(one.shape, other.shape)


def _same(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """-1 stands for any length."""
    return len(one) == len(other) and all(-1 in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True))


def _circle(ensemble: ModelView, graph: _Graph) -> Iterator[Finding]:
    ready = {name for name, giver in graph.given.items() if giver.owner == "the ensemble"}
    waiting = list(graph.needs)
    while waiting:
        able = [need for need in waiting if need[1] <= ready]
        if not able:
            break
        ready |= {name for need in able for name in need[2]}
        waiting = [need for need in waiting if need not in able]
    stuck = [need[0] for need in waiting if need[1] <= graph.given.keys()]
    if stuck and len(stuck) == len(waiting):
        found = f"steps {', '.join(stuck)} wait for each other"
        yield _at(ensemble, ensemble.config.node.line_of("ensemble_scheduling"), "ensemble-circle", found, "no circle")


def _at(model: ModelView, line: int, rule: str, found: str, allowed: str) -> Finding:
    return Finding(file=model.file, line=line, rule=rule, found=found, allowed=allowed)
