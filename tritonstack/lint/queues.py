"""Rules about the queues of the dynamic batcher: levels of priority, and responses in the order of the requests."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_line
from tritonstack.models.model_config import Node
from tritonstack.models.model_view import ModelView

# Source: core src/model_config_utils.cc (ValidateModelConfig).


def check_queues(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with the queues of the dynamic batcher."""
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is None:
        return
    levels = dynamic.integer("priority_levels")
    # Of an entry that stands twice the last counts, as in protobuf.
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
