"""Parts that packages next to this one register by entry points: groups of commands, schemas, the local AWS.

One wheel carries all of them; what they depend on comes with its extras (``tritonstack[local]`` and ``[capacity]``).
"""

from __future__ import annotations

from importlib.metadata import EntryPoints, entry_points
from importlib.util import find_spec
from typing import Any


def registered(group: str) -> EntryPoints:
    """The entry points of a group, whether or not what they need is installed."""
    return entry_points(group=group)


def extensions(group: str) -> dict[str, Any]:
    """Name → object of the entry points of a group, without those whose dependencies are not installed."""
    found = {}
    for point in sorted(registered(group), key=lambda point: point.name):
        try:
            found[point.name] = point.load()
        except ModuleNotFoundError as error:
            if (error.name or "tritonstack").startswith("tritonstack"):
                raise  # a module of ours is missing: no extra brings it
    return found


def require_modules(*names: str) -> None:
    """Raise :class:`ModuleNotFoundError` unless each top-level module is installed; none is imported, for speed."""
    for name in names:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)
