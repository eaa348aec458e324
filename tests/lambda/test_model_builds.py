"""Builds of a deployment: what a request starts, the signal when a build has ended, and engine jobs left running."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tritonstack.preparation import remote_job

# `lambda` is a keyword: an import statement cannot name either folder.
worlds: Any = importlib.import_module("tests.lambda.builds_world")
handler: Any = importlib.import_module("lambda.model_builds.handler")
order: Any = importlib.import_module("lambda.model_builds.order")
clients: Any = importlib.import_module("lambda.shared.clients")
calling: Any = importlib.import_module("tests.lambda.calling")
operation: Any = importlib.import_module("lambda.shared.operation")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
ended_build: Any = importlib.import_module("lambda.model_builds.ended_build")
RECORDS, A, B, C = worlds.RECORDS, worlds.A, worlds.B, worlds.C
ROLLBACKS = ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")


@pytest.fixture
def world() -> Iterator[Any]:
    with worlds.listening() as listener:
        yield worlds.World(listener)


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_nothing_missing_starts_nothing_and_ends_the_wait_at_once(world: Any, request_type: str) -> None:
    world.publish(f"bert.{A}", f"resnet.{B}", f"other.{A}", f"more.{A}")
    assert world.request(request_type, {"bert": A, "resnet": B}) == {"Missing": "", "Build": ""}
    assert world.builds == []
    [signal] = world.signals
    assert (signal["Status"], signal["type"]) == ("SUCCESS", "")


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_one_build_gets_one_order_of_all_that_is_missing_and_the_wait_goes_on(world: Any, request_type: str) -> None:
    world.publish(f"bert.{A}")
    done = world.request(request_type, {"bert": A, "resnet": B, "t5": C})
    assert done == {"Missing": f"resnet.{B}, t5.{C}", "Build": "project:0"}
    assert world.order() == {
        **world.build_set({}),
        "archives": [
            {"model": "resnet", "digest": B, "dependency": "engine"},
            {"model": "t5", "digest": C, "dependency": "engine"},
        ],
    }
    assert world.signals == []


def test_what_records_name_is_built_for_the_new_platform_too(world: Any) -> None:
    """After a rollback by hand a record names a release that the set lacks, and clients still request it."""
    world.publish(f"bert.{A}")
    for prefix in ("endpoints/digits/25.04-t4/", "endpoints/digits-large/24.09-t4/"):  # another platform, or endpoint
        world.aws.artifacts[f"{prefix}bert.{C}.tar.gz"] = b"archive"
    values = {"bert": C, "gone": B, "t5": A, "notes": "written by hand"}
    world.aws.parameters |= {f"{RECORDS}{name}": value for name, value in values.items()}
    world.aws.parameters["/tritonstack/local/digits-large/bert"] = B
    world.request("Update", {"bert": A, "t5": A})
    assert world.order()["archives"] == [
        {"model": "bert", "digest": C, "dependency": None},
        {"model": "gone", "digest": B, "dependency": None},
        {"model": "t5", "digest": A, "dependency": "engine"},
    ]


def test_a_request_that_is_delivered_twice_starts_one_build(world: Any) -> None:
    first = world.request("Create", {"bert": A, "resnet": B})
    before = world.order()
    world.publish(f"bert.{A}")  # meanwhile the build has made one of them
    second = world.request("Create", {"bert": A, "resnet": B})
    assert first["Build"] == second["Build"]
    assert world.builds == ["project:0"]
    assert world.order() == before
    world.request("Create", {"bert": B}, request_id="a retry after a failure")
    assert world.builds == ["project:0", "project:1"]


@pytest.mark.parametrize("ended", [False, True])
def test_a_request_delivered_again_after_codebuild_forgot_its_token_starts_no_second_build(
    world: Any, ended: bool
) -> None:
    world.request("Create", {"bert": A})
    for number in range(2 * worlds.PAGE):  # builds of other endpoints, newer than this one
        world.aws.minutes += 1
        world.request("Create", {"bert": A}, request_id=f"another {number}")
    if ended:
        world.aws.end("project:0", "FAILED")
    world.aws.minutes += worlds.TOKEN_MINUTES
    before = list(world.builds)
    assert world.request("Create", {"bert": A})["Build"] == "project:0"
    assert world.builds == before


def test_a_delivery_that_was_cut_off_between_order_and_build_is_made_up_for_by_the_next(world: Any) -> None:
    world.aws.refused["StartBuild"] = "InternalFailure"
    with pytest.raises(custom_resource.NotDoneError):
        world.request("Create", {"bert": A})
    world.aws.refused.clear()
    assert world.request("Create", {"bert": A})["Build"] == "project:0"


@pytest.mark.parametrize("status", ROLLBACKS)
def test_an_update_that_is_rolled_back_starts_nothing(world: Any, status: str) -> None:
    world.aws.stack_status = status
    assert world.request("Update", {"bert": A}) == {"Missing": "", "Build": ""}
    assert (world.builds, world.signals) == ([], [])


def test_a_request_that_comes_after_its_rollback_starts_nothing(world: Any) -> None:
    late = world.event("Update", {"bert": A})
    for status in ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS"):
        world.aws.stack_status = status
        with pytest.raises(operation.SupersededError):
            order.requested(late, aws=world.clients, place=world.place)
    assert (world.builds, world.signals) == ([], [])


def test_a_build_that_cannot_be_started_fails_the_resource_and_reports_what_is_missing(world: Any) -> None:
    world.aws.refused["StartBuild"] = "AccountLimitExceededException"
    with pytest.raises(custom_resource.NotDoneError, match=rf"no build of project.*bert\.{A}.*AccountLimitExceeded"):
        world.request("Create", {"bert": A})
    assert world.signals == []


@pytest.fixture
def entry(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    variables = {"ARTIFACT_BUCKET": "artifacts", "PROJECT": "project", "RECORDS": "/tritonstack/local/"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(clients, "connect", world.aws.client)
    return world


def test_every_request_gets_a_response_with_an_id_that_never_changes(entry: Any) -> None:
    for request in ("Create", "Update", "Delete"):
        invoke(entry.event(request, {"bert": A}))
    responses = entry.listener.documents["/answer"]
    assert {each["PhysicalResourceId"] for each in responses} == {"Custom::ModelBuilds:local/digits"}
    assert {each["Status"] for each in responses} == {"SUCCESS"}
    assert responses[0]["Data"] == {"Missing": f"bert.{A}", "Build": "project:0"}
    assert responses[2]["Data"] == {}


def invoke(event: dict[str, Any]) -> None:
    handler.handler(event, calling.context())


def test_an_event_of_codebuild_is_no_request_of_cloudformation(entry: Any) -> None:
    entry.request("Create", {"bert": A})
    entry.aws.end("project:0", "SUCCEEDED")
    invoke({"source": "aws.codebuild", "detail": {"build-id": "arn:aws:codebuild:r:a:build/project:0"}})
    assert [each["Status"] for each in entry.signals] == ["SUCCESS"]
    assert "/answer" not in entry.listener.documents


def test_an_event_that_fails_is_lambda_s_to_repeat(entry: Any) -> None:
    entry.aws.refused["BatchGetBuilds"] = "InternalServiceError"
    with pytest.raises(ClientError):
        invoke({"source": "aws.codebuild", "detail": {"build-id": "arn:aws:codebuild:r:a:build/project:0"}})


ENGINE, EXPORT, PROOF = (f"FAILED in phase {phase} of bert.{A}: " for phase in ("engine", "export", "proof"))
LINK = "https://console/project:0"
NOISE = [f"[Container] 2026/01/01 00:00:0{number} Phase complete" for number in range(9)]
LOGS: dict[str, tuple[list[str], str]] = {
    "last lines, without empty ones": (
        ["exporting", "", "building", f"{ENGINE}no"],
        f"{ENGINE}no\n| exporting\n| building\n{LINK}",
    ),
    "CodeBuild's own lines and repetitions left out": (
        ["own words", f"   0 s  bert  {EXPORT}code 1", f"{EXPORT}code 1", *NOISE],
        f"{EXPORT}code 1\n| own words\n{LINK}",
    ),
    "every archive that failed": ([f"{ENGINE}no", f"{PROOF}off by 1"], f"{ENGINE}no\n{PROOF}off by 1\n{LINK}"),
    "as many of the latest lines as fit": (
        [*(f"line {number} {'y' * 100}" for number in range(30)), f"{PROOF}{'x' * 300}"],
        f"{PROOF}{'x' * 300}\n" + "".join(f"| line {number} {'y' * 100}\n" for number in range(25, 30)) + LINK,
    ),
    "a reason cut before the link": (
        [f"{PROOF}{'x' * 3000}"],
        f"{(PROOF + 'x' * 3000)[: 998 - 1 - len(LINK)]} …\n{LINK}",
    ),
}


@pytest.mark.parametrize(("log", "reason"), LOGS.values(), ids=LOGS)
def test_a_build_that_failed_reports_its_reason(world: Any, log: list[str], reason: str) -> None:
    world.request("Create", {"bert": A, "resnet": B})
    world.aws.log = log
    world.ended("FAILED")
    [signal] = world.signals
    assert (signal["Status"], signal["Reason"]) == ("FAILURE", reason)


@pytest.mark.parametrize("log", [["[Container] 2026/01/01 00:00:00 no space left on device"], None])
def test_a_failure_is_signalled_by_codebuilds_lines_alone_and_without_a_log(world: Any, log: list[str] | None) -> None:
    world.request("Create", {"bert": A})
    world.aws.log = log or []
    if log is None:
        world.aws.refused["GetLogEvents"] = "ResourceNotFoundException"
    world.ended("FAULT")
    [signal] = world.signals
    assert signal["Status"] == "FAILURE"
    assert (log is None) or "no space left on device" in signal["Reason"]


@pytest.mark.parametrize("why", ["a build of nobody's", "forgotten by CodeBuild", "an expired handle"])
def test_where_nothing_waits_nothing_is_signalled(world: Any, why: str) -> None:
    world.request("Create", {"bert": A})
    if why == "a build of nobody's":
        world.aws.builds["project:0"]["environment"] = {"environmentVariables": []}
    elif why == "an expired handle":
        world.listener.statuses["/handle"] = 403
    world.ended("SUCCEEDED", identity="project:99" if why == "forgotten by CodeBuild" else "project:0")
    assert world.signals == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("FAILED", ("FAILED", "INSTALL", "exit status 1")),
        ("FAULT", ("FAULT", "INSTALL")),
        ("TIMED_OUT", ("took longer than it may", "INSTALL")),
        ("STOPPED", ("stopped by hand", "INSTALL")),
    ],
)
def test_a_build_without_such_lines_is_reported_by_codebuild_s_own_phase(
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


def test_a_build_cannot_have_anything_but_a_wait_read(world: Any) -> None:
    world.request("Create", {"bert": A})
    world.aws.artifacts["staging/jobs/run/job/job.json"] = json.dumps({"handle": "http://127.0.0.1"}).encode()
    variables = [{"name": "TRITONSTACK_WAIT", "value": "staging/jobs/run/job/job.json"}]
    world.aws.builds["project:0"]["environment"] = {"environmentVariables": variables}
    world.aws.calls.clear()
    world.ended("SUCCEEDED")
    assert world.aws.operations == ["BatchGetBuilds"]


def test_a_signal_that_did_not_get_through_is_lambda_s_to_repeat(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_resource, "PAUSES", (0,))
    world.request("Create", {"bert": A})
    world.listener.statuses["/handle"] = 503
    with pytest.raises(OSError, match="503"):
        world.ended("SUCCEEDED")
    world.listener.statuses.clear()
    world.ended("SUCCEEDED")
    assert [each["Status"] for each in world.signals] == ["SUCCESS"]


OURS, OTHER = "builds:ours", "builds:other"
ENDS = ("FAILED", "FAULT", "STOPPED", "TIMED_OUT")


class EngineWorld:
    """An account where the build ``OURS`` has ended, and others run."""

    def __init__(self, status: str = "STOPPED") -> None:
        self.aws = worlds.FakeEngines()
        self.aws.begin(OURS)
        self.aws.begin(OTHER, minutes=-10)
        self.aws.builds[OURS]["buildStatus"] = status

    def send(self, *, engine_project: str = "engines", engine_jobs: str = "local-engine-") -> None:
        place = worlds.wait.Place(
            "artifacts", "builds", "/tritonstack/local/", engine_project=engine_project, engine_jobs=engine_jobs
        )
        arn = f"arn:aws:codebuild:us-east-1:123456789012:build/{OURS}"
        event = {"source": "aws.codebuild", "detail": {"build-id": arn, "build-status": "STOPPED"}}
        ended_build.build_ended(event, aws=worlds.clients.Aws(self.aws.client), place=place)


def test_the_variable_is_the_one_that_the_build_sets() -> None:
    assert ended_build.STARTED_BY == remote_job.VARIABLE == worlds.STARTED_BY


@pytest.mark.parametrize("status", ENDS)
def test_the_jobs_that_it_started_and_no_others_are_stopped(status: str) -> None:
    world = EngineWorld(status)
    for number in range(3):
        world.aws.begin_job(f"local-engine-bert-{number}", of=OURS)
        world.aws.begin_engine_build(f"engines:{number}", of=OURS, minutes=number + 1)
    world.aws.begin_job("local-engine-bert-other", of=OTHER)
    world.aws.begin_job("local-engine-bert-by-hand", of=None)
    world.aws.begin_job("prod-local-engine-bert-0", of=OURS)
    world.aws.begin_job("local-engine-bert-done", of=OURS, status="Completed")
    world.aws.begin_engine_build("engines:other", of=OTHER, minutes=9)
    world.aws.begin_engine_build("engines:by-hand", of=None, minutes=9)
    world.aws.begin_engine_build("engines:done", of=OURS, minutes=9, status="SUCCEEDED")
    world.aws.begin_engine_build("another:0", of=OURS, minutes=9)
    world.send()
    world.send()  # each is stopped once
    assert sorted(world.aws.stopped) == [
        "engines:0",
        "engines:1",
        "engines:2",
        "local-engine-bert-0",
        "local-engine-bert-1",
        "local-engine-bert-2",
    ]


def test_a_build_that_succeeded_stops_nothing_and_looks_for_nothing() -> None:
    world = EngineWorld("SUCCEEDED")
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    world.send()
    assert world.aws.stopped == []
    assert world.aws.operations == ["BatchGetBuilds"]


def test_a_job_that_ends_when_it_is_stopped_is_no_error() -> None:
    world = EngineWorld()
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    world.aws.ends.add("local-engine-bert-0")
    world.send()
    assert world.aws.jobs["local-engine-bert-0"]["status"] == "Completed"


@pytest.mark.parametrize("name", ["local-engine-bert-0", "engines:0"])
def test_one_that_cannot_be_stopped_keeps_no_other_running_and_is_tried_again(name: str) -> None:
    world = EngineWorld()
    for number in range(3):
        world.aws.begin_job(f"local-engine-bert-{number}", of=OURS)
        world.aws.begin_engine_build(f"engines:{number}", of=OURS, minutes=1)
    world.aws.unstoppable.add(name)
    with pytest.raises(ClientError):
        world.send()
    assert len(world.aws.stopped) == 5
    world.aws.unstoppable.clear()
    world.send()
    assert world.aws.stopped[-1] == name


@pytest.mark.parametrize(
    ("places", "requested"),
    [
        ({"engine_project": ""}, {"ListProcessingJobs"}),
        ({"engine_jobs": ""}, {"ListBuildsForProject"}),
        ({"engine_project": "", "engine_jobs": ""}, set()),
    ],
)
def test_services_that_the_environment_does_not_use_get_no_request(places: dict[str, str], requested: set[str]) -> None:
    world = EngineWorld()
    world.send(**places)
    assert {each for each in world.aws.operations if each.startswith("List")} == requested


def test_a_deployment_that_cannot_be_notified_keeps_no_job_running(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no response")

    world = EngineWorld()
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    monkeypatch.setattr(ended_build, "signal_outcome", refuse)
    with pytest.raises(OSError, match="no response"):
        world.send()
    assert world.aws.stopped == ["local-engine-bert-0"]
