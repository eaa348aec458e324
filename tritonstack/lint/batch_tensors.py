"""Rules about tensors of a batch: ``batch_input`` and ``batch_output``."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tritonstack.lint.completion import complete
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_line
from tritonstack.models.model_config import Node, enum_members
from tritonstack.models.model_view import ModelView

# Source: core src/model_config_utils.cc (ValidateBatchIO).


_TYPES = ("TYPE_INT32", "TYPE_FP32")


def check_batch_tensors(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with the tensors of a batch, which Triton checks after the backend completed inputs and outputs."""
    node = model.config.node
    if not node.has("batch_input") and not node.has("batch_output"):
        return
    done = complete(view, model)
    inputs = {tensor.name for tensor in done.inputs} if done.is_known else None
    outputs = {tensor.name for tensor in done.outputs} if done.is_known else None
    for batch_input in node.nodes("batch_input"):
        yield from _sources(model, "batch_input", batch_input, inputs)
        if batch_input.text("data_type") not in _TYPES:
            found = f"batch_input with data_type {batch_input.text('data_type') or 'left out'}"
            yield at_line(model, batch_input.line, "batch-tensor", found, " or ".join(_TYPES))
    for batch_output in node.nodes("batch_output"):
        yield from _sources(model, "batch_output", batch_output, inputs)
        targets = batch_output.texts("target_name")
        if not targets:  # the C++ backends' common code takes the first: server 2.51.0 ends with a segmentation fault
            yield at_line(model, batch_output.line, "batch-tensor", "batch_output without target_name", "an output")
        for name in dict.fromkeys(targets):
            found = f"batch_output with target_name {name}"
            if outputs is not None and name not in outputs:
                yield at_line(model, batch_output.line, "batch-tensor", found, _one_of(outputs, "output"))
            if targets.count(name) > 1:
                yield at_line(model, batch_output.line, "batch-tensor", f"{found} twice", "each name once")


def _sources(model: ModelView, field: str, message: Node, inputs: Collection[str] | None) -> Iterator[Finding]:
    """Kind and sources of one tensor; ``inputs``: the model's, None where they are not known."""
    kinds = enum_members("BatchInput.Kind" if field == "batch_input" else "BatchOutput.Kind")
    if message.has("kind") and message.text("kind") not in kinds:  # a number that no kind has
        found = f"{field} with kind {message.text('kind')}"
        yield at_line(model, message.line, "batch-tensor", found, ", ".join(kinds))
    sources = message.texts("source_input")
    if len(sources) != 1:
        found = f"{field} with {len(sources)} values of source_input"
        yield at_line(model, message.line, "batch-tensor", found, "exactly one input")
    for name in dict.fromkeys(sources):
        if inputs is not None and name not in inputs:
            found = f"{field} with source_input {name}"
            yield at_line(model, message.line, "batch-tensor", found, _one_of(inputs, "input"))


def _one_of(names: Collection[str], kind: str) -> str:
    return ", ".join(sorted(names)) or f"none: the model has no {kind}"
