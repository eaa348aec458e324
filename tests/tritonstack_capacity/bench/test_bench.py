"""The whole bench: names found before any load, results kept as they come, one failure that leaves the others."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import Request, echo, error_reply
from tests.tritonstack_capacity.bench.world import Told, World, loads, settings_with_input, world
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.errors import InputError, WorkFailedError
from tritonstack_capacity.bench.bench import Bench
from tritonstack_capacity.bench.document import BenchDocument, settings_part
from tritonstack_capacity.bench.results_folder import ResultsFolder, read_results
from tritonstack_capacity.bench.settings import BenchSettings

COMMAND = ("tritonstack", "capacity", "bench", "bert/bert")
NAMES = ("bert/bert", "bert/small")


def bench(found: World, settings: BenchSettings, folder: Path) -> Bench:
    return Bench(settings, session=found.session, model_repos=folder)


def run(found: World, settings: BenchSettings, folder: Path, told: Told | None = None) -> BenchDocument:
    one = bench(found, settings, folder)
    results = ResultsFolder(folder / "results")
    return asyncio.run(one.run(one.subjects(), results, command=COMMAND, progress=told or Told()))


def test_every_name_in_every_format_is_a_subject(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, names=NAMES, formats=("binary", "json"))
    with world(models=("bert", "small")) as found:
        subjects = bench(found, settings, tmp_path).subjects()

    assert [(one.configuration, one.payload_format) for one in subjects] == [
        ("bert/bert", "binary"),
        ("bert/bert", "json"),
        ("bert/small", "binary"),
        ("bert/small", "json"),
    ]
    assert not found.endpoint.requests


def test_names_that_lead_nowhere_are_refused_before_any_load(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, names=(*NAMES, "bert/none"))
    with world() as found, pytest.raises((InputError, ReleaseLookupError), match="bert/none"):
        bench(found, settings, tmp_path).subjects()

    assert not found.endpoint.requests


def test_cold_starts_of_a_single_model_are_refused(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, cold_starts=2)
    with world(mode="single-model") as found, pytest.raises(InputError, match="--cold-starts"):
        bench(found, settings, tmp_path).subjects()


def test_what_perf_analyzer_cannot_send_is_refused_before_any_load(tmp_path: Path, monkeypatch: Any) -> None:
    program = tmp_path / "perf_analyzer"
    program.touch()
    monkeypatch.setenv("TRITONSTACK_PERF_ANALYZER", str(program))
    settings = settings_with_input(tmp_path, generator="perf-analyzer")
    text = '{"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1, 1], "data": ["text"]}]}'
    Path(settings.files[0]).write_text(text)
    with world() as found, pytest.raises(InputError, match="BYTES"):
        bench(found, settings, tmp_path).subjects()


def test_the_document_has_everything_that_is_needed_to_repeat_it(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, seed=7)
    with world() as found:
        document = run(found, settings, tmp_path)

    written = read_results(tmp_path / "results" / "results.json")
    assert written == document
    assert document.complete
    assert document.ended is not None
    assert (document.seed, document.command) == (7, list(COMMAND))
    assert document.settings == json.loads(json.dumps(settings_part(settings)))
    assert {"processor", "cores", "memory", "system", "load_before"} == document.machine.keys()
    assert {"tritonstack", "commit", "python", "aiohttp", "numpy"} <= document.versions.keys()
    [result] = document.results
    assert result.request_sha256 is not None
    assert result.archive == "bert.0123456789abcdef.tar.gz"


def test_a_model_that_fails_leaves_the_others(tmp_path: Path) -> None:
    def reply(request: Request) -> Any:
        fails = request.target_model is not None and request.target_model.startswith("bert.")
        return error_reply("ModelError", 424, OriginalStatusCode=500, OriginalMessage="no") if fails else echo(request)

    told = Told()
    with world(models=("bert", "small")) as found:
        found.endpoint.reply = reply
        document = run(found, settings_with_input(tmp_path, names=NAMES), tmp_path, told)

    failed, good = document.results
    assert (failed.failed, loads(failed)) == (True, [])
    assert failed.ended_by.startswith("failed: bert/bert: the first call failed: 424: no")
    assert (good.failed, loads(good)) == (False, ["1 user", "2 users"])
    assert document.complete
    assert told.notes[0].startswith("bert/bert (binary): bert/bert: the first call failed")


def test_a_model_that_answers_too_few_calls_at_each_load_has_failed(tmp_path: Path) -> None:
    """Its figures are of the calls that did not fail: as good as none."""
    calls = itertools.count()

    def reply(request: Request) -> Any:
        fails = next(calls) % 2
        return error_reply("ModelError", 424, OriginalStatusCode=500, OriginalMessage="no") if fails else echo(request)

    with world() as found:
        found.endpoint.reply = reply
        [result] = run(found, settings_with_input(tmp_path), tmp_path).results

    assert result.points[0].all.answered
    assert result.failed


def test_calls_that_were_spent_before_a_round_are_no_failure(tmp_path: Path) -> None:
    with world() as found:
        [result] = run(found, settings_with_input(tmp_path, max_calls=1), tmp_path).results

    assert (loads(result), result.failed) == ([], False)
    assert result.ended_by == "all 1 calls were made (--max-calls)"


def test_an_interrupted_test_leaves_what_was_measured(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, names=NAMES)
    with world(models=("bert", "small")) as found:

        async def work() -> None:
            one = bench(found, settings, tmp_path)
            subjects = await asyncio.to_thread(one.subjects)
            results = ResultsFolder(tmp_path / "results")
            task = asyncio.create_task(one.run(subjects, results, command=COMMAND, progress=Told()))

            def reply(request: Request) -> Any:
                if request.target_model is not None and request.target_model.startswith("small."):
                    task.get_loop().call_soon_threadsafe(task.cancel)
                return echo(request)

            found.endpoint.reply = reply
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(work())

    document = read_results(tmp_path / "results" / "results.json")
    assert not document.complete
    assert [loads(result) for result in document.results] == [["1 user", "2 users"]]


def test_a_disk_that_is_full_ends_it_with_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with_input(tmp_path)
    with world() as found:
        one = bench(found, settings, tmp_path)
        subjects = one.subjects()
        results = ResultsFolder(tmp_path / "results")
        replace_file, room = Path.replace, iter(range(3 * 2))  # three files: the beginning, and the first load

        def until_full(file: Path, target: Path) -> Path:
            if next(room, None) is None:
                raise OSError(28, "No space left on device")
            return replace_file(file, target)

        monkeypatch.setattr(Path, "replace", until_full)
        with pytest.raises(WorkFailedError, match="No space"):
            asyncio.run(one.run(subjects, results, command=COMMAND, progress=Told()))

    [result] = read_results(tmp_path / "results" / "results.json").results
    assert loads(result) == ["1 user"]


def test_overlays_are_named_by_their_configuration(tmp_path: Path) -> None:
    recipe = tmp_path / "bert" / "recipe.yaml"
    recipe.parent.mkdir()
    recipe.write_text(
        "description: A test's.\nkind: python\nsample: {request: r.json, answer: a.json, tolerance: 0}\n"
        "overlays:\n  one: {description: One.}\n  four: {description: Four., config: [four-instances.pbtxt]}\n"
    )
    settings = replace(settings_with_input(tmp_path), configurations=("four", "plain"))
    with world(models=("bert-one", "bert-four")) as found:
        subjects = bench(found, settings, tmp_path).subjects()

    assert [(one.configuration, one.target.release.model) for one in subjects] == [
        ("four", "bert-four"),
        ("one", "bert-one"),
    ]
