"""Parts that packages next to this one register by entry points, and the extras that bring what parts depend on.

Parts are groups of commands, schemas, the local AWS. One wheel carries all of them; what only some need comes with its
extras (``tritonstack[local]``).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoints, entry_points
from importlib.util import find_spec
from typing import Any

from tritonstack.errors import InputError, Problem

EXTRAS: Mapping[str, str] = {
    "aiohttp": "capacity",
    "aws_cdk": "cdk",
    "cdk_nag": "cdk",
    "constructs": "cdk",
    "psutil": "local",
    "tokenizers": "text",
}
"""Top-level module → the extra of ``pyproject.toml`` that brings it; every other one comes with the package itself."""


def install_line(module: str) -> str:
    """The command that installs a module: the package is there, so pip fetches what it lacks alone."""
    name = module.partition(".")[0]
    return f"pip install 'tritonstack[{EXTRAS[name]}]'" if name in EXTRAS else "pip install tritonstack"


def not_installed(module: str) -> InputError:
    """The error for a module that is not installed."""
    extra = EXTRAS.get(module.partition(".")[0])
    allowed = "tritonstack with what it depends on" if extra is None else f"tritonstack with its extra `{extra}`"
    found = f"{module.partition('.')[0]} is not installed"
    return InputError([Problem(found=found, allowed=allowed, advice=install_line(module))])


def is_of_another(error: ModuleNotFoundError) -> bool:
    """Whether the missing module is of another package, which can be installed, and none of this one's own."""
    return not (error.name or "tritonstack").startswith(("tritonstack", "constructs_lib"))


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
            if not is_of_another(error):
                raise
    return found


def require_modules(*names: str) -> None:
    """Raise :class:`ModuleNotFoundError` unless each top-level module is installed; none is imported, for speed."""
    for name in names:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"no module named {name!r}: {install_line(name)}", name=name)
