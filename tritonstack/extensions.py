"""Parts that packages next to this one register by entry points, and the extras that bring what parts depend on.

Parts are groups of commands, schemas, the local AWS. One wheel carries all of them; what only some need comes with its
extras (``tritonstack[local]``).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from importlib.metadata import Distribution, EntryPoints, PackageNotFoundError, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from tritonstack.errors import InputError, Problem

PACKAGE = "tritonstack"


def installed_from() -> str | None:
    """URL that this package was installed from: ``file:///…/tritonstack-1.0-py3-none-any.whl``. None: an index.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        text = Distribution.from_name(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return str(json.loads(text)["url"]) if text else None


def installed_wheel() -> Path | None:
    """The wheel file that this package was installed from; None where it was another way, or the file is gone."""
    url = urlsplit(installed_from() or "")
    path = Path(url2pathname(url.path))
    return path if url.scheme == "file" and path.suffix == ".whl" and path.is_file() else None


def install_command(*extras: str) -> str:
    """Command that installs extras of this package from where it was installed itself."""
    wanted, wheel, url = f"[{','.join(extras)}]" if extras else "", installed_wheel(), installed_from()
    if wheel is not None:
        return f"pip install {shlex.quote(f'{wheel}{wanted}')}"
    named = f"{PACKAGE}{wanted}" if url is None or url.startswith("file:") else f"{PACKAGE}{wanted} @ {url}"
    return f"pip install {shlex.quote(named)}"


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
    return install_command(EXTRAS[name]) if name in EXTRAS else install_command()


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
