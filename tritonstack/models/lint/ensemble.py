"""Rules about an ensemble: its fields, its steps and the models that they name.

Source: core src/model_config_utils.cc (ValidateEnsembleSchedulingConfig), src/ensemble_scheduler/ensemble_utils.cc
(ValidateEnsembleConfig), src/model_repository_manager/model_repository_manager.cc (dependencies).
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.completion import complete
from tritonstack.models.lint.ensemble_decoupled import check_decoupled
from tritonstack.models.lint.ensemble_graph import Step, check_flow, check_tensors
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import ModelView, RepositoryView

_FORBIDDEN = ("instance_group", "optimization", "model_warmup")


def check(view: RepositoryView) -> Iterator[Finding]:
    """What is wrong with the ensembles of an archive, and which models none of them uses."""
    for model in view.models.values():
        if model.config.node.has("ensemble_scheduling") and not model.is_ensemble:
            found = f'platform: "{model.config.node.text("platform")}" with ensemble_scheduling'
            allowed = 'platform: "ensemble", written so'
            yield at_field(model, "ensemble_scheduling", "ensemble-platform", found, allowed)
    for ensemble in view.ensembles:
        yield from _ensemble(view, ensemble)
    if view.ensembles:
        used = {step.text("model_name") for ensemble in view.ensembles for step in ensemble.config.steps}
        for model in view.models.values():
            if model.name not in used and not model.is_ensemble:
                allowed = "models that the ensemble uses"
                yield at_line(model, 0, "unused-model", f"no step uses {model.name}", allowed)


def _ensemble(view: RepositoryView, ensemble: ModelView) -> Iterator[Finding]:
    if not ensemble.config.steps:
        allowed = "ensemble_scheduling { step [ … ] }"
        yield at_field(ensemble, "platform", "ensemble-without-steps", "an ensemble without steps", allowed)
        return
    for field in _FORBIDDEN:
        if ensemble.config.node.has(field):
            yield at_field(ensemble, field, "ensemble-field", f"{field} in an ensemble", f"no {field}")
    steps = [Step.of(node, index, view.models) for index, node in enumerate(ensemble.config.steps)]
    for step in steps:
        yield from _step(view, ensemble, step)
    yield from _needs_itself(view, ensemble)
    yield from check_flow(ensemble, steps)
    yield from check_tensors(view, ensemble, steps)
    yield from check_decoupled(ensemble, steps)


def _step(view: RepositoryView, ensemble: ModelView, step: Step) -> Iterator[Finding]:
    if step.model is None or step.model is ensemble:
        others = ", ".join(sorted(other for other in view.models if other != ensemble.name))
        found = f"step {step.name or '?'}"
        yield at_field(ensemble, "model_name", "ensemble-step", found, others or "a model of the archive", step.node)
        return
    if step.node.text("model_namespace"):
        allowed = "none: SageMaker's namespaces are its own"
        yield at_field(ensemble, "model_namespace", "ensemble-namespace", "model_namespace", allowed, step.node)
    # Protobuf gives 0 for a version that is left out, and Triton takes it at its word.
    version = step.node.integer("model_version")
    served = step.model.served_versions
    if version != -1 and str(version) not in served and (served or view.recipe is None):
        found = f"model_version: {version}" if step.node.has("model_version") else "no model_version, which means 0"
        allowed = f"-1 for the newest{''.join(f', {name}' for name in served)}"
        yield at_field(ensemble, "model_version", "ensemble-version", found, allowed, step.node)
    limit = complete(view, step.model).max_batch_size
    if limit != 0 and ensemble.config.max_batch_size > limit:
        found = f"max_batch_size {ensemble.config.max_batch_size}, step {step.name} has {limit}"
        yield at_field(ensemble, "max_batch_size", "ensemble-batch", found, f"up to {limit}")


def _needs_itself(view: RepositoryView, ensemble: ModelView) -> Iterator[Finding]:
    """An ensemble that needs itself by way of others."""
    reached: set[str] = set()
    waiting = [step.text("model_name") for step in ensemble.config.steps]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in view.models:
            continue
        reached.add(name)
        waiting += [step.text("model_name") for step in view.models[name].config.steps]
    if ensemble.name in reached:
        found, allowed = f"{ensemble.name}, which needs itself", "steps that do not lead back"
        yield at_field(ensemble, "ensemble_scheduling", "ensemble-circle", found, allowed)
