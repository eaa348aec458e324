"""Claims held against figures, and the table of scenarios that holds them."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

from benchmarks.__main__ import LONG
from benchmarks.scenarios.claims import Claim, Figure, Tried, Verdict, tried
from benchmarks.scenarios.intervals import Interval
from benchmarks.scenarios.models import roberta_base_folder
from benchmarks.scenarios.picture import LABELS
from benchmarks.scenarios.table import SCENARIOS
from tests.benchmarks.measured import outcome_of, way
from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY

MOST_SECONDS = 20 * 60


def claim(*, by: Figure = Figure.RATE, times: float = 1.0) -> Claim:
    """That `new` is better than `old`."""
    return Claim(said="new is better", better="new", than="old", by=by, times=times)


@pytest.mark.parametrize(
    ("times", "low", "high", "verdict"),
    [
        (1, 1.01, 3, Verdict.HOLDS),
        (1, 1, 3, Verdict.NO_DIFFERENCE),
        (1, 0.99, 1.01, Verdict.NO_DIFFERENCE),
        (1, 0.9, 1, Verdict.NO_DIFFERENCE),
        (1, 0.9, 0.99, Verdict.FAILS),
        (2, 2, 2.5, Verdict.HOLDS),
        (2, 1.99, 2.5, Verdict.OPEN),
        (2, 1.5, 1.99, Verdict.FAILS),
        (0.9, 0.9, 0.99, Verdict.HOLDS),
        (0.9, 0.89, 1.2, Verdict.OPEN),
        (0.9, 0.7, 0.89, Verdict.FAILS),
        (2, None, None, Verdict.OPEN),
        (1, None, None, Verdict.OPEN),
    ],
)
def test_the_verdict_is_where_the_interval_lies(
    times: float, low: float | None, high: float | None, verdict: Verdict
) -> None:
    ratio = Interval(median=2.0, low=low, high=high)
    assert Tried(claim=claim(times=times), better=1.0, than=1.0, ratio=ratio).verdict is verdict


def test_turns_are_compared_with_the_turn_beside_them() -> None:
    """The machine slows to a tenth on the way; every pair says two times."""
    old = [100.0, 100.0, 50.0, 50.0, 10.0, 10.0]
    found = tried(claim(), {"old": way("old", rates=old), "new": way("new", rates=[2 * rate for rate in old])})
    assert (found.ratio.median, found.ratio.low, found.ratio.high) == (2.0, 2.0, 2.0)
    assert (found.better, found.than) == (100.0, 50.0)


def test_of_times_less_is_better() -> None:
    found = {"old": way("old", loads=[3.7] * 6), "new": way("new", loads=[1.7] * 6)}
    assert tried(claim(by=Figure.COLD_START), found).ratio.median == pytest.approx(4.0 / 2.0)
    assert tried(claim(by=Figure.UNPACK), found).verdict is Verdict.NO_DIFFERENCE
    assert tried(claim(by=Figure.FIRST_CALL), found).better == pytest.approx(50.0)


def test_a_way_that_was_not_measured_is_not_made_up() -> None:
    with pytest.raises(KeyError):
        tried(claim(), {"old": way("old", rates=[1.0] * 6), "new": way("new", loads=[1.0] * 6)})


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_claim_is_about_what_its_scenario_measures(name: str) -> None:
    scenario = SCENARIOS[name]
    assert len({way.name for way in scenario.ways}) == len(scenario.ways)
    found = {one.way: one for one in outcome_of(scenario).found}
    for one in scenario.claims:
        assert one.better != one.than
        assert tried(one, found).ratio.low is not None, "too few turns for an interval"
        assert len(one.said) * 6.4 < LABELS, "longer than its place in the picture"


def test_every_part_of_the_published_claims_is_tried() -> None:
    """Batching that doubles where memory traffic is the bound is claimed with that number."""
    [doubled] = [one for one in SCENARIOS["batching"].claims if one.better == "dynamic batching"]
    assert doubled.times == 2
    wanted = {"batching", "frameworks", "onnxruntime", "payload", "archives", "response-cache", "warm-up"}
    assert wanted <= SCENARIOS.keys()


def test_all_of_it_takes_less_than_twenty_minutes_and_the_docs_say_how_long() -> None:
    seconds = sum(scenario.seconds for scenario in SCENARIOS.values())
    assert seconds < MOST_SECONDS
    assert LONG["measurements"] == math.ceil(seconds / 60)
    assert f"in about {LONG['measurements']} minutes" in (REPOSITORY / "docs" / "measurements.md").read_text()


def test_options_that_cannot_be_tried_are_those_that_the_cpu_ignores() -> None:
    """The post's options are each a way here, or among what the stand-in for ONNX Runtime says it ignores."""
    file = REPOSITORY / "tritonstack_local" / "backends" / "common" / "tritonstack_onnx.py"
    [ignored] = [
        ast.literal_eval(node.value)
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GPU_PARAMETERS"
    ]
    options = [SCENARIOS["onnxruntime"], SCENARIOS["memory"]]
    told = " ".join(each for scenario in options for each in scenario.not_here)
    tried_here = " ".join(fragment for scenario in options for way in scenario.ways for fragment in way.fragments)
    gpu = {"cudnn_conv_algo_search", "arena_extend_strategy", "gpu_mem_limit", "do_copy_in_default_stream"}
    assert gpu <= set(ignored)
    assert all(name in told and name not in tried_here for name in gpu)
    cpu = ("graph { level: 1 }", "execution_mode", "enable_mem_pattern", "enable_mem_arena")
    assert all(name in tried_here for name in cpu)
    assert "default-max-batch-size" in told


def test_roberta_base_is_the_large_one_s_folder_with_the_base_model_s_numbers(tmp_path: Path) -> None:
    folder = roberta_base_folder(tmp_path)
    recipe = (folder / "recipe.yaml").read_text()
    assert all(number in recipe for number in ("hidden_size: 768", "num_hidden_layers: 12", "intermediate_size: 3072"))
    config = (folder / "roberta-base-onnx" / "config.pbtxt").read_text()
    assert "1024" not in config
    assert 'name: "roberta-base-onnx"' in config
    assert (tmp_path / "requirements" / "torch.txt").is_file()


def test_a_change_of_the_large_model_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.scenarios.models.TO_BASE", {"recipe.yaml": (("hidden_size: 999", "x"),)})
    with pytest.raises(WorkFailedError, match=r"recipe\.yaml has no 'hidden_size: 999'"):
        roberta_base_folder(tmp_path)
