"""Which Python an execution environment holds: the folder ``lib/python3.N`` in it says so."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

_FOLDER = re.compile(r"(?:^|/)lib/python(3\.[0-9]+)/")
_MOST_MEMBERS = 20_000
"""How far into an archive the folder is looked for; conda-pack puts it near the beginning."""


def python_in_archive(path: Path) -> str | None:
    """The minor version (``3.10``) of the Python in a packed environment; None where it does not show."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for index, member in enumerate(archive):
                found = _FOLDER.search(f"{member.name}/")
                if found or index >= _MOST_MEMBERS:
                    return found[1] if found else None
    except (tarfile.TarError, OSError, EOFError):
        return None  # another rule's matter
    return None


def python_in_names(names: Iterable[str], *, below: str) -> str | None:
    """The same of an unpacked environment, by the names of its files."""
    for name in sorted(names):
        found = _FOLDER.search(name)
        if found and name.startswith(f"{below}/"):
            return found[1]
    return None
