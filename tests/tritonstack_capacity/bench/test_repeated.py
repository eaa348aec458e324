"""Results that say how to have them again: settings read back, and what is another now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tritonstack_capacity.bench.documents import document, point, result
from tests.tritonstack_capacity.bench.test_settings import PHASE, SETTINGS
from tritonstack.errors import InputError
from tritonstack_capacity.bench.document import (
    BenchDocument,
    comparisons,
    differences,
    recorded_settings,
    settings_part,
)
from tritonstack_capacity.bench.load import Rate, Users
from tritonstack_capacity.bench.measuring import StopConditions
from tritonstack_capacity.bench.settings import BenchSettings

FILE = Path("results.json")


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, loads=(Users(count=3), Users(count=5)), configurations=("plain", "both")),
        replace(SETTINGS, loads=(Rate(per_second=1234.5678901, arrivals="even"),), formats=("binary", "json")),
        replace(SETTINGS, loads=(), phases=(PHASE, PHASE), stop=StopConditions(latency_ms=99.9)),
        replace(SETTINGS, files=("x=/a/b.npy",), outputs=("y",), generator="perf-analyzer", seed=7),
    ],
    ids=["users", "overlays", "a rate", "a ramp", "files"],
)
def test_settings_come_back_from_json_as_they_were(settings: BenchSettings) -> None:
    found = document().model_copy(update={"settings": json.loads(json.dumps(settings_part(settings)))})

    assert recorded_settings(found, FILE) == settings


def test_settings_of_another_program_are_refused_with_the_file_and_the_field() -> None:
    found = document().model_copy(update={"settings": {"recommender": {}}})

    with pytest.raises(InputError) as error:
        recorded_settings(found, FILE)

    [problem] = error.value.problems
    assert problem.file == "results.json"
    assert problem.field.startswith("settings.")


def changed(found: BenchDocument, **changes: str) -> BenchDocument:
    return found.model_copy(update={"results": [each.model_copy(update=changes) for each in found.results]})


THEN = document(result("plain", point(users=1, per_minute=1000, p95=60), request_sha256="1" * 64))


def test_the_same_test_on_the_same_machine_has_no_difference() -> None:
    assert list(differences(THEN, THEN)) == []


def test_whatever_is_another_is_told() -> None:
    machine = {**THEN.machine, "cores": "4", "load_before": "9.9"}
    now = changed(
        THEN.model_copy(update={"machine": machine, "versions": {"commit": "def"}}),
        archive="bert-plain.ffffffffffffffff.tar.gz",
        request_sha256="2" * 64,
        server_version="2.51.0",
    )

    assert list(differences(THEN, now)) == [
        "machine: cores was 2, is 4",
        "versions: commit was abc, is def",
        "plain (binary): archive was bert-plain.0123456789abcdef.tar.gz, is bert-plain.ffffffffffffffff.tar.gz",
        "plain (binary): request was 1111111111111111, is 2222222222222222",
        "plain (binary): Triton was None, is 2.51.0",
    ]


def test_each_load_is_compared_with_its_own() -> None:
    now = document(
        result("plain", point(users=1, per_minute=1500, p95=30), point(users=2, per_minute=1, p95=1)),
        result("both", point(users=1, per_minute=1, p95=1)),
    )

    assert list(comparisons(THEN, now)) == [
        "plain (binary): 1 user: 1.50 times the answers a minute of then, p95 30 ms after 60"
    ]
