"""A namespace of metrics for each test."""

from __future__ import annotations

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator


@pytest.fixture
def watching(aws: Emulator, name: str) -> Watching:
    """Metrics and alarms of this test."""
    return Watching(aws, name)
