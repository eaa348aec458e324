"""Scenarios and traces as files: what is read, and every problem at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cases import cases
from tritonstack.errors import InputError
from tritonstack_capacity.simulation.scenario import (
    MIB,
)
from tritonstack_capacity.simulation.scenario_file import PreparedScenario, prepare

GOOD = """\
instance: {type: ml.g4dn.xlarge}
models:
  - {name: small, count: 3, gpu_memory_mib: 100, disk_mib: 50, service: {fixed_ms: 5}, zipf: 1}
  - {name: large, gpu_memory_mib: 4000, disk_mib: 2000, service: {fixed_ms: 20}, share: 1}
arrivals: {duration_minutes: 10, curve: [{minute: 0, per_minute: 600}]}
"""


def written(folder: Path, text: str = GOOD, *, name: str = "scenario.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def problems(folder: Path, text: str, *, trace: str | None = None) -> dict[str, str]:
    """Field → its message."""
    file = None if trace is None else written(folder, trace, name="calls.csv")
    with pytest.raises(InputError) as caught:
        prepare(written(folder, text), seed=0, trace=file)
    assert caught.value.exit_code == 2
    return {each.field: str(each) for each in caught.value.problems}


def read(folder: Path, text: str = GOOD, *, seed: int = 0) -> PreparedScenario:
    return prepare(written(folder, text), seed=seed)


def test_groups_become_models_with_names_sizes_and_shares(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.models.names == ("small-0", "small-1", "small-2", "large")
    assert list(found.models.of_each("memory") / MIB) == [100, 100, 100, 4000]
    weights = np.array([1, 1 / 2, 1 / 3]) / (1 + 1 / 2 + 1 / 3) * 3
    assert list(found.models.popularity) == pytest.approx([*(weights / 4), 1 / 4])
    assert found.fleet.machine.memory == 16_384 * MIB
    assert found.models.kinds[1].download_seconds == 20.0


def test_a_poisson_curve_has_its_rates_and_another_seed_other_calls(tmp_path: Path) -> None:
    curve = "[{minute: 0, per_minute: 3000}, {minute: 2, per_minute: 0}, {minute: 5, per_minute: 6000}]"
    text = GOOD.replace("[{minute: 0, per_minute: 600}]", curve)
    found = read(tmp_path, text)
    minutes = np.bincount((found.trace.times // 60).astype(int), minlength=10)
    assert (minutes[2:5] == 0).all()
    assert minutes[:2].mean() == pytest.approx(3000, rel=0.05)
    assert minutes[5:].mean() == pytest.approx(6000, rel=0.05)
    assert (np.diff(found.trace.times) >= 0).all()
    assert len(set(minutes[5:].tolist())) > 1
    shares = np.bincount(found.trace.models) / len(found.trace)
    assert list(shares) == pytest.approx(list(found.models.popularity), abs=0.01)
    assert (found.trace.times[:100] != read(tmp_path, text, seed=1).trace.times[:100]).all()


@cases("text, expected")
def test_wrong_fields_and_contradictions_are_reported_at_once_with_their_lines(
    tmp_path: Path, text: str, expected: dict[str, str]
) -> None:
    found = problems(tmp_path, text)
    assert expected.keys() == found.keys()
    for field, words in expected.items():
        assert words in found[field]
        assert "scenario.yaml:" in found[field]


@cases("before, after, field, words")
def test_what_cannot_be_simulated_is_refused(tmp_path: Path, before: str, after: str, field: str, words: str) -> None:
    assert before in GOOD
    assert words in problems(tmp_path, GOOD.replace(before, after, 1))[field]


def test_a_warm_up_is_shorter_than_the_trace(tmp_path: Path) -> None:
    text = GOOD + "warm_up_minutes: 2\n"
    found = problems(tmp_path, text, trace="time_seconds,model\n1,large\n60,large\n")
    assert "less than 1 minutes" in found["warm_up_minutes"]
    assert problems(tmp_path, text, trace="time_seconds,model\n").keys() == {""}


def test_a_trace_is_read_and_gives_the_popularity(tmp_path: Path) -> None:
    trace = written(tmp_path, "time_seconds,model\n0.5,small-1\n0.5,large\n7,small-1\n7.25,small-1\n", name="t.csv")
    found = prepare(written(tmp_path), seed=0, trace=trace)
    assert list(found.trace.times) == [0.5, 0.5, 7.0, 7.25]
    assert list(found.trace.models) == [1, 3, 1, 1]
    assert list(found.models.popularity) == [0, 0.75, 0, 0.25]
    arrivals = "arrivals: {trace: t.csv}\n"
    named = read(tmp_path, GOOD[: GOOD.index("arrivals:")] + arrivals)
    assert (named.trace.times == found.trace.times).all()
