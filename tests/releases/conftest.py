"""One emulator without fleets for the tests of this folder, and the commands pointed at it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.releases.deployment import Deployment
from tests.tritonstack_local.emulator.running import Emulator


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A running emulator; endpoints would be InService at once."""
    emulator = Emulator(tmp_path_factory.mktemp("aws"), TRITONSTACK_FLEETS="none")
    yield emulator.wait_ready()
    assert emulator.stop() == 0, emulator.log.read_text()


@pytest.fixture
def deployment(aws: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """An environment of its own, whose commands talk to the emulator as they would to an account."""
    for name, value in {
        "AWS_ENDPOINT_URL": aws.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "TRITONSTACK_PROJECT": str(tmp_path),
        "TRITONSTACK_HOME": str(tmp_path / ".local"),
        "COLUMNS": "200",
    }.items():
        monkeypatch.setenv(name, value)
    return Deployment(aws, f"t-{uuid.uuid4().hex[:8]}", tmp_path)
