"""perf_analyzer: what it is told, what its export says, and what is said where it is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.test_settings import SETTINGS
from tritonstack.bench.analyser import Analyser
from tritonstack.bench.load import Load, Rate, Users
from tritonstack.bench.payload import Payload
from tritonstack.bench.perf_analyzer import VARIABLE, arguments, find_program, input_data, read_export
from tritonstack.errors import InputError, WorkFailedError

SECOND = 1_000_000_000


def export(*, requests: int = 300, windows: int = 3) -> str:
    """As version 2.51.0 writes it: calls of 5 ms, 100 a second, one of which failed."""
    calls: list[dict[str, Any]] = [
        {
            "timestamp": number * SECOND // 100,
            "request_inputs": {"x": [1.0]},
            "response_timestamps": [number * SECOND // 100 + 5_000_000],
            "response_outputs": [{}],
            **({"success": False} if number == 7 else {}),
        }
        for number in range(requests)
    ]
    boundaries = [number * SECOND for number in range(windows + 1)] if windows else []
    experiment = {"experiment": {"mode": "concurrency", "value": 2}, "requests": calls, "window_boundaries": boundaries}
    return json.dumps({"experiments": [experiment], "version": "2.51.0", "service_kind": "triton", "endpoint": ""})


def payload(**arrays: Any) -> Payload:
    return Payload(inputs=arrays, outputs=None, source="the test")


def analyser() -> Analyser:
    return Analyser(
        SETTINGS, payload=payload(x=np.ones((1, 1))), endpoint="digits", model="digits-onnx", manifest=None, local=True
    )


def test_its_export_becomes_rounds_and_figures() -> None:
    point = analyser()._point(Users(count=2), read_export(export()))

    assert [round(one.per_minute) for one in point.rounds] == [5940, 6000, 6000]
    assert point.all.percentiles_ms[95.0] == pytest.approx(5.0)
    assert (point.all.answered, point.all.failed) == (299, 1)
    assert point.agreement.stable


@pytest.mark.parametrize("text", ["", "{}", '{"version": "1", "experiments": []}', export(windows=0)])
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(WorkFailedError, match="export"):
        read_export(text)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Users(count=4), ["--concurrency-range", "4:4"]),
        (Rate(per_second=2.5), ["--request-rate-range", "2.5:2.5", "--request-distribution", "poisson"]),
        (Rate(per_second=50, arrivals="even"), ["--request-rate-range", "50:50", "--request-distribution", "constant"]),
    ],
)
def test_it_is_told_the_load_in_its_own_words(load: Load, expected: list[str]) -> None:
    told = arguments(load, SETTINGS, model="m", address="127.0.0.1:1", data=Path("in"), export=Path("out"))

    place = told.index(expected[0])
    assert told[place : place + len(expected)] == expected
    assert told[told.index("--measurement-interval") + 1] == "5000"


def test_shapes_are_without_the_batch_dimension_where_the_model_batches() -> None:
    given = payload(x=np.zeros((1, 2, 3), dtype=np.float32))

    assert input_data(given, batched=True)["data"][0]["x"]["shape"] == [2, 3]
    assert input_data(given, batched=False)["data"][0]["x"]["shape"] == [1, 2, 3]


def test_values_keep_being_numbers_of_their_kind() -> None:
    """It finds no float data in a list of whole numbers."""
    text = json.dumps(input_data(payload(x=np.zeros((1, 2), dtype=np.float32)), batched=True))

    assert "[0.0, 0.0]" in text


@pytest.mark.parametrize("array", [np.zeros((2, 3)), np.array([[b"text"]], dtype=object)], ids=["a batch", "bytes"])
def test_what_it_cannot_send_is_refused(array: Any) -> None:
    with pytest.raises(InputError):
        input_data(payload(x=array), batched=True)


def test_where_it_is_not_installed_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tritonstack.bench.perf_analyzer.machine_folder", lambda: tmp_path)

    with pytest.raises(WorkFailedError, match="pip install --no-deps --target"):
        find_program()

    program = tmp_path / "perf"
    program.touch()
    monkeypatch.setenv(VARIABLE, str(program))
    assert find_program() == program


def test_it_is_refused_straight_at_a_container() -> None:
    from tests.bench.test_settings import refused

    assert refused(replace(SETTINGS, generator="perf-analyzer", container=True)) == ["--generator"]
