"""The gate: what passes, what fails, and what is only said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.config.environment_file import write_environment
from tritonstack.config import GateSettings
from tritonstack.errors import InputError
from tritonstack_capacity.bench.cloud_gate import Verdict, hold, passes
from tritonstack_capacity.bench.document import BenchDocument
from tritonstack_capacity.commands.bench import command

PRICE = 0.736


def point(rate: float, *, p95: float | None, users: int | None = 1, failed: int = 0) -> dict[str, Any]:
    """A load of 100 calls, of which so many failed."""
    figures = {
        "seconds": 10.0,
        "answered": 100 - failed,
        "failed": failed,
        "per_minute": rate,
        "mean_ms": None,
        "least_ms": None,
        "most_ms": None,
        "percentiles_ms": {} if p95 is None else {"95": p95},
        "late_ms": 0.0,
    }
    return {
        "load": "users",
        "users": users,
        "rate_per_second": None,
        "stable": True,
        "per_minute": {"mean": rate, "half_width": None},
        "latency_ms": None,
        "all": figures,
        "rounds": [],
        "failures": {},
        "server": [],
    }


def document(*points: dict[str, Any], results: int = 1, figures: float | None = None, **changes: Any) -> BenchDocument:
    of_endpoint = {"metric": "ModelLatency", "invocations": 9, "mean_ms": 1.0, "p50_ms": 1.0, "p99_ms": 9.0}
    result = {
        "configuration": "fast",
        "name": "one/fast",
        "endpoint": "local-one",
        "archive": "fast.0.tar.gz",
        "archive_sha256": None,
        "config": {},
        "variant": None,
        "instance_type": "ml.g4dn.xlarge",
        "instance_count": 1,
        "image": None,
        "way": "endpoint",
        "generator": "a test",
        "payload_format": "json",
        "payload": "a sample",
        "request_bytes": 1,
        "answer_bytes": 1,
        "first_call_ms": 1.0,
        "cold": None,
        "points": list(points),
        "endpoint_figures": [] if figures is None else [{**of_endpoint, "p95_ms": figures}],
        "published": 0,
        "ended_by": "FAILED: no capacity",
        **changes,
    }
    whole = {
        "complete": True,
        "started": "then",
        "ended": "now",
        "environment": "local",
        "local": False,
        "machine": {},
        "versions": {},
        "seed": 0,
        "settings": {},
        "results": [result] * results,
    }
    return BenchDocument.model_validate(whole)


def verdicts(found: BenchDocument, price: float | None = PRICE, **gate: Any) -> list[Verdict]:
    return [line.verdict for line in hold(found, GateSettings(**gate), usd_per_hour=lambda _: price)]


LADDER = (point(600, p95=40), point(1000, p95=90, users=2), point(1100, p95=200, users=4))


@pytest.mark.parametrize(("limit", "verdict"), [(40, "passed"), (39.9, "failed")])
def test_the_95th_percentile_is_that_of_the_least_load(limit: float, verdict: str) -> None:
    assert verdicts(document(*LADDER), p95_ms=limit) == [verdict]


def test_the_least_load_is_the_one_with_the_fewest_users_and_not_the_slowest() -> None:
    """Past saturation an endpoint answers less than at the load before it."""
    saturated = point(500, p95=900, users=8)
    assert verdicts(document(saturated, *LADDER), p95_ms=40) == ["passed"]
    rates = [
        point(rate, p95=p95, users=None) | {"rate_per_second": per} for rate, p95, per in ((500, 900, 8), (600, 40, 4))
    ]
    assert verdicts(document(*rates), p95_ms=40) == ["passed"]


def test_without_users_and_rate_the_first_load_is_the_least() -> None:
    steps = (point(600, p95=40, users=None), point(500, p95=900, users=None))
    assert verdicts(document(*steps), p95_ms=40) == ["passed"]


def test_a_load_whose_calls_fail_is_not_within_the_limit() -> None:
    failing = point(1200, p95=50, users=8, failed=11)
    assert verdicts(document(*LADDER, failing), p95_ms=100, per_minute=1001) == ["failed"]
    assert verdicts(document(*LADDER, failing), p95_ms=100, usd_per_million=12.26) == ["passed", "failed"]
    bearable = point(1200, p95=50, users=8, failed=10)
    assert verdicts(document(*LADDER, bearable), p95_ms=100, per_minute=1001) == ["passed"]


def test_the_load_that_is_held_fails_where_its_calls_do() -> None:
    failing = document(point(600, p95=40, failed=11), *LADDER[1:])
    [line] = hold(failing, GateSettings(p95_ms=100), usd_per_hour=lambda _: PRICE)
    assert (line.verdict, "11 of 100 calls failed at users; 10% may" in line.sentence) == ("failed", True)
    assert verdicts(document(point(600, p95=40, failed=11)), usd_per_million=1000) == ["failed"]
    nothing = point(0, p95=None, failed=100)
    assert verdicts(document(nothing, *LADDER[1:]), p95_ms=100) == ["failed"], "the next load is not the least one"


def test_a_test_that_was_interrupted_fails() -> None:
    interrupted = document(*LADDER).model_copy(update={"complete": False})
    lines = hold(interrupted, GateSettings(p95_ms=100), usd_per_hour=lambda _: PRICE)
    assert [line.verdict for line in lines] == ["failed", "passed"]
    assert "did not come to its end" in lines[0].sentence


def test_a_result_that_is_marked_as_failed_fails_and_says_why_on_whatever_type() -> None:
    failed = document(*LADDER, failed=True, instance_type="ml.g5.xlarge").results
    both = document().model_copy(update={"results": [*types("ml.g4dn.xlarge").results, *failed]})
    lines = hold(both, GateSettings(p95_ms=100), usd_per_hour=lambda _: PRICE, deployed_on=lambda _: "ml.g4dn.xlarge")
    assert [line.verdict for line in lines] == ["passed", "failed", "passed"]
    assert "its test failed: FAILED: no capacity" in lines[1].sentence


@pytest.mark.parametrize(("wanted", "verdict"), [(1000, "passed"), (1001, "failed"), (601, "passed")])
def test_a_wanted_load_must_be_answered_within_it(wanted: float, verdict: str) -> None:
    assert verdicts(document(*LADDER), p95_ms=100, per_minute=wanted) == [verdict]


def test_a_wanted_load_is_of_each_instance() -> None:
    assert verdicts(document(*LADDER, instance_count=2), p95_ms=100, per_minute=501) == ["failed"]


@pytest.mark.parametrize(("limit", "verdict"), [(12.27, "passed"), (12.26, "failed")])
def test_cost_is_that_of_the_best_rate_within_the_latency(limit: float, verdict: str) -> None:
    """0.736 USD an hour at 1,000 a minute are 12.2667 USD a million; at 1,100, past the latency, it would be 11.15."""
    assert verdicts(document(*LADDER), p95_ms=100, usd_per_million=limit) == ["passed", verdict]


def test_an_unknown_price_is_said_and_fails_only_where_the_gate_says_so() -> None:
    for fails in (False, True):
        gate = GateSettings(usd_per_million=1, unknown_price_fails=fails)
        lines = hold(document(*LADDER), gate, usd_per_hour=lambda _: None)
        assert [line.verdict for line in lines] == ["unknown"]
        assert "no source gives a price of ml.g4dn.xlarge" in lines[0].sentence
        assert passes(lines, gate) is not fails


def types(*instance_types: str, p95: float = 40.0) -> BenchDocument:
    """A document with a result of each instance type."""
    each = [document(point(600, p95=p95), instance_type=name).results[0] for name in instance_types]
    return document().model_copy(update={"results": each})


def on_type(deployed: str | None, *instance_types: str) -> list[Verdict]:
    gate = GateSettings(p95_ms=10)
    held = hold(types(*instance_types), gate, usd_per_hour=lambda _: PRICE, deployed_on=lambda _: deployed)
    assert passes(held, gate) is ("failed" not in [line.verdict for line in held])
    return [line.verdict for line in held]


def test_what_is_measured_beside_the_deployed_instance_type_is_told_and_not_held() -> None:
    assert on_type("ml.g4dn.xlarge", "ml.g4dn.xlarge", "ml.g4dn.2xlarge") == ["failed", "beside"]
    gate = GateSettings(p95_ms=10)
    [_, other] = hold(
        types("ml.g4dn.xlarge", "ml.g5.xlarge"),
        gate,
        usd_per_hour=lambda _: PRICE,
        deployed_on=lambda _: "ml.g4dn.xlarge",
    )
    assert other.sentence.endswith("it is deployed on ml.g4dn.xlarge")


def test_where_the_deployed_instance_type_was_not_measured_or_is_not_known_every_result_is_held() -> None:
    assert on_type("ml.g5.xlarge", "ml.g4dn.xlarge", "ml.g4dn.2xlarge") == ["failed", "failed"]
    assert on_type(None, "ml.g4dn.xlarge", "ml.g4dn.2xlarge") == ["failed", "failed"]
    empty = document(instance_type="ml.g5.xlarge").results
    both = document().model_copy(update={"results": [*types("ml.g4dn.xlarge").results, *empty]})
    lines = hold(both, GateSettings(p95_ms=10), usd_per_hour=lambda _: PRICE, deployed_on=lambda _: "ml.g5.xlarge")
    assert [line.verdict for line in lines] == ["failed", "failed"], "its job failed: nothing takes its place"


def test_a_job_that_found_nothing_fails_whatever_it_was_of() -> None:
    nothing = document(instance_type="ml.g5.xlarge").results
    both = document().model_copy(update={"results": [*types("ml.g4dn.xlarge").results, *nothing]})
    lines = hold(both, GateSettings(p95_ms=50), usd_per_hour=lambda _: PRICE, deployed_on=lambda _: "ml.g4dn.xlarge")
    assert [line.verdict for line in lines] == ["passed", "failed"]


def test_this_machine_has_no_price() -> None:
    assert verdicts(document(*LADDER, instance_type="this-machine"), usd_per_million=1) == ["unknown"]


def test_without_a_percentile_of_its_own_cloudwatch_s_counts_and_without_both_it_fails() -> None:
    assert verdicts(document(point(600, p95=None), figures=50.0), p95_ms=50) == ["passed"]
    assert verdicts(document(point(600, p95=None), figures=50.0), p95_ms=49) == ["failed"]
    assert verdicts(document(point(600, p95=None)), p95_ms=49) == ["failed"]


def test_a_result_without_figures_and_a_document_without_results_fail() -> None:
    [line] = hold(document(), GateSettings(p95_ms=1), usd_per_hour=lambda _: PRICE)
    assert (line.verdict, "FAILED: no capacity" in line.sentence) == ("failed", True)
    assert verdicts(document(results=0), p95_ms=1) == ["failed"]


def gate_command(folder: Path, monkeypatch: pytest.MonkeyPatch, header: str, *arguments: str) -> Any:
    (folder / "environments").mkdir(exist_ok=True)
    write_environment(folder / "environments", header=header)
    (folder / "results.json").write_text(json.dumps(document(*LADDER).model_dump(mode="json")))
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(folder))
    return CliRunner().invoke(command, ["--gate", *arguments], standalone_mode=False)


@pytest.mark.parametrize(("limit", "code"), [(40, 0), (10, 1)])
def test_the_command_exits_by_the_gate_of_the_results_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, code: int
) -> None:
    ran = gate_command(tmp_path, monkeypatch, f"load_test: {{gate: {{p95_ms: {limit}}}}}", str(tmp_path))
    assert ran.return_value == code, ran.output
    assert ("FAILED" in ran.stderr) is bool(code)


def test_an_environment_s_own_price_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "load_test: {gate: {usd_per_million: 1}}\nprices: {ml.g4dn.xlarge: 0.066}"
    ran = gate_command(tmp_path, monkeypatch, header, str(tmp_path / "results.json"))
    assert ran.return_value == 0, ran.stderr


def test_an_environment_without_a_gate_is_wrong_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = gate_command(tmp_path, monkeypatch, "load_test: {}", str(tmp_path))
    assert ran.exception is not None
    assert getattr(ran.exception, "exit_code", None) == 2
    assert "load_test.gate" in str(ran.exception)


def test_every_file_that_cannot_be_judged_is_told_before_any_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, gone, ungated = tmp_path / "bad.json", tmp_path / "gone.json", tmp_path / "ungated.json"
    bad.write_bytes(b'{"complete": "\xff"}')
    known = json.dumps(document(*LADDER).model_dump(mode="json"))
    ungated.write_text(known.replace('"environment": "local"', '"environment": "other"'))
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", header="environment: other", name="other")
    files = [tmp_path, bad, gone, ungated, ungated]

    ran = gate_command(tmp_path, monkeypatch, "load_test: {gate: {p95_ms: 40}}", *map(str, files))

    assert isinstance(ran.exception, InputError), repr(ran.exception)
    assert ran.exception.exit_code == 2
    told = [f"{one.file} {one.field}".strip() for one in ran.exception.problems]
    assert told == [str(bad), str(gone), "environments/other.yaml load_test.gate"]
    assert "passed" not in ran.stderr


def test_of_several_files_that_can_be_judged_one_that_fails_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow.json"
    slow.write_text(json.dumps(document(point(600, p95=41)).model_dump(mode="json")))

    ran = gate_command(tmp_path, monkeypatch, "load_test: {gate: {p95_ms: 40}}", str(slow), str(tmp_path))

    assert ran.return_value == 1, ran.output
    assert ran.stderr.count("gate of local: ") == 2
