"""Findings at a line of a model's configuration: what nearly every rule makes."""

from __future__ import annotations

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.view import ModelView
from tritonstack.models.model_config import Node


def at_line(model: ModelView, line: int, rule: str, found: str, allowed: str, advice: str = "") -> Finding:  # noqa: PLR0917  (what a finding says, in the order of its text)
    """A finding at a line of a model's ``config.pbtxt``; 0 for the whole file."""
    return Finding(file=model.file, line=line, rule=rule, found=found, allowed=allowed, advice=advice)


def at_field(model: ModelView, field: str, rule: str, found: str, allowed: str, node: Node | None = None) -> Finding:  # noqa: PLR0917  (as above)
    """A finding at the line where a field of the configuration, or of a message in it, stands first."""
    where = node if node is not None else model.config.node
    return at_line(model, where.line_of(field), rule, found, allowed)
