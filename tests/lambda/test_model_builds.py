"""What a deployment's request starts, and what CloudFormation hears of it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
worlds: Any = importlib.import_module("tests.lambda.builds_world")
handler: Any = importlib.import_module("lambda.model_builds.handler")
order: Any = importlib.import_module("lambda.model_builds.order")
clients: Any = importlib.import_module("lambda.shared.clients")
calling: Any = importlib.import_module("tests.lambda.calling")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")

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


def test_the_same_archive_on_another_platform_or_endpoint_is_missing_here(world: Any) -> None:
    for prefix in ("endpoints/digits/25.04-t4/", "endpoints/digits-large/24.09-t4/"):
        world.aws.objects["artifacts", f"{prefix}bert.{A}.tar.gz"] = b"archive"
    assert world.request("Create", {"bert": A})["Missing"] == f"bert.{A}"


def test_what_records_name_is_built_for_the_new_platform_too(world: Any) -> None:
    """After a rollback by hand a record names what the set does not, and callers still ask for it."""
    world.publish(f"bert.{A}")
    world.aws.parameters |= {f"{RECORDS}bert": C, f"{RECORDS}gone": B, "/tritonstack/local/digits-large/bert": B}
    world.request("Update", {"bert": A})
    assert world.order()["archives"] == [
        {"model": "bert", "digest": C, "dependency": None},
        {"model": "gone", "digest": B, "dependency": None},
    ]


def test_a_record_that_names_no_digest_is_ordered_nowhere(world: Any) -> None:
    world.publish(f"bert.{A}")
    world.aws.parameters |= {f"{RECORDS}bert": "latest", f"{RECORDS}notes": "written by hand"}
    assert world.request("Update", {"bert": A}) == {"Missing": "", "Build": ""}


def test_a_recorded_digest_of_the_set_is_ordered_once(world: Any) -> None:
    world.aws.parameters[f"{RECORDS}bert"] = A
    world.request("Update", {"bert": A})
    assert world.order()["archives"] == [{"model": "bert", "digest": A, "dependency": "engine"}]


def test_the_order_is_there_before_the_build_and_the_wait_where_the_build_names_it(world: Any) -> None:
    world.request("Create", {"bert": A})
    operations = world.aws.operations
    assert [each for each in operations if each in ("PutObject", "StartBuild")] == ["PutObject"] * 2 + ["StartBuild"]
    [given] = [given for operation, given in world.aws.calls if operation == "StartBuild"]
    variables = {each["name"]: each["value"] for each in given["environmentVariablesOverride"]}
    wait = variables["TRITONSTACK_WAIT"]
    assert variables["TRITONSTACK_ORDER"] == f"s3://artifacts/{wait.replace('waits', 'orders')}"
    assert json.loads(world.aws.objects["artifacts", wait]) == {"handle": f"{world.listener.url}/handle"}


def test_a_request_that_is_delivered_twice_starts_one_build(world: Any) -> None:
    first = world.request("Create", {"bert": A, "resnet": B})
    before = world.order()
    world.publish(f"bert.{A}")  # meanwhile the build has made one of them
    second = world.request("Create", {"bert": A, "resnet": B})
    assert first["Build"] == second["Build"]
    assert world.builds == ["project:0"]
    assert world.order() == before


def test_a_retry_after_a_failure_starts_another_build(world: Any) -> None:
    world.request("Create", {"bert": A}, request_id="first")
    world.request("Create", {"bert": A}, request_id="second")
    assert world.builds == ["project:0", "project:1"]


@pytest.mark.parametrize("status", ROLLBACKS)
def test_an_update_that_is_taken_back_starts_nothing(world: Any, status: str) -> None:
    world.aws.stack_status = status
    assert world.request("Update", {"bert": A}) == {"Missing": "", "Build": ""}
    assert (world.builds, world.signals) == ([], [])


def test_delete_touches_nothing_at_all(world: Any) -> None:
    event = world.event("Delete", {"bert": A})
    world.aws.objects.clear()
    assert order.requested(event, aws=world.clients, place=world.place) == {"Missing": "", "Build": ""}
    assert (world.aws.calls, world.signals) == ([], [])


def test_a_build_that_cannot_be_started_fails_the_resource_and_says_what_is_missing(world: Any) -> None:
    world.aws.refused["StartBuild"] = "AccountLimitExceededException"
    with pytest.raises(custom_resource.NotDoneError, match=rf"no build of project.*bert\.{A}.*AccountLimitExceeded"):
        world.request("Create", {"bert": A})
    assert world.signals == []


@pytest.mark.parametrize("document", [b"no JSON", b"{}", b"[]", b'{"schema": 2, "archives": []}'])
def test_what_is_no_build_set_is_refused(world: Any, document: bytes) -> None:
    event = world.event("Create", {})
    world.aws.objects["staging", "set.build-set"] = document
    with pytest.raises(custom_resource.NotDoneError, match="is no build set"):
        order.requested(event, aws=world.clients, place=world.place)


def test_a_handle_whose_time_is_over_does_not_fail_the_request(world: Any) -> None:
    world.listener.answers["/handle"] = 403
    world.publish(f"bert.{A}")
    assert world.request("Update", {"bert": A}) == {"Missing": "", "Build": ""}


# The entry point.


@pytest.fixture
def entry(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    variables = {"ARTIFACT_BUCKET": "artifacts", "PROJECT": "project", "RECORDS": "/tritonstack/local/"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(clients, "connect", world.aws.client)
    return world


def invoke(event: dict[str, Any]) -> None:
    handler.handler(event, calling.context())


def test_cloudformation_is_answered_at_once_with_what_was_started(entry: Any) -> None:
    invoke(entry.event("Create", {"bert": A}))
    [heard] = entry.listener.heard["/answer"]
    assert heard["Status"] == "SUCCESS"
    assert heard["Data"] == {"Missing": f"bert.{A}", "Build": "project:0"}
    assert heard["PhysicalResourceId"] == "Custom::ModelBuilds:local/digits"
    assert (heard["StackId"], heard["RequestId"]) == (entry.event("Create", {})["StackId"], "request")


def test_the_physical_id_never_changes(entry: Any) -> None:
    for request in ("Create", "Update", "Delete"):
        invoke(entry.event(request, {"bert": A}))
    assert {each["PhysicalResourceId"] for each in entry.listener.heard["/answer"]} == {
        "Custom::ModelBuilds:local/digits"
    }


def test_whatever_fails_cloudformation_is_told(entry: Any) -> None:
    entry.aws.refused["ListObjectsV2"] = "AccessDenied"
    invoke(entry.event("Create", {"bert": A}))
    [heard] = entry.listener.heard["/answer"]
    assert heard["Status"] == "FAILED"
    assert "AccessDenied" in heard["Reason"]
    assert "(log stream stream)" in heard["Reason"]


def test_an_event_of_codebuild_is_no_request_of_cloudformation(entry: Any) -> None:
    entry.request("Create", {"bert": A})
    entry.aws.end("project:0", "SUCCEEDED")
    invoke({"source": "aws.codebuild", "detail": {"build-id": "arn:aws:codebuild:r:a:build/project:0"}})
    assert [each["Status"] for each in entry.signals] == ["SUCCESS"]
    assert "/answer" not in entry.listener.heard


def test_an_event_that_fails_is_lambda_s_to_repeat(entry: Any) -> None:
    entry.aws.refused["BatchGetBuilds"] = "InternalServiceError"
    with pytest.raises(ClientError):
        invoke({"source": "aws.codebuild", "detail": {"build-id": "arn:aws:codebuild:r:a:build/project:0"}})


@pytest.mark.parametrize("conflicts", [1, len(order.CONFLICT_PAUSES)])
def test_a_write_that_another_is_in_the_way_of_is_made_again(conflicts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 answers 409 ConditionalRequestConflict, which boto3 does not try again."""
    pauses: list[float] = []
    monkeypatch.setattr(order.time, "sleep", pauses.append)
    aws = worlds.FakeBuilds(conflicts=conflicts)
    order.put_once(aws.client("s3"), bucket="bucket", key="key", body="first")
    order.put_once(aws.client("s3"), bucket="bucket", key="key", body="second")
    assert aws.objects["bucket", "key"] == b"first"
    assert pauses == list(order.CONFLICT_PAUSES[:conflicts])


def test_a_write_that_others_are_always_in_the_way_of_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order.time, "sleep", lambda _seconds: None)
    aws = worlds.FakeBuilds(conflicts=len(order.CONFLICT_PAUSES) + 1)
    with pytest.raises(ClientError, match="ConditionalRequestConflict"):
        order.put_once(aws.client("s3"), bucket="bucket", key="key", body="first")
