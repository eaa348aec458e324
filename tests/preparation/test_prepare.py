"""What lies in the bucket is left, what serves elsewhere is copied, the rest is built; after a failure it goes on."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.folders import write_double
from tests.preparation.conftest import PROVE
from tests.preparation.prepare_way import A10G, T4, Way
from tests.preparation.tiny_engine import write_tiny
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.archives.bucket import Place
from tritonstack.errors import WorkFailedError
from tritonstack.preparation.gpu_step import EngineFailedError
from tritonstack.preparation.needed_work import PrepareFailedError

ONE = Place(endpoint="one", platform=A10G)
TWO = Place(endpoint="two", platform=A10G)
ONE_T4 = Place(endpoint="one", platform=T4)


def add_tiny(way: Way, name: str) -> None:
    """A second folder with an engine, of another graph."""
    write_tiny(way.root / "more")
    folder = way.places.repositories / name
    (way.root / "more/model_repos/tiny-engine").rename(folder)
    (folder / "tiny-engine").rename(folder / name)
    for path in (folder / "recipe.yaml", folder / "export.py", folder / f"{name}/config.pbtxt"):
        path.write_text(path.read_text().replace("tiny-engine", name).replace("seed: 7", "seed: 8"))


def test_a_second_run_builds_and_exports_nothing(way: Way) -> None:
    order = way.order("tiny-engine", "double")
    assert str(way.run_here(order)) == "2 built"
    there = way.keys()
    way.messages.clear()
    shutil.rmtree(way.places.archives)  # another machine
    assert str(way.run_here(order)) == "2 there already"
    assert (way.messages, way.keys(), len(way.runs)) == ([], there, 1)


def test_an_engine_is_built_once_a_platform_and_copied_to_its_other_endpoints(way: Way) -> None:
    summary = way.run_here(way.order("tiny-engine"), way.order("tiny-engine", endpoint="two"))
    assert [(item.place, item.outcome) for item in summary.archives] == [(ONE, "built"), (TWO, "copied")]
    assert len(way.runs) == 1
    manifest = way.manifest("tiny-engine", ONE)
    assert (manifest, manifest.target) == (way.manifest("tiny-engine", TWO), "24.09-a10g")
    assert manifest.engines["tiny-engine"].stand_in
    assert manifest.engines["tiny-engine"].gpu.startswith("NVIDIA A10G")
    assert way.keys("staging/") == []
    way.messages.clear()
    assert str(way.run_here(way.order("tiny-engine", endpoint="three"))) == "1 copied"
    assert not any("export" in text for _, text in way.messages)
    assert str(way.run_here(way.order("tiny-engine", platform=T4))) == "1 built"
    assert way.manifest("tiny-engine", ONE_T4).target == "24.09-t4"
    assert len(way.runs) == 2


def test_copies_of_a_model_share_one_engine(way: Way) -> None:
    recipe = way.places.folder("tiny-engine") / "recipe.yaml"
    recipe.write_text(recipe.read_text() + "copies: 3\n")
    assert str(way.run_here(way.order("tiny-engine-0", "tiny-engine-1", "tiny-engine-2"))) == "3 built"
    assert len(way.runs) == 1
    plans = {way.manifest(f"tiny-engine-{copy}", ONE).engines[f"tiny-engine-{copy}"].sha256 for copy in range(3)}
    assert len(plans) == 1


def test_archives_are_exported_and_committed_while_an_engine_is_built(way: Way) -> None:
    def until_the_other_is_committed(_name: str) -> None:
        while not any(text.startswith("built: ") for archive, text in way.messages if archive == "double"):
            assert not way.stop.wait(0.02), "the other archive waited for the engine"

    way.before_run = until_the_other_is_committed
    assert str(way.run_here(way.order("tiny-engine", "double"))).startswith("2 built")


def test_no_more_engines_run_at_once_than_the_order_allows(way: Way) -> None:
    add_tiny(way, "other-engine")
    alone = threading.Lock()

    def be_alone(_name: str) -> None:
        assert alone.acquire(blocking=False)
        alone.release()

    way.before_run = be_alone
    way.run_here(way.order("tiny-engine", "other-engine", parallel_engines=1))
    assert len(way.runs) == 2


def test_after_a_failure_what_is_done_stays_and_what_runs_is_given_up(way: Way) -> None:
    add_tiny(way, "other-engine")
    second = threading.Event()

    def fail_while_the_other_runs(name: str) -> None:
        if "other" in name:
            assert second.wait(30)
            raise EngineFailedError(reason="no tactic\nfound", log_tail=["[E] no tactic"], link="https://log")
        second.set()
        assert way.stop.wait(30), "the running engine was not given up"

    way.before_run = fail_while_the_other_runs
    way.run_here(way.order("double"))
    with pytest.raises(PrepareFailedError) as failed:
        way.run_here(way.order("tiny-engine", "other-engine", "double"))
    other = way.archive("other-engine")
    *_, last = str(failed.value).splitlines()
    assert last == f"FAILED in phase engine of {other}: no tactic found (log: https://log)"
    assert "  [E] no tactic" in str(failed.value)
    assert failed.value.exit_code == 1
    assert failed.value.left == (way.archive("tiny-engine"),)
    assert "done, and stays: 1 there already" in str(failed.value)
    assert [key for key in way.keys("endpoints/") if "engine" in key] == []
    assert not list(way.places.archives.glob("*partial*")), "the work folders are gone"


def test_a_run_that_is_stopped_without_a_failure_is_no_success(way: Way) -> None:
    way.before_run = lambda _name: way.stop.set()
    with pytest.raises(PrepareFailedError, match="given up, since the work was stopped: tiny-engine") as stopped:
        way.run_here(way.order("tiny-engine"))
    assert (stopped.value.failures, stopped.value.exit_code) == ((), 1)


def refusing(text: str) -> Callable[..., None]:
    def refuse(*_: object, **__: object) -> None:
        raise WorkFailedError(text)

    return refuse


@pytest.mark.parametrize(
    ("patched", "phase"),
    [(PROVE, "export"), ("tritonstack.preparation.pack_step.compare_engine", "proof")],
)
def test_a_proof_that_fails_names_its_phase_and_nothing_of_the_archive_is_visible(
    way: Way, monkeypatch: pytest.MonkeyPatch, patched: str, phase: str
) -> None:
    monkeypatch.setattr(patched, refusing("y differs by 0.5"))
    with pytest.raises(PrepareFailedError) as failed:
        way.run_here(way.order("tiny-engine"))
    name = way.archive("tiny-engine")
    assert str(failed.value).splitlines()[-1] == f"FAILED in phase {phase} of {name}: y differs by 0.5"
    assert way.keys() == ["timing-caches/a10g/10.4.0/timing.cache"] * (phase == "proof")


def test_an_engine_that_nothing_can_build_is_refused_with_what_could(way: Way) -> None:
    with pytest.raises(PrepareFailedError, match=r"codebuild for GPU T4 .*, and its machines have A10G") as failed:
        way.run_here(way.order("tiny-engine", platform=T4, engine_builder="codebuild"))
    assert failed.value.exit_code == 2


def test_two_runs_at_once_leave_one_archive_whose_manifest_is_its_own(
    way: Way, emulator: Emulator, tmp_path: Path
) -> None:
    rival = Way(tmp_path / "rival", emulator, way.name, way.exports)
    write_tiny(rival.root)
    write_double(rival.root)
    meet = threading.Barrier(2)

    def build_both(_name: str) -> None:
        meet.wait(30)

    way.before_run = rival.before_run = build_both
    outcomes: list[str] = []

    def run(one: Way) -> None:
        outcomes.append(str(one.run_here(one.order("tiny-engine"))))

    threads = [threading.Thread(target=run, args=(one,)) for one in (way, rival)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["1 another was first", "1 built"]
    assert way.manifest("tiny-engine", ONE).engines
    assert way.keys("endpoints/") == [ONE.archive(way.archive("tiny-engine"))]


def test_an_interruption_stops_what_runs_and_leaves_nothing_partial(way: Way) -> None:
    begun = threading.Event()

    def run_until_stopped(_name: str) -> None:
        begun.set()
        assert way.stop.wait(30)

    way.before_run = run_until_stopped
    preparation = way.preparation(way.order("tiny-engine", "double"), runner_for=way.here)

    def interrupt(archive: str, text: str) -> None:
        if (archive, text) == ("double", "export"):
            assert begun.wait(30)
            raise KeyboardInterrupt

    preparation.watch = interrupt
    with pytest.raises(KeyboardInterrupt):
        preparation.run()
    assert way.stop.is_set()
    assert way.keys() == []
    assert not list(way.places.archives.glob("*partial*"))


def test_an_interruption_starts_no_further_copy(way: Way) -> None:
    way.run_here(way.order("double"))
    preparation = way.preparation(*[way.order("double", endpoint=f"e{number}") for number in range(40)])
    first = threading.Lock()

    def interrupt(_archive: str, text: str) -> None:
        if text.startswith("copying"):
            if first.acquire(blocking=False):
                raise KeyboardInterrupt
            assert way.stop.wait(30)

    preparation.watch = interrupt
    with pytest.raises(KeyboardInterrupt):
        preparation.run()
    assert len(way.keys("endpoints/")) <= 9, "the first, and at most as many as are copied at once"
