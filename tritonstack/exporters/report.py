"""The report of an export: its figures, the versions of its tools, and what it read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import metadata

from tritonstack.exporters.arguments import Arguments
from tritonstack.exporters.files import write_text

TOOLS = ("numpy", "onnx", "onnxruntime", "onnxscript", "torch", "transformers")


def versions(distributions: Iterable[str] = TOOLS) -> dict[str, str]:
    """Distribution → its version in this environment."""
    return {name: metadata.version(name) for name in distributions}


def write(
    arguments: Arguments,
    figures: Mapping[str, float],
    tools: Mapping[str, str] | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Write ``--report``.

    Args:
        arguments: the script's.
        figures: name → number, such as the proof's largest difference.
        tools: name → version; without it, those of :data:`TOOLS`.
        inputs: file that was read from elsewhere → its SHA-256.
    """
    content = {"figures": dict(figures), "tools": dict(tools or versions()), "inputs": dict(inputs or {})}
    write_text(arguments.report, json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")
