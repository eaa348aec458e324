"""Rules about batches: the largest one, the dynamic batcher and its queues.

Source: core src/model_config_utils.cc (ValidateModelConfig).
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with batching."""
    limit = model.config.max_batch_size
    if limit < 0:
        yield at_field(model, "max_batch_size", "max-batch-size", f"max_batch_size: {limit}", "0 or more")
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is not None:
        yield from _dynamic(model, dynamic)


def _dynamic(model: ModelView, dynamic: Node) -> Iterator[Finding]:
    if model.config.max_batch_size == 0:
        found, allowed = "dynamic_batching with max_batch_size 0", "max_batch_size: 1 or more"
        yield at_line(model, dynamic.line, "dynamic-batching", found, allowed)
    yield from _preferred(model, dynamic)
    levels, default = dynamic.integer("priority_levels"), dynamic.integer("default_priority_level")
    if levels and not 1 <= default <= levels:
        found = f"default_priority_level {default}"
        yield at_line(model, dynamic.line, "priority-level", found, f"1 to priority_levels, {levels}")
    policies = dynamic.nodes("priority_queue_policy")
    for policy in policies:
        if levels and not 1 <= policy.integer("key") <= levels:
            found = f"priority_queue_policy of level {policy.integer('key')}"
            yield at_line(model, policy.line, "priority-level", found, f"1 to priority_levels, {levels}")
    if dynamic.flag("preserve_ordering"):
        yield from _ordering(model, dynamic, levels)


def _ordering(model: ModelView, dynamic: Node, levels: int) -> Iterator[Finding]:
    """``preserve_ordering`` against what would let one request overtake another."""
    line = dynamic.line_of("preserve_ordering")
    if levels > 1:
        found = f"preserve_ordering with {levels} priority levels"
        yield at_line(model, line, "preserve-ordering", found, "one level, or no preserve_ordering")
    policies = [dynamic.node("default_queue_policy")]
    policies += [entry.node("value") for entry in dynamic.nodes("priority_queue_policy")]
    for policy in policies:
        if policy and policy.integer("default_timeout_microseconds") and policy.text("timeout_action") == "DELAY":
            found = "preserve_ordering with a queue policy that delays what timed out"
            yield at_line(model, policy.line, "preserve-ordering", found, "timeout_action: REJECT")


def _preferred(model: ModelView, batcher: Node) -> Iterator[Finding]:
    limit = max(model.config.max_batch_size, 0)
    for size in batcher.integers("preferred_batch_size"):
        if not 0 < size <= limit:
            line = batcher.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}" if limit else "none: max_batch_size is 0"
            yield at_line(model, line, "preferred-batch-size", f"preferred_batch_size {size}", allowed)
