"""The whole way of an engine on the local AWS: job to CodeBuild or Processing, plan back, archive in the bucket."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.local_keys import OWN
from tests.preparation.prepare_way import A10G, T4, Way
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.archives.bucket import Place
from tritonstack.model_files.marked_plan import is_marked
from tritonstack.naming import Platform
from tritonstack.preparation.needed_work import PrepareFailedError
from tritonstack.untrusted.unpacking import unpack


@pytest.fixture
def built(way: Way) -> Way:
    """An environment with a builds stack."""
    way.make_builds()
    return way


@pytest.fixture
def faults(emulator: Emulator) -> Iterator[Faults]:
    """Faults of the local AWS; those that were not used are removed afterwards."""
    found = Faults(emulator)
    yield found
    found.send("DELETE")


class Faults:
    """The faults' route of the local AWS."""

    def __init__(self, emulator: Emulator) -> None:
        self._port = emulator.port

    def send(self, verb: str, fault: dict[str, Any] | None = None) -> None:
        """Send a request to the faults' route."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request(verb, "/_tritonstack/faults", json.dumps(fault) if fault else None, OWN)
            response = connection.getresponse()
            assert response.status < 300, response.read()
        finally:
            connection.close()

    def lose(self, method: str, path: str, *, times: int) -> None:
        """S3 responds to these requests with 503."""
        self.send("POST", {"method": method, "path": path, "status": 503, "times": times, "delay_seconds": 0.0})


def place(platform: Platform) -> Place:
    return Place(endpoint="one", platform=platform)


def test_orders_become_archives_with_marked_plans_each_built_once_on_its_own_gpu(built: Way) -> None:
    orders = [built.order("tiny-engine"), built.order("tiny-engine", platform=T4)]
    assert str(built.run(*orders)) == "2 built"
    name = built.archive("tiny-engine")
    for platform in (A10G, T4):
        archive, unpacked = built.root / f"{platform}.tar.gz", built.root / str(platform)
        archive.write_bytes(built.bucket.read(place(platform).archive(name)) or b"")
        unpack(archive, unpacked)
        assert is_marked(unpacked / "tiny-engine/1/model.plan")
        assert not (unpacked / "tiny-engine/1/model.onnx").exists()
        assert built.manifest("tiny-engine", place(platform)).plan is False
    assert built.keys("staging/") == []
    assert built.keys("timing-caches/") == [f"timing-caches/{gpu}/10.4.0/timing.cache" for gpu in ("a10g", "t4")]
    assert str(built.run(*orders)) == "2 there already"
    assert (len(built.builds()), len(built.jobs())) == (1, 1)


def test_an_engine_that_trtexec_does_not_build_fails_in_phase_engine_with_trtexecs_words(built: Way) -> None:
    recipe = built.places.folder("tiny-engine") / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("x: {min: [1, 4], opt: [4, 4]", "x: {min: [1, 3], opt: [4, 4]"))
    with pytest.raises(PrepareFailedError) as failed:
        built.run(built.order("tiny-engine"))
    *_, last = str(failed.value).splitlines()
    assert last.startswith(f"FAILED in phase engine of {built.archive('tiny-engine')}: ")
    assert "(phase build of the engine step)" in last
    assert "(log: https://" in last
    assert (built.keys("endpoints/"), built.keys("manifests/"), built.keys("staging/")) == ([], [], [])


@pytest.mark.parametrize(
    ("path", "phase"), [pytest.param("/staging/jobs/", "engine", marks=pytest.mark.long), ("/endpoints/", "commit")]
)
def test_s3_that_stays_lost_ends_the_run_with_a_reason_and_the_next_goes_on(
    built: Way, faults: Faults, path: str, phase: str
) -> None:
    faults.lose("PUT", path, times=1000)
    with pytest.raises(PrepareFailedError) as failed:
        built.run(built.order("tiny-engine"))
    last = str(failed.value).splitlines()[-1]
    assert last.startswith(f"FAILED in phase {phase} of {built.archive('tiny-engine')}: could not write s3://")
    assert "503" in last or "SlowDown" in last
    assert built.keys("endpoints/") == []
    begun = len(built.builds())
    faults.send("DELETE")
    assert str(built.run(built.order("tiny-engine"))).startswith("1 built")
    assert len(built.builds()) == (1 if phase == "commit" else begun + 1), "a built engine is not built again"


def test_a_lost_copy_fails_in_phase_copy(built: Way, faults: Faults) -> None:
    built.run(built.order("double"))
    faults.lose("PUT", "/endpoints/two/", times=1000)
    with pytest.raises(PrepareFailedError) as failed:
        built.run(built.order("double", endpoint="two"))
    assert str(failed.value).splitlines()[-1].startswith(f"FAILED in phase copy of {built.archive('double')}: ")
