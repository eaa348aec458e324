"""The status as text: whole names, no line cut, nothing repeated."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from tests.tritonstack_local.fake_parts import AWS
from tritonstack.cli.conventions import BOX_WIDTH
from tritonstack_local.commands.status import stand_ins, view

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


def lines_of(document: dict[str, Any], *, width: int = 80) -> str:
    """The status in a terminal of that width."""
    return text(view(AWS, document, width=width), width=width)


def joined(shown: str) -> str:
    """The text without frames and line ends."""
    return " ".join(shown.replace("│", " ").split())


OPEN = "open port: user namespaces are not permitted"
UNKNOWN = {"server_version": None, "release_asked_for": None, "state": "starting", "share": 0.0}
NOT_CALLED = {"model_latency_ms": {"count": 0, "p50": None, "p90": None, "p99": None}, "hit_ratio": None}


@pytest.mark.parametrize(
    ("fleets", "shown", "hidden"),
    [
        ([{}], ["http://127.0.0.1:4566", "http://127.0.0.1:4567", "local-digits", "InService", "g4dn-xlarge"], []),
        (
            [{}],
            ["release 24.09 requested, served by Triton 24.10 (2.51.0)", "hit ratio 50%"],
            ["of the requests", "restarted"],
        ),
        ([{}], ["model latency, ms: p50 8.8  p90 36.5  p99 36.5"], ["count", "not isolated"]),
        ([UNKNOWN], ["no known release requested, served by nothing yet", "starting, no traffic"], []),
        ([{"pooled": True, "instance_type": "ml.g5.xlarge"}], [", ml.g5.xlarge)"], []),
        ([{"share": 0.75}, {"share": 0.25}], ["ready, 75% of the requests", "ready, 25% of the requests"], []),
        ([NOT_CALLED | {"isolation": None}], [], ["latency", "hit ratio", "not isolated"]),
        ([{"restarts": 3, "isolation": OPEN}], ["restarted 3 times", f"not isolated: {OPEN}"], []),
        ([{"requests": 1, "errors": 2}], ["1 request, 2 errors, 0 in flight"], []),
        ([{"models": [model(), model(1, state="loading")]}], ["TargetModel (1 loaded)"], []),
        ([{"models": [model()], "max_loaded_models": 8}], ["TargetModel (1 loaded, at most 8)"], []),
        ([{"mode": "single-model", "models": [model(target_model=None)]}], ["(the endpoint's one model)"], []),
        ([], ["tritonstack local deploy"], []),
    ],
)
def test_what_a_fleet_shows(fleets: list[dict[str, Any]], shown: list[str], hidden: list[str]) -> None:
    document = status(*(fleet(**each) for each in fleets)) if fleets else status(endpoints=[])
    text = lines_of(document)
    assert [words for words in shown if words not in text and words not in joined(text)] == []
    assert [words for words in hidden if words in text] == []


ONNX_ON_CPU = "stand-in: backend onnxruntime runs model.onnx with ONNX Runtime on the CPU (for {})"
PLAN = "backend tensorrt runs the ONNX graph in model.plan, which trtexec-stand-in wrote, with ONNX Runtime on the CPU"
DALI = "backend dali runs x (with a word) on the CPU"


@pytest.mark.parametrize(
    ("logged", "shown"),
    [
        ([STAND_IN.format("one"), STAND_IN.format("two")], [ONNX_ON_CPU.format("one, two")]),
        ([STAND_IN.format(number) for number in range(40)], [ONNX_ON_CPU.format("40 models")]),
        ([f"tritonstack stand-in: {PLAN} (model bert)"], [f"stand-in: {PLAN} (for bert)"]),
        ([STAND_IN.format("one"), DALI], [ONNX_ON_CPU.format("one"), f"stand-in: {DALI}"]),
    ],
    ids=["of two models", "of many", "a plan's graph", "other words"],
)
def test_a_stand_in_is_named_once_for_all_models_that_it_serves(logged: list[str], shown: list[str]) -> None:
    assert [str(line) for line in stand_ins(logged)] == shown


def test_an_error_takes_two_rows_at_most_and_loses_the_console_s_address() -> None:
    error = "ModelError 400: unexpected shape for input 'x'. "
    document = status(
        fleet(last_errors=[{"at": datetime.now(tz=UTC).isoformat(), "error": f"{error}See https://x.y in"}])
    )
    assert error.strip() in joined(lines_of(document))
    assert "https" not in lines_of(document)
    long = status(fleet(last_errors=[{"at": datetime.now(tz=UTC).isoformat(), "error": error * 20}]))
    assert len(lines_of(long).splitlines()) == len(lines_of(document).splitlines()) + 1
    assert "…" in lines_of(long)


def test_a_failed_deployment_and_an_emulator_that_is_gone_are_reported() -> None:
    document = status(fleet(), local_aws="connection refused", metrics_not_written="GPUUtilization: no GPU")
    document["endpoints"][0]["last_failure"] = "the image has no such release"
    shown = joined(lines_of(document))
    assert "last failure: the image has no such release" in shown
    assert "the AWS APIs do not respond to the runtime: connection refused" in shown
    assert "not written: GPUUtilization: no GPU" in shown


def test_a_model_s_figures_are_on_the_line_of_its_whole_name() -> None:
    shown = lines_of(status(fleet(models=[model(3, state="unloading", loads=2, hits=1234, in_flight=5)])))
    line = next(line for line in shown.splitlines() if "digits.0000000000000003.tar.gz" in line)
    assert line.strip("│ ").split() == ["digits.0000000000000003.tar.gz", "unloading", "2", "1234", "5", "30", "s"]
    assert "TargetModel (0 loaded)" in shown
    aged = lines_of(status(fleet(models=[model(9), model(60)])))
    assert {" 90 s ", " 10 min "} <= set(re.findall(r" \d+ (?:s|min) ", aged))


def test_without_a_terminal_frames_keep_to_their_columns_and_errors_are_whole() -> None:
    error = "ModelError 400: " + "unexpected shape for input 'x', " * 20
    told = status(fleet(last_errors=[{"at": datetime.now(tz=UTC).isoformat(), "error": error}]))
    shown = text(view(AWS, told, width=BOX_WIDTH, error_rows=None), width=BOX_WIDTH)
    assert {len(line) for line in shown.splitlines() if line.startswith("│")} == {BOX_WIDTH}
    assert joined(shown).count("unexpected shape for input 'x',") == 20


@given(length=st.integers(1, 80), width=st.integers(80, 200))
def test_no_line_is_wider_than_the_terminal_and_a_long_name_is_folded(length: int, width: int) -> None:
    one = model(name="m" * length)
    shown = lines_of(status(fleet(models=[one])), width=width)
    assert max(len(line) for line in shown.splitlines()) <= width
    folded = "".join(line.strip("│ ").split(" ")[0] for line in shown.splitlines())
    assert one["target_model"] in folded
