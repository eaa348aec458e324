"""Fakes in place of the emulator and the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tritonstack_local.fake_parts import FakeParts


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeParts]:
    """Fakes in a folder whose name a shell would split, ended after the test."""
    fakes = FakeParts(tmp_path / "a folder with 'quotes' and $signs", monkeypatch)
    yield fakes
    fakes.stop()
