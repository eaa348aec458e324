"""What the tests of this folder share: one local AWS, exports, and proofs without a Triton."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_aws import FakeAws
from tests.preparation.prepare_way import Way
from tests.preparation.tiny_engine import PROVEN
from tests.tritonstack_local.emulator.running import Emulator

PROVE = "tritonstack.archives.staging.prove_sample"


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    running = Emulator(tmp_path_factory.mktemp("aws"), TRITONSTACK_FLEETS="none")
    yield running.wait_ready()
    assert running.stop() == 0, running.log.read_text()


@pytest.fixture
def aws() -> FakeAws:
    """An account of its own."""
    return FakeAws.with_artifacts()


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished exports, each under the digest of what it depends on: made by the first test that needs one."""
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module", autouse=True)
def proof_without_triton() -> Iterator[None]:
    """Each archive counts as proven: what a proof finds, ``tests/tritonstack_local/container/test_proof.py`` shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PROVE, lambda *_, **__: PROVEN)
        yield


@pytest.fixture
def environment() -> str:
    """A name that no other test has."""
    return f"e{uuid.uuid4().hex[:10]}"


@pytest.fixture
def way(tmp_path: Path, emulator: Emulator, exports: Path, environment: str) -> Way:
    """A project, and an environment of its own on the local AWS."""
    return Way.make(tmp_path / "project", emulator, environment, exports=exports)
