"""One local AWS for the tests of this folder that need one, and the exports that they share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.prepare_way import Way
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.models.staging import Proofs


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A local AWS without endpoints."""
    running = Emulator(tmp_path_factory.mktemp("aws"), TRITONSTACK_FLEETS="none")
    yield running.wait_ready()
    assert running.stop() == 0, running.log.read_text()


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished exports, each under the digest of what it depends on: made by the first test that needs one."""
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="session")
def proofs() -> Proofs:
    """Proofs by the local Triton, each by the digest of what it covers."""
    return {}


@pytest.fixture
def environment() -> str:
    """A name that no other test has."""
    return f"e{uuid.uuid4().hex[:10]}"


@pytest.fixture
def way(tmp_path: Path, emulator: Emulator, exports: Path, proofs: Proofs, environment: str) -> Way:
    """A project, and an environment of its own on the local AWS."""
    return Way.make(tmp_path / "project", emulator, environment, exports=exports, proofs=proofs)
