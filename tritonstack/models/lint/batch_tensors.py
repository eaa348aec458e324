"""Rules about ``batch_input`` and ``batch_output``: tensors that Triton makes from, or splits by, a batch.

Source: core src/model_config_utils.cc (ValidateBatchIO).
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node

_TYPES = ("TYPE_INT32", "TYPE_FP32")


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with the tensors of a batch."""
    outputs = {tensor.name for tensor in model.config.outputs}
    for batch_input in model.config.node.nodes("batch_input"):
        yield from _sources(model, "batch_input", batch_input)
        if batch_input.text("data_type") not in _TYPES:
            found = f"batch_input with data_type {batch_input.text('data_type') or 'left out'}"
            yield at_line(model, batch_input.line, "batch-tensor", found, " or ".join(_TYPES))
    for batch_output in model.config.node.nodes("batch_output"):
        yield from _sources(model, "batch_output", batch_output)
        targets = _texts(batch_output, "target_name")
        for name in sorted(set(targets)):
            found = f"batch_output with target_name {name}"
            if name not in outputs:
                allowed = ", ".join(sorted(outputs)) or "no output"
                yield at_line(model, batch_output.line, "batch-tensor", found, allowed)
            if targets.count(name) > 1:
                yield at_line(model, batch_output.line, "batch-tensor", f"{found} twice", "each name once")


def _sources(model: ModelView, field: str, message: Node) -> Iterator[Finding]:
    inputs = {tensor.name for tensor in model.config.inputs}
    sources = _texts(message, "source_input")
    if len(sources) != 1:
        found = f"{field} with {len(sources)} values of source_input"
        yield at_line(model, message.line, "batch-tensor", found, "exactly one input")
    for name in sources:
        if name not in inputs:
            allowed = ", ".join(sorted(inputs)) or "no input"
            yield at_line(model, message.line, "batch-tensor", f"{field} with source_input {name}", allowed)


def _texts(message: Node, field: str) -> list[str]:
    return [str(typed.value) for typed in message.scalars.get(field, ())]
