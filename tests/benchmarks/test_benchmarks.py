"""What each benchmark makes of its measurements, without the hours of measuring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import proxy_overhead
from benchmarks.invoke_overhead import ADDED_MS, KEPT, Round, figures, has_label
from benchmarks.synthesis import context_of, synthesise
from tritonstack.errors import WorkFailedError


def test_the_overhead_is_the_median_of_each_round_s_difference_and_ratio() -> None:
    rounds = [
        Round(direct_ms=1.0, runtime_ms=1.2, direct_rate=1000, runtime_rate=800),
        Round(direct_ms=5.0, runtime_ms=5.4, direct_rate=100, runtime_rate=90),
        Round(direct_ms=1.0, runtime_ms=9.0, direct_rate=1000, runtime_rate=100),
    ]
    bounded = {figure.bound: figure.value for figure in figures(rounds) if figure.bound is not None}
    assert bounded == {ADDED_MS: pytest.approx(0.4), KEPT: pytest.approx(0.8)}


def test_the_proxy_s_overhead_is_the_median_of_each_round_s_ratios() -> None:
    rounds = [
        proxy_overhead.Round(boto3_ms=1.0, proxy_ms=1.5, boto3_rate=1000, proxy_rate=800),
        proxy_overhead.Round(boto3_ms=4.0, proxy_ms=5.0, boto3_rate=100, proxy_rate=90),
        proxy_overhead.Round(boto3_ms=1.0, proxy_ms=9.0, boto3_rate=1000, proxy_rate=100),
    ]
    bounded = {one.bound: one.value for one in proxy_overhead.figures(rounds) if one.bound is not None}
    assert bounded == {proxy_overhead.LATENCY_RATIO: pytest.approx(1.5), proxy_overhead.KEPT: pytest.approx(0.8)}


def test_an_answer_counts_only_with_the_right_digit() -> None:
    body = json.dumps({"outputs": [{"name": "label", "data": [3]}, {"name": "probabilities", "data": [0.5]}]}).encode()
    assert has_label(body, label=3)
    assert not has_label(body, label=4)


def test_an_app_that_fails_is_no_measurement(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("raise SystemExit('no stack today')")
    with pytest.raises(WorkFailedError, match="no stack today"):
        synthesise(script, tmp_path / "out", context={}, cli=False)


def test_an_app_that_synthesises_nothing_is_no_measurement(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("")
    with pytest.raises(WorkFailedError, match="synthesised nothing"):
        synthesise(script, tmp_path / "out", context={}, cli=False)


def test_the_context_is_that_of_cdk_json(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text('{"app": "x", "context": {"flag": true}}')
    assert context_of(file) == {"flag": True}
