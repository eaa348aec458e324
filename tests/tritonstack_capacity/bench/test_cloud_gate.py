"""The gate: what passes, what fails, and what is only reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.config.environment_file import write_environment
from tests.tritonstack_capacity.bench.documents import document, point, result
from tritonstack.config import GateSettings
from tritonstack.errors import InputError
from tritonstack_capacity.bench.cloud_gate import GateLine, Verdict, hold, passes
from tritonstack_capacity.bench.document import BenchDocument, ResultPart
from tritonstack_capacity.commands.bench import command

PRICE = 0.736
G4DN, G4DN_2X, G5 = "ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g5.xlarge"


def fast(*points: dict[str, Any], figures: float | None = None, **changes: Any) -> ResultPart:
    """A result of one instance; ``figures``: CloudWatch's 95th percentile."""
    of_endpoint = {"metric": "ModelLatency", "invocations": 9, "mean_ms": 1.0, "p50_ms": 1.0, "p99_ms": 9.0}
    given = {
        "name": "one/fast",
        "instance_count": 1,
        "endpoint_figures": [] if figures is None else [{**of_endpoint, "p95_ms": figures}],
        "ended_by": "FAILED: no capacity",
    }
    return result("fast", *points, **{**given, **changes})


def measured(*results: ResultPart, **changes: Any) -> BenchDocument:
    return document(*results).model_copy(update={"environment": "local", **changes})


def lines(
    found: BenchDocument, *, price: float | None = PRICE, deployed: str | None = None, **gate: Any
) -> list[GateLine]:
    """Also held: what passes is what has no failed line."""
    settings = GateSettings(**gate)
    held = hold(found, settings, usd_per_hour=lambda _: price, deployed_on=lambda _: deployed)
    assert passes(held, settings) is ("failed" not in [line.verdict for line in held])
    return held


def verdicts(found: BenchDocument, **how: Any) -> list[Verdict]:
    return [line.verdict for line in lines(found, **how)]


LADDER = (
    point(per_minute=600, p95=40),
    point(per_minute=1000, p95=90, users=2),
    point(per_minute=1100, p95=200, users=4),
)
SATURATED = point(per_minute=500, p95=900, users=8)
RATES = (point(per_minute=500, p95=900, users=None, rate=8), point(per_minute=600, p95=40, users=None, rate=4))
STEPS = (point(per_minute=600, p95=40, users=None), point(per_minute=500, p95=900, users=None))
FAILING, BEARABLE = (point(per_minute=1200, p95=50, users=8, failed=failed) for failed in (11, 10))
FIRST_FAILS = (point(per_minute=600, p95=40, failed=11), *LADDER[1:])
NOTHING = point(per_minute=0, p95=None, failed=100)
UNKNOWN = point(per_minute=600, p95=None)
# 0.736 USD an hour at 1,000 a minute are 12.2667 USD a million; at 1,100, past the latency, it would be 11.15.
HELD: dict[str, tuple[ResultPart, dict[str, float], list[Verdict]]] = {
    "the least load's percentile is at the limit": (fast(*LADDER), {"p95_ms": 40}, ["passed"]),
    "the least load's percentile is above it": (fast(*LADDER), {"p95_ms": 39.9}, ["failed"]),
    "the least load has the fewest users, not the least rate": (fast(SATURATED, *LADDER), {"p95_ms": 40}, ["passed"]),
    "the least load has the least rate that was asked for": (fast(*RATES), {"p95_ms": 40}, ["passed"]),
    "without users and rate the first load is the least": (fast(*STEPS), {"p95_ms": 40}, ["passed"]),
    "a load whose calls fail is not within": (fast(*LADDER, FAILING), {"p95_ms": 100, "per_minute": 1001}, ["failed"]),
    "nor is its cost": (fast(*LADDER, FAILING), {"p95_ms": 100, "usd_per_million": 12.26}, ["passed", "failed"]),
    "some calls may fail": (fast(*LADDER, BEARABLE), {"p95_ms": 100, "per_minute": 1001}, ["passed"]),
    "the least load's calls fail": (fast(*FIRST_FAILS), {"p95_ms": 100}, ["failed"]),
    "the only load's calls fail": (fast(FIRST_FAILS[0]), {"usd_per_million": 1000}, ["failed"]),
    "the next load is not the least one": (fast(NOTHING, *LADDER[1:]), {"p95_ms": 100}, ["failed"]),
    "a wanted load is answered within": (fast(*LADDER), {"p95_ms": 100, "per_minute": 1000}, ["passed"]),
    "a wanted load is not": (fast(*LADDER), {"p95_ms": 100, "per_minute": 1001}, ["failed"]),
    "a wanted load is of each instance": (
        fast(*LADDER, instance_count=2),
        {"p95_ms": 100, "per_minute": 501},
        ["failed"],
    ),
    "the best rate within the latency costs less": (
        fast(*LADDER),
        {"p95_ms": 100, "usd_per_million": 12.27},
        ["passed", "passed"],
    ),
    "it costs more": (fast(*LADDER), {"p95_ms": 100, "usd_per_million": 12.26}, ["passed", "failed"]),
    "this machine has no price": (fast(*LADDER, instance_type="this-machine"), {"usd_per_million": 1}, ["unknown"]),
    "CloudWatch's percentile counts where there is no other": (fast(UNKNOWN, figures=50.0), {"p95_ms": 50}, ["passed"]),
    "CloudWatch's percentile is above": (fast(UNKNOWN, figures=50.0), {"p95_ms": 49}, ["failed"]),
    "no percentile at all": (fast(UNKNOWN), {"p95_ms": 49}, ["failed"]),
}


@pytest.mark.parametrize(("found", "gate", "expected"), HELD.values(), ids=HELD)
def test_a_result_is_held_against_each_limit(
    found: ResultPart, gate: dict[str, float], expected: list[Verdict]
) -> None:
    assert verdicts(measured(found), **gate) == expected


def test_failures_are_counted_in_words_and_what_did_not_end_or_is_marked_as_failed_fails() -> None:
    [line] = lines(measured(fast(*FIRST_FAILS)), p95_ms=100)
    assert "11 of 100 requests failed at 1 user; 10% may" in line.sentence
    interrupted = lines(measured(fast(*LADDER), complete=False), p95_ms=100)
    assert [line.verdict for line in interrupted] == ["failed", "passed"]
    assert "did not come to its end" in interrupted[0].sentence
    [nothing] = lines(measured(fast()), p95_ms=1)
    assert (nothing.verdict, "FAILED: no capacity" in nothing.sentence) == ("failed", True)
    assert verdicts(measured(), p95_ms=1) == ["failed"]


def test_an_unknown_price_is_reported_and_fails_only_where_the_gate_asks_for_it() -> None:
    for fails in (False, True):
        gate = GateSettings(usd_per_million=1, unknown_price_fails=fails)
        held = hold(measured(fast(*LADDER)), gate, usd_per_hour=lambda _: None)
        assert [line.verdict for line in held] == ["unknown"]
        assert "no source gives a price of ml.g4dn.xlarge" in held[0].sentence
        assert passes(held, gate) is not fails


def on(*types: str) -> list[ResultPart]:
    return [fast(LADDER[0], instance_type=name) for name in types]


@pytest.mark.parametrize(
    ("results", "deployed", "limit", "expected"),
    [
        (on(G4DN, G4DN_2X), G4DN, 10, ["failed", "beside"]),
        (on(G4DN, G4DN_2X), G5, 10, ["failed", "failed"]),
        (on(G4DN, G4DN_2X), None, 10, ["failed", "failed"]),
        ([*on(G4DN), fast(instance_type=G5)], G5, 10, ["failed", "failed"]),
        ([*on(G4DN), fast(instance_type=G5)], G4DN, 50, ["passed", "failed"]),
        ([*on(G4DN), fast(*LADDER, failed=True, instance_type=G5)], G4DN, 50, ["passed", "failed", "passed"]),
    ],
    ids=[
        "another type is told and not held",
        "the deployed type was not measured",
        "the deployed type is not known",
        "nothing takes the place of a job that failed",
        "a job that found nothing fails whatever it was of",
        "a result that is marked as failed fails on whatever type",
    ],
)
def test_what_is_deployed_is_held(
    results: list[ResultPart], deployed: str | None, limit: float, expected: list[Verdict]
) -> None:
    held = lines(measured(*results), deployed=deployed, p95_ms=limit)
    assert [line.verdict for line in held] == expected
    assert all(line.sentence.endswith(f"it is deployed on {deployed}") for line in held if line.verdict == "beside")


def gate_command(folder: Path, monkeypatch: pytest.MonkeyPatch, header: str, *arguments: str) -> Any:
    (folder / "environments").mkdir(exist_ok=True)
    write_environment(folder / "environments", header=header)
    (folder / "results.json").write_text(measured(fast(*LADDER)).model_dump_json())
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(folder))
    return CliRunner().invoke(command, ["--gate", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("load_test: {gate: {p95_ms: 40}}", 0),
        ("load_test: {gate: {p95_ms: 10}}", 1),
        ("load_test: {gate: {usd_per_million: 1}}\nprices: {ml.g4dn.xlarge: 0.066}", 0),
    ],
    ids=["within", "above", "an environment's own price counts"],
)
def test_the_command_exits_by_the_gate_of_the_results_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, code: int
) -> None:
    ran = gate_command(tmp_path, monkeypatch, header, str(tmp_path))
    assert ran.return_value == code, ran.output
    assert ("FAILED" in ran.stderr) is bool(code)


def test_every_file_that_cannot_be_judged_is_reported_before_any_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, gone, ungated = tmp_path / "bad.json", tmp_path / "gone.json", tmp_path / "ungated.json"
    bad.write_bytes(b'{"complete": "\xff"}')
    ungated.write_text(measured(fast(*LADDER), environment="other").model_dump_json())
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", header="environment: other", name="other")
    files = [tmp_path, bad, gone, ungated, ungated]

    ran = gate_command(tmp_path, monkeypatch, "load_test: {gate: {p95_ms: 40}}", *map(str, files))

    assert isinstance(ran.exception, InputError), repr(ran.exception)
    assert ran.exception.exit_code == 2
    reported = [f"{one.file} {one.field}".strip() for one in ran.exception.problems]
    assert reported == [str(bad), str(gone), "environments/other.yaml load_test.gate"]
    assert "passed" not in ran.stderr
