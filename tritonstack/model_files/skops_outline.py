"""What a file of skops states of its objects, in the form of a pickle's outline; nothing of it is made or run.

A zip file, whose ``schema.json`` is a tree of nodes: class, module, content. Arrays of numbers are files beside it,
arrays of texts lists of nodes. Source: skops/io/_general.py and _numpy.py (``…_get_state``).
"""

from __future__ import annotations

from typing import Any

from tritonstack.model_files.pickle_outline import GlobalName, PickledObject, PickleOutline
from tritonstack.untrusted.foreign_text import parse_json

_ARRAY = GlobalName("numpy", "ndarray")
_SEQUENCES = ("ListNode", "SetNode", "TupleNode")
_DEEPEST = 100
_MOST_NODES = 200_000


def skops_outline(schema: dict[str, Any]) -> PickleOutline:
    """The object of a schema. Raises ValueError where the schema has another form."""
    reader = _Reader()
    root = reader.read(schema, depth=0)
    return PickleOutline(root=root, globals=tuple(reader.globals), is_whole=True)


class _Reader:
    """Nodes → plain values and objects."""

    def __init__(self) -> None:
        self.globals: dict[GlobalName, None] = {}
        self.nodes = 0

    def read(self, node: Any, *, depth: int) -> Any:
        self.nodes += 1
        if not isinstance(node, dict) or depth > _DEEPEST or self.nodes > _MOST_NODES:
            raise ValueError("a schema of another form")
        loader, content = node.get("__loader__"), node.get("content")
        if loader == "JsonNode":
            return parse_json(str(content))
        if loader == "DictNode" and isinstance(content, dict):
            return {name: self.read(each, depth=depth + 1) for name, each in content.items()}
        if loader in _SEQUENCES and isinstance(content, list):
            values = [self.read(each, depth=depth + 1) for each in content]
            return tuple(values) if loader == "TupleNode" else values
        if loader == "NdArrayNode":
            elements = content if node.get("type") == "json" and isinstance(content, list) else []
            return PickledObject(_ARRAY, state=([self.read(each, depth=depth + 1) for each in elements],))
        made_by = GlobalName(str(node.get("__module__")), str(node.get("__class__")))
        self.globals[made_by] = None
        has_state = isinstance(content, dict) and "__loader__" in content
        return PickledObject(made_by, state=self.read(content, depth=depth + 1) if has_state else None)
