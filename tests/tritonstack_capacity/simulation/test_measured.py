"""What was measured of a model takes the place of what a scenario would assume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tritonstack_capacity.bench.documents import document, point, result
from tests.tritonstack_capacity.simulation.test_scenario_file import GOOD, problems, read, written
from tritonstack_capacity.bench.document import ResultPart
from tritonstack_capacity.simulation.scenario import MIB

LARGE = "disk_mib: 2000"
"""Of the group ``large`` of the scenario: 20 s of download at the default 100 MiB/s."""


def cold_result(name: str, *milliseconds: float, warm: float = 100.0, **changes: Any) -> ResultPart:
    """A model whose calls take ``warm`` ms on average, and these when they were its first."""
    cold = {"milliseconds": list(milliseconds), "failures": []}
    quick, slow = (point(users=users, per_minute=600, p95=2 * warm * users) for users in (1, 4))
    return result("plain", slow, quick, name=name, cold=cold, **changes)


def results(folder: Path, *parts: ResultPart, name: str = "results.json") -> None:
    written(folder, document(*parts).model_dump_json(), name=name)


def test_cold_starts_are_the_median_of_all_results_beyond_a_warm_call(tmp_path: Path) -> None:
    results(tmp_path, cold_result("prod/large", 24_100.0, 25_100.0), cold_result("other", 9000.0), name="a.json")
    results(tmp_path, cold_result("large", 30_100.0), name="b.json")
    text = GOOD.replace(LARGE, f"{LARGE}, cold_results: [a.json, b.json]")
    kind = read(tmp_path, text).models.kind(3)
    assert kind.download_seconds == 20.0
    assert kind.load_seconds == pytest.approx(5.0)


def test_a_measured_whole_that_is_shorter_than_the_assumed_download_is_all_download(tmp_path: Path) -> None:
    results(tmp_path, cold_result("bert", 4100.0))
    text = GOOD.replace(LARGE, f"{LARGE}, cold_results: [results.json], measured_as: bert")
    kind = read(tmp_path, text).models.kind(3)
    assert kind.download_seconds == pytest.approx(4.0)
    assert kind.load_seconds == 0.0


@pytest.mark.parametrize(
    ("edit", "field", "words"),
    [
        ("cold_results: [none.json]", "", "No such file"),
        ("cold_results: [t.csv]", "", "results of tritonstack capacity bench"),
        ("cold_results: [results.json]", "models[1].cold_results[0]", "those of bert: measured_as names one"),
        ("cold_results: [results.json], measured_as: roberta", "models[1].cold_results[0]", "cold start of roberta"),
        ("cold_results: [results.json], measured_as: bert, load_seconds: 3", "models[1].load_seconds", "cold_results"),
        ("cold_seconds: 3, load_seconds: 3", "models[1].load_seconds", "beside cold_seconds"),
        ("cold_results: results.json", "models[1].cold_results", "a list"),
        ("cold_results: [7]", "models[1].cold_results[0]", "a text"),
    ],
)
def test_results_that_tell_nothing_of_the_model_are_refused(tmp_path: Path, edit: str, field: str, words: str) -> None:
    results(tmp_path, cold_result("bert", 4100.0), result("plain", name="roberta"))
    written(tmp_path, "a,b\n", name="t.csv")
    assert words in problems(tmp_path, GOOD.replace(LARGE, f"{LARGE}, {edit}"))[field]


def test_a_manifest_tells_how_triton_batches_unless_the_scenario_does(tmp_path: Path) -> None:
    batching = "dynamic_batching {max_queue_delay_microseconds: 250}"
    config = f"max_batch_size: 8\n{batching}\ninstance_group [{{count: 2}}, {{count: 1}}]"
    parts = {"archive": {"bytes": MIB, "tar_bytes": MIB}, "model": {"name": "m"}, "configs": {"m": config}}
    written(tmp_path, json.dumps(parts), name="m.json")
    kind = read(tmp_path, GOOD.replace(LARGE, "manifest: m.json")).models.kind(3)
    assert (kind.max_batch, kind.delay, kind.copies) == (8, 0.00025, 3)
    own = read(tmp_path, GOOD.replace(LARGE, "manifest: m.json, max_batch: 1, instances: 1")).models.kind(3)
    assert (own.max_batch, own.delay, own.copies) == (1, 0.0, 1)


@pytest.mark.parametrize("text", ["[]", "{}", '{"archive": {"bytes": 0, "tar_bytes": 1}}', "no json", '{"archive": 3}'])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    written(tmp_path, text, name="m.json")
    found = problems(tmp_path, GOOD.replace(LARGE, "manifest: m.json"))
    assert "m.json: no manifest of an archive" in found["models[1].manifest"]
