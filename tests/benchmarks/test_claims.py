"""Claims held against figures, and the table of scenarios that holds them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.scenarios.claims import Claim, Figure, Interval, Tried, Verdict, median_interval, tried
from benchmarks.scenarios.models import roberta_base_folder
from benchmarks.scenarios.table import SCENARIOS
from tests.benchmarks.measured import measured, way
from tritonstack.paths import REPOSITORY


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


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_claim_is_about_what_its_scenario_measures(name: str) -> None:
    scenario = SCENARIOS[name]
    assert len({way.name for way in scenario.ways}) == len(scenario.ways)
    found = {one.way: one for one in measured(scenario)}
    for one in scenario.claims:
        assert one.better != one.than
        assert tried(one, found).ratio.low is not None, "too few turns for an interval"


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


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15)],  # Conover, Practical Nonparametric Statistics, A3
)
def test_the_interval_lies_between_the_values_that_the_binomial_distribution_names(
    count: int, low: int, high: int
) -> None:
    found = median_interval([float(value) for value in range(count, 0, -1)])
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_five_values_are_too_few_to_say_how_sure_the_median_is(count: int) -> None:
    found = median_interval([3.0] * count)
    assert (found.median, found.low, found.high, found.share) == (3.0, None, None, None)
