"""Rules about ensembles with decoupled steps: what comes from different ones cannot be brought together again.

Source: core src/ensemble_scheduler/ensemble_utils.cc (ValidateEnsembleConfig).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonstack.models.lint.ensemble_graph import Step
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field
from tritonstack.models.lint.view import ModelView

_ALLOWED = "tensors of one decoupled model, or of none"


def check_decoupled(ensemble: ModelView, steps: Sequence[Step]) -> Iterator[Finding]:
    """Where tensors meet that number their responses differently."""
    # Tensor → the decoupled step that its responses are counted by; 0 for the request itself.
    label = {tensor.name: 0 for tensor in ensemble.config.inputs}
    waiting = list(steps)
    while able := [step for step in waiting if set(step.inputs.values()) <= label.keys()]:
        for step in able:
            labels = {label[name] for name in step.inputs.values()}
            if len(labels) > 1:
                found = f"{step} takes tensors of different decoupled models"
                yield at_field(ensemble, "input_map", "ensemble-decoupled", found, _ALLOWED, step.node)
            own = step.index + 1 if step.model and _is_decoupled(step.model) else min(labels, default=0)
            label |= dict.fromkeys(step.outputs.values(), own)
        waiting = [step for step in waiting if step not in able]
    outputs = {label[tensor.name] for tensor in ensemble.config.outputs if tensor.name in label}
    if len(outputs) > 1:
        found = "outputs of different decoupled models"
        yield at_field(ensemble, "output", "ensemble-decoupled", found, _ALLOWED)


def _is_decoupled(model: ModelView) -> bool:
    policy = model.config.node.node("model_transaction_policy")
    return policy is not None and policy.flag("decoupled")
