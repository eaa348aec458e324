"""What each benchmark makes of its measurements, without the hours of measuring."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import proxy_overhead
from benchmarks.bodies import FASTER, SLOWER, Times, check, measure
from benchmarks.bodies import figures as body_figures
from benchmarks.demo import clone_environment
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


def test_bodies_are_held_against_json_and_tritonclient_s_own() -> None:
    bounded = {
        figure.bound: (figure.value, figure.kept)
        for figure in body_figures(Times(json=2.0, binary=0.5, tritonclient=0.25))
        if figure.bound is not None
    }
    assert bounded == {FASTER: (4.0, False), SLOWER: (2.0, False)}


def test_only_bodies_that_hold_the_tensor_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.ones((1, 3, 32, 32), np.float32)
    check(image)
    times = measure(image, rounds=1, calls=1)
    assert min(times.json, times.binary, times.tritonclient) > 0
    monkeypatch.setattr("benchmarks.bodies.tritonclients", lambda image: image.tobytes()[:-1])
    with pytest.raises(RuntimeError, match="do not end with the tensor"):
        check(image)


def test_the_clone_finds_nothing_of_this_repository_and_two_ports_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSTACK_HOME", "/somewhere")
    monkeypatch.setenv("PYTHONPATH", "/here")
    monkeypatch.setenv("JSII_RUNTIME_PACKAGE_CACHE_ROOT", "/here/jsii")
    environment = clone_environment(caches=tmp_path)
    assert {"TRITONSTACK_HOME", "PYTHONPATH", "JSII_RUNTIME_PACKAGE_CACHE_ROOT"}.isdisjoint(environment)
    ports = {environment["TRITONSTACK_PORT"], environment["TRITONSTACK_RUNTIME_PORT"]}
    assert len(ports) == 2
    assert ports.isdisjoint({"4566", "4567"})
    caches = ("PIP_CACHE_DIR", "UV_CACHE_DIR", "npm_config_cache")
    assert len({environment[name] for name in caches}) == 3
    assert all(environment[name].startswith(str(tmp_path)) for name in caches)


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
