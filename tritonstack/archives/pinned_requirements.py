"""A lock file of Python packages: every package pinned, so that the same file means the same environment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonstack.errors import InputError, Problem

_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[^\]]*\])?\s*==\s*[^\s*;\\]+\s*(;.*)?")
_LOCK = "uv pip compile --universal --python-version 3.10 --generate-hashes requirements.in -o requirements.txt"


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """A lock file; ``hashed`` where it has a hash for every package."""

    path: Path
    hashed: bool


def read_requirements(path: Path) -> Requirements:
    """Read a lock file.

    Raises :class:`InputError` where it is missing or empty, a package is not pinned with ``==``, a line is an option of
    pip's, or some packages have hashes and others none.
    """
    if not path.is_file():
        raise InputError([Problem(file=str(path), found="no such file", allowed="a lock file", advice=_LOCK)])
    problems: list[Problem] = []
    hashed: list[bool] = []
    for number, line in _logical_lines(path.read_text()):
        requirement, *options = re.split(r"\s+(?=--)", line)
        if not _PINNED.fullmatch(requirement.strip()):
            problems.append(
                Problem(
                    file=str(path), field=f"line {number}", found=requirement, allowed="name==version", advice=_LOCK
                )
            )
        hashed.append(any(option.startswith("--hash=") for option in options))
    if not problems and not hashed:
        problems.append(Problem(file=str(path), found="no package", allowed="at least one", advice=_LOCK))
    if not problems and any(hashed) and not all(hashed):
        found = f"hashes for {sum(hashed)} of {len(hashed)} packages"
        problems.append(Problem(file=str(path), found=found, allowed="hashes for all or for none", advice=_LOCK))
    if problems:
        raise InputError(problems)
    return Requirements(path=path, hashed=all(hashed))


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments, continued ones joined, each with the number of its first line."""
    found: list[tuple[int, str]] = []
    start, parts = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        start = start if parts else number
        parts += line.removesuffix("\\")
        if not line.endswith("\\"):
            if parts.strip():
                found.append((start, parts.strip()))
            parts = ""
    if parts.strip():
        found.append((start, parts.strip()))
    return found
