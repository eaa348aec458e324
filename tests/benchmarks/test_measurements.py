"""The run of the scenarios: what is measured, what is written, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks import measurements
from benchmarks.scenarios.measuring import Measured, Repeats, measure
from benchmarks.scenarios.report import Section, page
from benchmarks.scenarios.served import Way
from benchmarks.scenarios.table import DYNAMIC, PLAIN, SCENARIOS
from tests.benchmarks.measured import measured
from tritonstack.errors import WorkFailedError
from tritonstack_local.container.repository import TritonFiles

PAGE = "# Measurements\n\nBefore.\n\n<!-- measured -->\nstale\n<!-- /measured -->\n\nAfter.\n"


@dataclass
class Fake:
    """In place of the measuring itself: returns figures at once, and may end the run at some scenario."""

    page: Path
    measured: list[str] = field(default_factory=list)
    ends_at: str = ""
    by: BaseException = field(default_factory=KeyboardInterrupt)

    def __call__(self, ways: Sequence[Way], *, repeats: Repeats, folder: Path) -> list[Measured]:
        """As ``measure``."""
        [name] = [name for name, one in SCENARIOS.items() if one.ways == ways]
        if name == self.ends_at:
            raise self.by
        self.measured.append(name)
        return measured(SCENARIOS[name])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fake:
    """Measuring that takes no time, with a page of its own."""
    made = Fake(tmp_path / "measurements.md")
    made.page.write_text(PAGE)
    monkeypatch.setattr(measurements, "measure", made)
    monkeypatch.setattr(measurements, "PAGE", made.page)
    monkeypatch.setattr(measurements, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(TritonFiles, "check", lambda _self: None)
    return made


def test_all_scenarios_are_measured_and_written_between_the_marks(fake: Fake) -> None:
    assert measurements.command(["--write"]) == 0
    assert fake.measured == list(SCENARIOS)
    text = fake.page.read_text()
    assert text.startswith("# Measurements\n\nBefore.\n\n<!-- measured -->\n")
    assert text.endswith("\n<!-- /measured -->\n\nAfter.\n")
    assert "stale" not in text
    assert all(scenario.title in text for scenario in SCENARIOS.values())
    assert "no GPU; 20" in text


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (WorkFailedError("JSON was not loaded: 507"), 1, "payload: JSON was not loaded: 507\n"),
        (ConnectionResetError("it ended"), 1, "payload: it ended\n"),
        (KeyboardInterrupt(), 130, "\ninterrupted; docs/ is as it was\n"),
    ],
    ids=["failed", "connection", "Ctrl-C"],
)
def test_a_scenario_that_fails_is_reported_and_nothing_is_written(
    error: BaseException, code: int, expected: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.ends_at, fake.by = "payload", error
    assert measurements.command(["--write"]) == code
    assert capsys.readouterr().err == expected
    if code == 1:
        assert fake.measured == [name for name in SCENARIOS if name != "payload"]
    assert fake.page.read_text() == PAGE


def test_the_table_of_claims_has_what_is_claimed_what_is_here_and_the_verdict() -> None:
    sections = [Section(scenario=scenario, found=measured(scenario)) for scenario in SCENARIOS.values()]
    text = page(sections, where="a machine.", others=0.0)
    expected = "dynamic batching at least doubles throughput (bound by memory traffic)"
    assert f"| {expected} | ≥ 2 | 1.95 (1.92 to 1.98) | 206 against 106 responses/s | **does not hold here** |" in text
    assert (
        "| two instances add throughput | better | 3.84 (3.75 to 3.94) | 406 against 106 responses/s | **holds** |"
        in text
    )
    assert text.count("| cannot be tried here |") == sum(len(one.not_here) for one in SCENARIOS.values())
    assert "Taken beside other load" not in text
    assert "Taken beside other load** (1.2 cores" in page(sections, where="a machine.", others=1.2)


@pytest.mark.long
def test_a_scenario_is_measured_on_the_real_triton(tmp_path: Path) -> None:
    found = measure([PLAIN, DYNAMIC], repeats=Repeats(cold_starts=1, turns=1, users=8), folder=tmp_path)
    assert [one.way for one in found] == ["plain", "dynamic batching"]
    assert [len(one.cold) for one in found] == [1, 1]
    plain, batched = found
    assert all(one.cold[0].unpack > 0 and one.cold[0].load > 0 and one.cold[0].first_call > 0 for one in found)
    assert plain.load is not None
    assert batched.load is not None
    assert plain.load.mean_batch == pytest.approx(1.0)
    assert batched.load.mean_batch is not None
    assert batched.load.mean_batch > 1.5
    assert plain.archive_bytes > 130e6
