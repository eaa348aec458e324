"""What a deployment hears when its build has ended."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
worlds: Any = importlib.import_module("tests.lambda.builds_world")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")

A, B = worlds.A, worlds.B


@pytest.fixture
def world() -> Iterator[Any]:
    with worlds.listening() as listener:
        yield worlds.World(listener)


def test_a_build_that_succeeded_ends_the_wait(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.ended("SUCCEEDED")
    [signal] = world.signals
    assert (signal["Status"], signal["UniqueId"], signal["type"]) == ("SUCCESS", "0", "")


def test_a_build_that_failed_says_phase_last_lines_and_link(world: Any) -> None:
    world.request("Create", {"bert": A})
    reason = f"FAILED in phase engine of bert.{A}: trtexec knows no --fp17"
    world.aws.log = ["exporting", "", "building", reason]
    world.ended("FAILED")
    [signal] = world.signals
    assert signal["Status"] == "FAILURE"
    assert signal["Reason"] == f"{reason}\n| exporting\n| building\nhttps://console/project:0"


def test_codebuild_s_own_lines_and_repetitions_leave_the_room_to_others(world: Any) -> None:
    world.request("Create", {"bert": A})
    reason = f"FAILED in phase export of bert.{A}: exit code 1"
    noise = [f"[Container] 2026/01/01 00:00:0{number} Phase complete" for number in range(9)]
    world.aws.log = ["the script's own words", f"   0 s  bert  {reason}", reason, *noise]
    world.ended("FAILED")
    assert world.signals[0]["Reason"] == f"{reason}\n| the script's own words\nhttps://console/project:0"


def test_where_codebuild_alone_has_said_something_its_lines_are_told(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.aws.log = ["[Container] 2026/01/01 00:00:00 no space left on device"]
    world.ended("FAULT")
    assert "no space left on device" in world.signals[0]["Reason"]


def test_every_archive_that_failed_is_named(world: Any) -> None:
    world.request("Create", {"bert": A, "resnet": B})
    failed = [f"FAILED in phase engine of bert.{A}: no", f"FAILED in phase proof of resnet.{B}: off by 1"]
    world.aws.log = failed
    world.ended("FAILED")
    assert world.signals[0]["Reason"].splitlines()[:2] == failed


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("FAILED", ("FAILED", "INSTALL", "exit status 1")),
        ("FAULT", ("FAULT", "INSTALL")),
        ("TIMED_OUT", ("took longer than it may", "INSTALL")),
        ("STOPPED", ("stopped by hand", "INSTALL")),
    ],
)
def test_a_build_without_such_lines_is_told_by_codebuild_s_own_phase(
    world: Any, status: str, words: tuple[str, ...]
) -> None:
    world.request("Create", {"bert": A})
    world.aws.log = ["fetching numpy"]
    phases: list[dict[str, Any]] = [
        {"phaseType": "PROVISIONING", "phaseStatus": "SUCCEEDED"},
        {"phaseType": "INSTALL", "phaseStatus": status, "contexts": [{"message": "exit status 1"}]},
    ]
    world.ended(status, phases=phases)
    [signal] = world.signals
    assert signal["Status"] == "FAILURE"
    assert [
        word for word in (*words, "project:0", "| fetching numpy", "https://") if word not in signal["Reason"]
    ] == []


def test_a_long_log_keeps_the_reason_the_latest_lines_and_the_link(world: Any) -> None:
    world.request("Create", {"bert": A})
    reason = f"FAILED in phase proof of bert.{A}: {'x' * 300}"
    world.aws.log = [*(f"line {number} {'y' * 100}" for number in range(30)), reason]
    world.ended("FAILED")
    text = world.signals[0]["Reason"]
    assert 800 < len(text) <= 1000
    assert text.startswith(reason)
    assert text.endswith("https://console/project:0")
    assert "| line 29 " in text
    assert "| line 11 " not in text


def test_a_reason_that_is_too_long_is_cut_before_the_link(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.aws.log = [f"FAILED in phase proof of bert.{A}: {'x' * 3000}"]
    world.ended("FAILED")
    text = world.signals[0]["Reason"]
    assert len(text) == 1000
    assert text.endswith(" …\nhttps://console/project:0")


def test_a_failure_is_signalled_though_the_log_cannot_be_read(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.aws.refused["GetLogEvents"] = "ResourceNotFoundException"
    world.ended("FAILED")
    assert world.signals[0]["Status"] == "FAILURE"


def test_an_event_that_is_delivered_twice_is_one_signal_to_cloudformation(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.ended("SUCCEEDED")
    world.ended("SUCCEEDED")
    assert {each["UniqueId"] for each in world.signals} == {"0"}
    assert {each["Status"] for each in world.signals} == {"SUCCESS"}


@pytest.mark.parametrize("code", ["NoSuchKey", "AccessDenied"])
def test_a_build_whose_wait_is_gone_is_left_alone(world: Any, code: str) -> None:
    world.request("Create", {"bert": A})
    world.aws.objects = {place: body for place, body in world.aws.objects.items() if "/waits/" not in place[1]}
    world.aws.missing_object = code
    world.ended("FAILED")
    assert world.signals == []


def test_a_build_that_somebody_else_started_is_left_alone(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.aws.builds["project:0"]["environment"] = {"environmentVariables": []}
    world.ended("SUCCEEDED")
    assert world.signals == []


def test_a_build_cannot_have_anything_but_a_wait_read(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.aws.objects["artifacts", "staging/jobs/run/job/job.json"] = json.dumps(
        {"handle": "http://127.0.0.1"}
    ).encode()
    variables = [{"name": "TRITONSTACK_WAIT", "value": "staging/jobs/run/job/job.json"}]
    world.aws.builds["project:0"]["environment"] = {"environmentVariables": variables}
    world.aws.calls.clear()
    world.ended("SUCCEEDED")
    assert world.aws.operations == ["BatchGetBuilds"]


def test_a_build_that_codebuild_has_forgotten_is_left_alone(world: Any) -> None:
    world.ended("SUCCEEDED", identity="project:99")
    assert world.signals == []


def test_a_handle_that_has_expired_is_no_error(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.listener.answers["/handle"] = 403
    world.ended("SUCCEEDED")
    assert world.signals == []


def test_a_signal_that_did_not_get_through_is_lambda_s_to_repeat(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_resource, "PAUSES", (0,))
    world.request("Create", {"bert": A})
    world.listener.answers["/handle"] = 503
    with pytest.raises(OSError, match="503"):
        world.ended("SUCCEEDED")
    world.listener.answers.clear()
    world.ended("SUCCEEDED")
    assert [each["Status"] for each in world.signals] == ["SUCCESS"]
