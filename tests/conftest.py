"""What every test may count on, and in which order files of tests are begun."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import psutil
import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]

TESTS = Path(__file__).parent
FIRST = (
    "systems", "e2e/test_review_predictions", "differential", "e2e/local", "e2e", "docs/test_sequences", "stacks",
    "review", "examples", "engines",
)  # fmt: skip
"""Files and folders that take longest, as they are begun: the two that hold most memory, systems and e2e/local, apart.

Those of e2e that share its local AWS follow each other.
"""
ONE_PROCESS = ("e2e/local", "engines", "examples", "model_repos/exporters", "releases")
"""Folders whose files share something that takes seconds to make: a deployed environment, a wheel."""

# No test asserts how long something takes: a machine that is busy with other work is no defect.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# A suite that is started in the background, as some runners do, is started with Ctrl-C ignored, and so is every program
# that it starts; tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# For the CDK's command line, wherever a test starts it.
os.environ["NODE_OPTIONS"] = f'{os.environ.get("NODE_OPTIONS", "")} --require "{TESTS / "look_sooner.js"}"'.strip()


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
    """The longest come first, so that no process waits for one of them at the end."""

    def place(item: pytest.Item) -> int:
        file = item.path.relative_to(TESTS).as_posix()
        return next((place for place, first in enumerate(FIRST) if file.startswith(first)), len(FIRST))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Modules and tests last as long as the process: no later collection of garbage looks at them."""
    gc.collect()
    gc.freeze()


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
