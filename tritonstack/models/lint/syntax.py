"""Rules about the text of a ``config.pbtxt``: protobuf's text format, and the fields that Triton knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.schema import is_installed, refusal_of
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Complaint

_ONLY_IN_PYTHON = ('Expected "true" or "false".', "surrogates not allowed")
"""What protobuf's reader in Python refuses and the one in C++ takes: 0x1 for true, and two escapes for one letter."""


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What Triton's reader refuses, all of it where our own reader finds more than the first.

    Two readers look at it: protobuf's, whose definitions are the server's and which stops at the first mistake, and
    ours, which finds them all, says which names are near, and is as strict as protobuf's reader in C++, which is the
    server's (the one in Python takes an unknown escape and a sign before a number).
    """
    refusal = refusal_of(model.text) if is_installed() else None
    complaints = model.config.complaints
    node = model.config.node
    if refusal is None and not complaints and not node.scalars and not node.messages:
        allowed = "a model's configuration: backend, max_batch_size, input and output"
        rule = "config-empty" if view.is_built else "auto-completed"
        found = "an empty file" if model.has_config else "no config.pbtxt"
        yield Finding(file=model.file, rule=rule, found=found, allowed=allowed)
    for complaint in complaints:
        at_refusal = refusal is not None and complaint.line == refusal.line
        yield Finding(
            file=model.file,
            line=complaint.line,
            column=refusal.column if refusal and at_refusal else 0,
            rule="config",
            found=f"{complaint.path}: {complaint.found}" if complaint.path else complaint.found,
            allowed=complaint.allowed,
            advice=_near(complaint),
        )
    at_ours = refusal is not None and any(complaint.line == refusal.line for complaint in complaints)
    if refusal is not None and not at_ours and not refusal.reason.endswith(_ONLY_IN_PYTHON):
        yield Finding(
            file=model.file,
            line=refusal.line,
            column=refusal.column,
            rule="config",
            found=refusal.reason,
            allowed="protobuf's text format, with the fields of Triton's ModelConfig",
        )


def _near(complaint: Complaint) -> str:
    """The names among the allowed ones that an unknown one is near to."""
    words = complaint.found.replace('"', "").split()
    near = difflib.get_close_matches(words[-1] if words else "", complaint.allowed.removeprefix("one of ").split(", "))
    return f"did you mean {' or '.join(near)}?" if near else ""
