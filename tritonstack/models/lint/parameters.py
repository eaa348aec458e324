"""Rules about the ``parameters`` of a model: keys that its backend does not know have no effect, and no warning."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node


@dataclass(frozen=True)
class KnownParameters:
    """The parameters that a backend reads, and where that was read."""

    keys: frozenset[str]
    values: Mapping[str, tuple[str, ...]]
    source: str


@functools.cache
def known_parameters() -> Mapping[str, KnownParameters]:
    """Backend → what it knows, from ``backend_parameters.json``; a backend that is not in it takes any key."""
    content = json.loads(importlib.resources.files(__package__).joinpath("backend_parameters.json").read_text())
    return {
        backend: KnownParameters(
            keys=frozenset(entry["keys"]),
            values={key: tuple(values) for key, values in entry.get("values", {}).items()},
            source=entry["source"],
        )
        for backend, entry in content["backends"].items()
    }


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Parameters that the backend does not know, or whose value it does not know."""
    known = known_parameters().get(model.backend)
    if known is None:
        return
    for key, entry in model.config.node.entries("parameters").items():
        line = entry.line if isinstance(entry, Node) else model.config.node.line_of("parameters")
        value = entry.text("string_value") if isinstance(entry, Node) else ""
        if key not in known.keys:
            near = difflib.get_close_matches(key.upper(), {each.upper(): each for each in known.keys}, n=1)
            advice = f"did you mean {next(each for each in known.keys if each.upper() == near[0])}?" if near else ""
            allowed = ", ".join(sorted(known.keys))
            yield at_line(model, line, "parameter-unknown", f"parameter {key}", allowed, advice)
        elif key in known.values and value not in known.values[key]:
            allowed = ", ".join(known.values[key])
            yield at_line(model, line, "parameter-value", f'parameter {key}: "{value}"', allowed)
