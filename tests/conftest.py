"""What every test may count on, and in which order files of tests are begun."""

from __future__ import annotations

import gc
import signal
from pathlib import Path

import psutil
import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]

TESTS = Path(__file__).parent
FIRST = ("e2e", "systems", "stacks")
"""Folders whose files take longest."""
ONE_PROCESS = ("e2e/local", "engines", "examples", "exporters", "releases", "tritonstack_local/container")
"""Folders whose files share something that takes seconds to make: a deployed environment, a wheel, a Triton."""

# No test asserts how long something takes: a machine that is busy with other work is no defect.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# A suite that is started in the background, as some runners do, is started with Ctrl-C ignored, and so is every program
# that it starts; tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """With ``pytest -n``, a file is whole in one process, in its tests' order; so is a folder of ``ONE_PROCESS``."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        """Files keep the order of the collection, which has the longest folders first."""
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0].removeprefix("tests/")
        return next((folder for folder in ONE_PROCESS if file.startswith(f"{folder}/")), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    """The scheduler of ``pytest -n``."""
    return FolderScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest folders come first, so that no process waits for one of them at the end."""
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in FIRST)


GROWTH_BYTES = 64 * 2**20
"""How much a process may grow before its garbage is looked for."""
_memory = psutil.Process().memory_info().rss


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect garbage after a file that made much of it.

    SDK clients, apps of the CDK and parsed models are cycles, and the older and larger a process is, the less often
    Python looks for those: without this one process of a whole run had 4.7 GB.
    """
    global _memory  # noqa: PLW0603  one process, one measure
    if nextitem is not None and nextitem.path == item.path:
        return
    if psutil.Process().memory_info().rss - _memory > GROWTH_BYTES:
        gc.collect()
        _memory = psutil.Process().memory_info().rss
