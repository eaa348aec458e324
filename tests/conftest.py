"""What every test may count on, and which tests stay in one process where several run (``pytest -n``)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SHARING = ("e2e", "systems", "stacks")
"""Folders whose tests share what takes long to make: a deployed environment, synthesised templates."""

# A suite that is started in the background, as some runners do, is started with Ctrl-C ignored, and so is every program
# that it starts; tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process takes a whole folder that shares, or else a whole file; the folders come first, as the longest."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: _group(item) not in SHARING)


def _group(item: pytest.Item) -> str:
    parts = item.path.relative_to(TESTS).parts
    return parts[0] if parts[0] in SHARING else "/".join(parts)
