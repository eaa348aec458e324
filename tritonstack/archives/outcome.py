"""How an archive got to its place, in the words that ``build``, ``publish`` and ``prepare`` report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

ArchiveOutcome = Literal[
    "published",  # built before, uploaded now
    "there already",
    "there already from another build",  # of the same digest, with other bytes
    "copied",  # from another endpoint or platform
    "built",  # and uploaded
    "another was first",  # another run wrote it in between: its archive is used
]


def counted(outcomes: Iterable[ArchiveOutcome]) -> str:
    """``3 built, 1 there already``: how many had each outcome; empty for none."""
    found = list(outcomes)
    return ", ".join(f"{found.count(each)} {each}" for each in get_args(ArchiveOutcome) if each in found)
