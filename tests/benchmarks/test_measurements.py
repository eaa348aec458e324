"""The run of the scenarios: what is kept, what is written, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from benchmarks import measurements
from benchmarks.scenarios.measuring import Measured, Repeats, Step, measure
from benchmarks.scenarios.outcome import keep, kept
from benchmarks.scenarios.picture import MARKS, picture
from benchmarks.scenarios.report import Section, page
from benchmarks.scenarios.served import Way
from benchmarks.scenarios.table import DYNAMIC, PLAIN, SCENARIOS
from tests.benchmarks.measured import outcome_of
from tritonstack.errors import WorkFailedError
from tritonstack_local.container.repository import TritonFiles

OUTCOMES = {name: outcome_of(scenario) for name, scenario in SCENARIOS.items()}
SECTIONS = [Section(scenario=scenario, outcome=OUTCOMES[name]) for name, scenario in SCENARIOS.items()]
PAGE = "# Measurements\n\nBefore.\n\n<!-- measured -->\nstale\n<!-- /measured -->\n\nAfter.\n"


@dataclass
class Fake:
    """Stands in for the measuring itself: gives figures at once, and may end the run at some scenario."""

    measured: list[str] = field(default_factory=list)
    ends_at: str = ""
    by: BaseException = field(default_factory=KeyboardInterrupt)

    def __call__(self, ways: Sequence[Way], *, repeats: Repeats, folder: Path, step: Step) -> list[Measured]:
        """As ``measure``."""
        [name] = [name for name, one in SCENARIOS.items() if one.ways == ways]
        if name == self.ends_at:
            raise self.by
        step()
        self.measured.append(name)
        return list(OUTCOMES[name].found)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fake:
    """Measuring that takes no time, with a folder for what is kept and for docs."""
    made = Fake()
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    (tmp_path / "docs" / "measurements.md").write_text(PAGE)
    monkeypatch.setattr(measurements, "measure", made)
    monkeypatch.setattr(measurements, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(measurements, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(measurements, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(measurements, "code_now", lambda: "abc1234")
    monkeypatch.setattr(TritonFiles, "check", lambda _self: None)
    return made


def docs(folder: Path) -> dict[str, str]:
    """Every file below ``docs``."""
    return {path.name: path.read_text() for path in (folder / "docs").rglob("*") if path.is_file()}


def test_all_scenarios_are_measured_and_written_between_the_marks(fake: Fake, tmp_path: Path) -> None:
    assert measurements.command(["--write"]) == 0
    assert fake.measured == list(SCENARIOS)
    written = docs(tmp_path)
    assert written.keys() == {"measurements.md", "measurements.svg"}
    text = written["measurements.md"]
    assert text.startswith("# Measurements\n\nBefore.\n\n<!-- measured -->\n")
    assert text.endswith("\n<!-- /measured -->\n\nAfter.\n")
    assert "stale" not in text
    assert all(scenario.title in text for scenario in SCENARIOS.values())
    assert measurements.machine_here("no GPU") in text


def test_ctrl_c_keeps_what_is_measured_and_the_next_run_goes_on_there(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.ends_at = "onnxruntime"
    assert measurements.command(["--write"]) == 130
    assert "interrupted; docs/ is as it was" in capsys.readouterr().err
    assert docs(tmp_path) == {"measurements.md": PAGE}
    assert fake.measured == ["batching", "one-caller", "frameworks"]
    fake.ends_at = ""
    assert measurements.command(["--write"]) == 0
    assert fake.measured == list(SCENARIOS)
    assert "3 are kept in" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("error", [WorkFailedError("JSON was not loaded: 507"), ConnectionResetError("it ended")])
def test_a_scenario_that_fails_is_told_the_others_are_kept_and_nothing_is_written(
    error: Exception, fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.ends_at, fake.by = "payload", error
    assert measurements.command(["--write"]) == 1
    assert capsys.readouterr().err == f"payload: {error}\n"
    assert fake.measured == [name for name in SCENARIOS if name != "payload"]
    assert docs(tmp_path) == {"measurements.md": PAGE}


def test_a_page_is_not_written_from_some_scenarios(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measurements.command(["batching", "warm-up", "--write"]) == 1
    assert "nothing is kept of one-caller, frameworks, " in capsys.readouterr().err
    assert fake.measured == ["batching", "warm-up"]
    assert docs(tmp_path) == {"measurements.md": PAGE}


def test_a_name_that_is_no_scenario_is_refused_before_any_runs(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        measurements.command(["batching", "speed"])
    assert ended.value.code == 2
    assert "no scenario is called speed; there are batching, one-caller" in capsys.readouterr().err
    assert fake.measured == []


def test_what_is_kept_counts_for_the_same_code_machine_and_ways_alone(tmp_path: Path) -> None:
    outcome = OUTCOMES["payload"]
    keep(tmp_path, "payload", outcome)
    same = {"code": outcome.code, "machine": outcome.machine, "ways": ["JSON", "binary"]}
    assert [path.name for path in tmp_path.iterdir()] == ["payload.json"]
    assert kept(tmp_path, "payload", code="abc1234", machine="a machine", ways=["JSON", "binary"]) == outcome
    for change in ({"code": "0000000"}, {"machine": "another"}, {"ways": ["JSON"]}):
        assert kept(tmp_path, "payload", **{**same, **change}) is None  # type: ignore[arg-type]  # as keywords
    (tmp_path / "payload.json").write_text('{"code": "abc1234"')
    assert kept(tmp_path, "payload", code="abc1234", machine="a machine", ways=["JSON", "binary"]) is None


def test_the_table_of_claims_says_what_is_claimed_what_is_here_and_the_verdict() -> None:
    text = page(SECTIONS, picture="pictures/measurements.svg")
    said = "dynamic batching at least doubles throughput (bound by memory traffic)"
    assert f"| {said} | ≥ 2 | 1.95 (1.92 to 1.98) | 206 against 106 answers/s | **does not hold here** |" in text
    assert (
        "| two instances add throughput | better | 3.84 (3.75 to 3.94) | 406 against 106 answers/s | **holds** |"
        in text
    )
    assert text.count("| cannot be tried here |") == len(SCENARIOS["onnxruntime"].not_here)
    assert "](pictures/measurements.svg)" in text
    assert "Taken beside other load" not in text


def test_a_ratio_beyond_the_axis_is_an_arrow_at_its_end_and_presses_no_other_together() -> None:
    claims = [one for section in SECTIONS for one in section.tried]
    far = replace(claims[0], ratio=replace(claims[0].ratio, median=5500.0, low=5000.0, high=6000.0))
    near, with_far = picture(claims), picture([far, *claims[1:]])
    assert (with_far.count("<circle"), near.count("<circle")) == (len(claims) - 1, len(claims))
    assert f">{MARKS[-1]:g}</text>" in with_far
    assert ">10</text>" not in with_far


@pytest.mark.long
def test_a_scenario_is_measured_on_the_real_triton(tmp_path: Path) -> None:
    steps: list[None] = []
    repeats = Repeats(cold_starts=1, turns=1, users=8)
    found = measure([PLAIN, DYNAMIC], repeats=repeats, folder=tmp_path, step=lambda: steps.append(None))
    assert [one.way for one in found] == ["plain", "dynamic batching"]
    assert len(steps) == repeats.steps(2) == 6
    assert [len(one.cold) for one in found] == [1, 1]
    plain, batched = found
    assert all(one.cold[0].unpack > 0 and one.cold[0].load > 0 and one.cold[0].first_call > 0 for one in found)
    assert plain.load is not None
    assert batched.load is not None
    assert plain.load.mean_batch == pytest.approx(1.0)
    assert batched.load.mean_batch is not None
    assert batched.load.mean_batch > 1.5
    assert plain.archive_bytes > 130e6
