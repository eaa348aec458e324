"""Rules about batches: ``max_batch_size``, ``batch_input`` and ``batch_output``, the dynamic batcher and its queues."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tritonstack.lint.completion import complete
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_config import Node, enum_members
from tritonstack.models.model_view import ModelView

# Source: core src/model_config_utils.cc (ValidateBatchIO).


_TYPES = ("TYPE_INT32", "TYPE_FP32")


def check_batch_tensors(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check the tensors of a batch, as Triton does after the backend completed inputs and outputs."""
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


# Source: core src/model_config_utils.cc (ValidateModelConfig).


def check_queues(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check the queues of the dynamic batcher."""
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is None:
        return
    levels = dynamic.integer("priority_levels")
    # Of a repeated entry the last counts, as in protobuf.
    policies = {int(key or 0): policy for key, policy in dynamic.entries("priority_queue_policy").items()}
    if levels:
        yield from _levels(model, dynamic, levels)
    if not dynamic.flag("preserve_ordering"):
        return
    if levels > 1:
        line = dynamic.line_of("preserve_ordering")
        found = f"preserve_ordering with {levels} priority levels"
        yield at_line(model, line, "preserve-ordering", found, "one level, or no preserve_ordering")
    for policy in (dynamic.node("default_queue_policy"), *policies.values()):
        if not isinstance(policy, Node) or policy.text("timeout_action") != "DELAY":
            continue
        if policy.integer("default_timeout_microseconds"):
            found = "preserve_ordering with a queue policy that delays what timed out"
            yield at_line(model, policy.line, "preserve-ordering", found, "timeout_action: REJECT")


def _levels(model: ModelView, dynamic: Node, levels: int) -> Iterator[Finding]:
    """The default level, and the levels of queue policies, against ``priority_levels``."""
    default = dynamic.integer("default_priority_level")
    allowed = f"1 to priority_levels, {levels}"
    if not 1 <= default <= levels:
        has_one = dynamic.has("default_priority_level")
        found = f"default_priority_level {default}" if has_one else "priority_levels without default_priority_level"
        yield at_line(model, dynamic.line_of("default_priority_level"), "priority-level", found, allowed)
    for policy in dynamic.nodes("priority_queue_policy"):
        if not 1 <= policy.integer("key") <= levels:
            found = f"priority_queue_policy of level {policy.integer('key')}"
            yield at_line(model, policy.line, "priority-level", found, allowed)


# Source: core src/model_config_utils.cc (ValidateModelConfig).


def check_batching(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check the batching settings."""
    if model.config.max_batch_size < 0:
        found = f"max_batch_size: {model.config.max_batch_size}"
        yield at_field(model, "max_batch_size", "max-batch-size", found, "0 or more")
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is None:
        return
    done, limit = complete(view, model), model.config.max_batch_size
    if done.max_batch_size == 0 and done.is_known:
        yield at_line(model, dynamic.line, "dynamic-batching", "dynamic_batching with max_batch_size 0")
    for size in dynamic.integers("preferred_batch_size"):
        if not 0 < size <= limit:  # Triton compares it before the backend completes anything
            line = dynamic.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}" if limit > 0 else "none: max_batch_size is 0"
            yield at_line(model, line, "preferred-batch-size", f"preferred_batch_size {size}", allowed)
