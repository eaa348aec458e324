"""The status as text: whole names, no line cut, nothing repeated."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from tritonstack_local.aws import LocalAws
from tritonstack_local.commands.status import fitting_view, stand_ins, view
from tritonstack_local.processes import ProcessRecord

GONE = ProcessRecord(pid=1, started=0.0, log="")
AWS = LocalAws(emulator_port=4566, runtime_port=4567, emulator=GONE, runtime=GONE)
STAND_IN = "tritonstack stand-in: backend onnxruntime runs model.onnx with ONNX Runtime on the CPU (model {})"


def model(number: int = 0, *, name: str = "digits", **changes: Any) -> dict[str, Any]:
    """A loaded model; the higher its number, the longer it is idle."""
    idle = timedelta(seconds=10 * number)
    return {
        "target_model": f"{name}.{number:016x}.tar.gz",
        "state": "loaded",
        "loads": 1,
        "hits": 7,
        "in_flight": 0,
        "last_used": (datetime.now(tz=UTC) - idle).isoformat(),
    } | changes


def fleet(**changes: Any) -> dict[str, Any]:
    """A fleet that serves."""
    return {
        "variant": "g4dn-xlarge",
        "mode": "multi-model",
        "state": "ready",
        "share": 1.0,
        "release_asked_for": "24.09",
        "server_version": "2.51.0",
        "requests": 4,
        "errors": 0,
        "in_flight": 0,
        "hit_ratio": 0.5,
        "restarts": 0,
        "model_latency_ms": {"count": 4, "p50": 8.774, "p90": 36.5, "p99": 36.5},
        "stand_ins": [],
        "isolation": "namespace",
        "max_loaded_models": None,
        "models": [],
        "last_errors": [],
    } | changes


def status(*fleets: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The runtime's status with one endpoint."""
    endpoint = {"name": "local-digits", "status": "InService", "last_failure": None, "fleets": list(fleets)}
    return {"local_aws": "answers", "endpoints": [endpoint]} | changes


def text(shown: RenderableType, *, width: int = 80) -> str:
    """What a terminal of ``width`` columns shows."""
    console = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=False)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def lines_of(told: dict[str, Any], *, width: int = 80) -> str:
    """The status in a terminal of that width."""
    return text(view(AWS, told, width=width), width=width)


def joined(shown: str) -> str:
    """The text without frames and line ends."""
    return " ".join(shown.replace("│", " ").split())


def test_both_addresses_and_the_endpoint_are_named() -> None:
    shown = lines_of(status(fleet()))
    for words in ("http://127.0.0.1:4566", "http://127.0.0.1:4567", "local-digits", "InService", "g4dn-xlarge"):
        assert words in shown


def test_without_an_endpoint_it_reports_how_to_deploy_one() -> None:
    assert "tritonstack local deploy" in lines_of(status(endpoints=[]))


def test_the_release_asked_for_and_the_one_that_answers_are_both_reported() -> None:
    assert "asked for 24.09, answered by 24.10 (2.51.0)" in lines_of(status(fleet()))


def test_before_a_server_answers_none_is_named() -> None:
    shown = lines_of(status(fleet(server_version=None, release_asked_for=None, state="starting", share=0.0)))
    assert "asked for no known release, answered by nothing yet" in shown
    assert "starting, no traffic" in shown


def test_two_fleets_of_an_update_show_what_part_of_the_calls_each_takes() -> None:
    shown = lines_of(status(fleet(share=0.75), fleet(share=0.25, release_asked_for="25.04")))
    assert "ready, 75% of the calls" in shown
    assert "ready, 25% of the calls" in shown
    assert "of the calls" not in lines_of(status(fleet()))


def test_latencies_are_percentiles_with_their_unit_and_no_count() -> None:
    shown = lines_of(status(fleet()))
    assert "model latency, ms: p50 8.8  p90 36.5  p99 36.5" in shown
    assert "count" not in shown


@pytest.mark.parametrize("latency", [None, {}, {"count": 0, "p50": None, "p90": None, "p99": None}])
def test_without_calls_there_is_no_latency(latency: dict[str, Any] | None) -> None:
    assert "latency" not in lines_of(status(fleet(model_latency_ms=latency, hit_ratio=None)))


def test_a_hit_ratio_is_shown_where_there_is_one() -> None:
    assert "hit ratio 50%" in lines_of(status(fleet()))
    assert "hit ratio" not in lines_of(status(fleet(hit_ratio=None)))


def test_restarts_are_reported() -> None:
    assert "restarted" not in lines_of(status(fleet()))
    assert "restarted once" in lines_of(status(fleet(restarts=1)))
    assert "restarted 3 times" in lines_of(status(fleet(restarts=3)))


def test_a_stand_in_is_named_once_for_all_models_of_which_it_is_true() -> None:
    two = [STAND_IN.format("one.tar.gz"), STAND_IN.format("two.tar.gz")]
    assert [str(line) for line in stand_ins(two)] == [
        "stand-in: backend onnxruntime runs model.onnx with ONNX Runtime on the CPU (for one.tar.gz, two.tar.gz)"
    ]
    many = [STAND_IN.format(number) for number in range(40)]
    assert [str(line) for line in stand_ins(many)] == [
        "stand-in: backend onnxruntime runs model.onnx with ONNX Runtime on the CPU (for 40 models)"
    ]


def test_a_plan_of_trtexec_s_stand_in_is_reported_as_its_graph() -> None:
    what = (
        "backend tensorrt runs the ONNX graph in model.plan, which trtexec-stand-in wrote, with ONNX Runtime on the CPU"
    )
    (line,) = stand_ins([f"tritonstack stand-in: {what} (model bert)"])
    assert str(line) == f"stand-in: {what} (for bert)"


def test_stand_ins_that_differ_and_lines_in_other_words_are_all_shown() -> None:
    lines = [STAND_IN.format("one"), "backend dali runs x (with a word) on the CPU", "tritonstack stand-in: (model )"]
    shown = [str(line) for line in stand_ins(lines)]
    assert len(shown) == 3
    assert shown[1] == "stand-in: backend dali runs x (with a word) on the CPU"


def test_a_container_without_isolation_is_reported_loudly() -> None:
    shown = joined(lines_of(status(fleet(isolation="open port: user namespaces are not permitted"))))
    assert "not isolated: open port: user namespaces are not permitted" in shown
    assert "not isolated" not in lines_of(status(fleet(isolation=None)))


def test_an_error_takes_two_rows_at_most_and_loses_the_console_s_address() -> None:
    error = "ModelError 400: unexpected shape for input 'x'. "
    told = status(fleet(last_errors=[{"at": datetime.now(tz=UTC).isoformat(), "error": f"{error}See https://x.y in"}]))
    assert error.strip() in joined(lines_of(told))
    assert "https" not in lines_of(told)
    long = status(fleet(last_errors=[{"at": datetime.now(tz=UTC).isoformat(), "error": error * 20}]))
    assert len(lines_of(long).splitlines()) == len(lines_of(told).splitlines()) + 1
    assert "…" in lines_of(long)


@pytest.mark.parametrize("height", [16, 20, 24])
def test_errors_never_push_models_and_the_foot_out_of_a_watched_view(height: int) -> None:
    console = Console(file=io.StringIO(), width=80, height=height, highlight=False)
    errors = [{"at": datetime.now(tz=UTC).isoformat(), "error": "what went wrong " * 18} for _ in range(3)]
    told = status(fleet(models=[model()], last_errors=errors), metrics_not_written="GPUUtilization: no GPU")
    shown = text(fitting_view(AWS, told, console))
    assert len(shown.splitlines()) <= height
    assert "digits.0000000000000000.tar.gz" in shown
    assert "not written: GPUUtilization" in shown


def test_only_models_in_state_loaded_are_counted_as_loaded() -> None:
    told = status(fleet(models=[model(), model(1, state="loading"), model(2, state="unloading")]))
    assert "TargetModel (1 loaded)" in lines_of(told)


def test_one_request_and_one_error_are_in_the_singular() -> None:
    assert "1 request, 1 error, 0 in flight" in lines_of(status(fleet(requests=1, errors=1)))
    assert "2 requests, 0 errors" in lines_of(status(fleet(requests=2)))


def test_the_last_errors_alone_are_shown() -> None:
    errors = [{"at": datetime.now(tz=UTC).isoformat(), "error": f"error {number}"} for number in range(9)]
    shown = lines_of(status(fleet(last_errors=errors)))
    assert "error 8" in shown
    assert "error 2" not in shown


def test_a_failed_deployment_and_an_emulator_that_is_gone_are_reported() -> None:
    told = status(fleet(), local_aws="connection refused", metrics_not_written="GPUUtilization: no GPU")
    told["endpoints"][0]["last_failure"] = "the image has no such release"
    shown = joined(lines_of(told))
    assert "last failure: the image has no such release" in shown
    assert "the AWS APIs do not answer the runtime: connection refused" in shown
    assert "not written: GPUUtilization: no GPU" in shown


def test_a_model_s_figures_stand_beside_its_whole_name() -> None:
    shown = lines_of(status(fleet(models=[model(3, state="unloading", loads=2, hits=1234, in_flight=5)])))
    line = next(line for line in shown.splitlines() if "digits.0000000000000003.tar.gz" in line)
    assert line.strip("│ ").split() == ["digits.0000000000000003.tar.gz", "unloading", "2", "1234", "5", "30", "s"]
    assert "TargetModel (0 loaded)" in shown
    assert "TargetModel (1 loaded, at most 8)" in lines_of(status(fleet(models=[model()], max_loaded_models=8)))


def test_a_single_model_endpoint_s_model_is_named_so() -> None:
    told = status(fleet(mode="single-model", hit_ratio=None, models=[model(target_model=None)]))
    assert "(the endpoint's one model)" in lines_of(told)


@given(length=st.integers(1, 50), count=st.integers(1, 40), width=st.integers(80, 200))
def test_names_stay_whole_and_no_line_is_wider_than_the_terminal(length: int, count: int, width: int) -> None:
    models = [model(number, name="m" * length) for number in range(count)]
    shown = lines_of(status(fleet(models=models)), width=width)
    assert max(len(line) for line in shown.splitlines()) <= width
    for one in models:
        assert one["target_model"] in shown
    assert shown.count("loaded") == count + 1


def test_figures_go_below_names_that_leave_them_no_room() -> None:
    shown = lines_of(status(fleet(models=[model(name="m" * 50)])))
    assert "state loaded  loads 1  hits 7  busy 0  idle 0 s" in shown


@pytest.mark.parametrize("height", [20, 24, 50])
@pytest.mark.parametrize("name", ["digits", "m" * 50])
def test_a_watched_view_fits_the_terminal_and_drops_models_that_were_used_longest_ago(height: int, name: str) -> None:
    console = Console(file=io.StringIO(), width=80, height=height, highlight=False)
    told = status(fleet(models=[model(number, name=name) for number in reversed(range(60))]))
    shown = text(fitting_view(AWS, told, console))
    assert len(shown.splitlines()) <= height
    assert f"{name}.{0:016x}.tar.gz" in shown
    assert f"{name}.{59:016x}.tar.gz" not in shown
    assert "that were used longer ago" in shown


def test_a_watched_view_that_fits_drops_nothing() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, highlight=False)
    told = status(fleet(models=[model(number) for number in range(5)]))
    assert text(fitting_view(AWS, told, console)) == lines_of(told)


def test_ages_are_seconds_and_from_two_minutes_on_minutes() -> None:
    shown = lines_of(status(fleet(models=[model(9), model(60)])))
    assert " 90 s " in shown
    assert " 10 min " in shown
