"""The activation function: which records it moves, when it refuses, and what CloudFormation hears."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
worlds: Any = importlib.import_module("tests.lambda.activation_world")
handler: Any = importlib.import_module("lambda.activation.handler")
calling: Any = importlib.import_module("tests.lambda.calling")
release_set: Any = importlib.import_module("lambda.activation.release_set")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
STACK = worlds.STACK

ARCHIVES_TYPE, RECORDS_TYPE, RECORDS, PREFIX = worlds.ARCHIVES_TYPE, worlds.RECORDS_TYPE, worlds.RECORDS, worlds.PREFIX
A, B, C = worlds.A, worlds.B, worlds.C
World = worlds.World


@pytest.fixture
def world() -> Any:
    return World()


def test_create_records_every_model(world: Any) -> None:
    models = {f"m{number}": A for number in range(23)}
    world.create(models)
    assert world.records == models


def test_nothing_is_recorded_while_an_archive_is_missing(world: Any) -> None:
    world.publish({"bert": A})
    properties = world.properties({"bert": A, "gpt": B, "resnet": C})
    with pytest.raises(custom_resource.NotDoneError) as caught:
        world.send("Create", properties)
    assert "2 of 3 archives are not in s3://artifacts" in str(caught.value)
    assert f"{PREFIX}gpt.{B}.tar.gz" in str(caught.value)
    assert world.aws.writes() == []


def test_an_archive_under_another_platform_does_not_count(world: Any) -> None:
    world.publish({"bert": A}, prefix="endpoints/digits/25.04-t4/")
    with pytest.raises(custom_resource.NotDoneError, match="1 of 1"):
        world.send("Create", world.properties({"bert": A}))


def test_update_moves_only_what_changed(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.aws.calls.clear()
    world.update({"bert": A, "resnet": A}, {"bert": A, "resnet": B})
    assert world.records == {"bert": A, "resnet": B}
    assert world.aws.writes() == [f"{RECORDS}resnet"]


def test_a_record_moved_by_hand_stays_when_its_model_did_not_change(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.aws.move_by_hand(f"{RECORDS}bert", C)
    world.update({"bert": A, "resnet": A}, {"bert": A, "resnet": B})
    assert world.records == {"bert": C, "resnet": B}


def test_a_model_that_left_the_set_loses_its_record(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.update({"bert": A, "resnet": A}, {"resnet": A})
    assert world.records == {"resnet": A}


def test_a_model_that_joins_the_set_gets_a_record(world: Any) -> None:
    world.create({"bert": A})
    world.update({"bert": A}, {"bert": A, "resnet": B})
    assert world.records == {"bert": A, "resnet": B}


def test_an_update_that_is_refused_changes_nothing_and_its_rollback_neither(world: Any) -> None:
    old, new = {"bert": A}, {"bert": B}
    world.create(old)
    world.aws.calls.clear()
    with pytest.raises(custom_resource.NotDoneError):
        world.send("Update", world.properties(new), world.properties(old))
    world.undo(new, old)
    assert world.records == old
    assert world.aws.writes() == []


def test_a_new_platform_moves_no_record_but_wants_every_archive_there(world: Any) -> None:
    other = "endpoints/digits/25.04-t4/"
    world.create({"bert": A})
    world.aws.calls.clear()
    old, new = world.properties({"bert": A}), world.properties({"bert": A}, prefix=other)
    with pytest.raises(custom_resource.NotDoneError, match=r"25\.04-t4/bert"):
        world.send("Update", new, old)
    world.publish({"bert": A}, prefix=other)
    world.send("Update", new, old)
    assert world.aws.writes() == []


def test_delete_removes_the_records_of_this_endpoint_alone(world: Any) -> None:
    world.create({f"m{number}": A for number in range(12)})
    world.aws.parameters["/tritonstack/local/digits-large/bert"] = A
    world.aws.parameters["/tritonstack/local/_artifacts/bucket-name"] = "artifacts"
    world.send("Delete", world.properties({}))
    assert set(world.aws.parameters) == {
        "/tritonstack/local/digits-large/bert",
        "/tritonstack/local/_artifacts/bucket-name",
    }


def test_delete_needs_neither_release_set_nor_archives(world: Any) -> None:
    world.create({"bert": A})
    properties = world.properties({"bert": A})
    world.aws.objects.clear()
    world.send("Delete", properties)
    assert world.records == {}


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_the_check_before_the_endpoint_refuses_while_an_archive_is_missing(world: Any, request_type: str) -> None:
    world.publish({"bert": A})
    properties = world.properties({"bert": A, "gpt": B})
    with pytest.raises(custom_resource.NotDoneError, match="1 of 2 archives"):
        world.send(request_type, properties, properties, resource_type=ARCHIVES_TYPE)
    world.publish({"gpt": B})
    world.send(request_type, properties, properties, resource_type=ARCHIVES_TYPE)


def test_the_check_before_the_endpoint_touches_no_record(world: Any) -> None:
    world.create({"bert": A})
    world.publish({"bert": B})
    world.aws.calls.clear()
    new = world.properties({"bert": B})
    world.send("Update", new, new, resource_type=ARCHIVES_TYPE)
    world.aws.objects.clear()
    world.send("Delete", new, resource_type=ARCHIVES_TYPE)
    assert world.records == {"bert": A}
    assert world.aws.writes() == []


@pytest.mark.parametrize("request_type", ["Create", "Delete"])
def test_a_repeated_event_writes_nothing_more(world: Any, request_type: str) -> None:
    world.create({"bert": A})
    properties = world.properties({"bert": A})
    world.send(request_type, properties)
    world.aws.calls.clear()
    world.send(request_type, properties)
    assert world.aws.writes() == []


def test_a_repeated_update_writes_nothing_more(world: Any) -> None:
    old, new = {"bert": A, "gone": A}, {"bert": B}
    world.create(old)
    world.update(old, new)
    puts = len([name for name, _ in world.aws.calls if name == "PutParameter"])
    world.update(old, new)
    assert len([name for name, _ in world.aws.calls if name == "PutParameter"]) == puts
    assert world.records == new


@pytest.mark.parametrize("code", ["NoSuchKey", "AccessDenied"])
def test_where_the_old_set_is_gone_the_records_themselves_are_compared(world: Any, code: str) -> None:
    """A staging bucket gets cleaned; S3 answers AccessDenied for what is gone to those who may not list."""
    world.create({"bert": A, "resnet": A, "gone": A})
    world.publish({"bert": B, "resnet": A})
    old, new = world.properties({"forgotten": A}), world.properties({"bert": B, "resnet": A})
    del world.aws.objects["staging", old["ReleaseSetKey"]]
    if code == "AccessDenied":
        refuse_missing(world)
    world.aws.calls.clear()
    world.send("Update", new, old)
    assert world.records == {"bert": B, "resnet": A}
    assert world.aws.writes() == [f"{RECORDS}bert", f"{RECORDS}gone"]


def refuse_missing(world: Any) -> None:
    """Make S3 answer as it does to those who may read objects but not list the bucket."""
    world.aws.missing_object = "AccessDenied"


def test_another_error_on_the_old_set_is_not_taken_for_a_missing_set(world: Any) -> None:
    world.create({"bert": A})
    old = world.properties({"bert": A})
    world.aws.refused["GetObject"] = "SlowDown"
    with pytest.raises(ClientError, match="SlowDown"):
        release_set.old_release_set(world.clients, release_set.Properties.of(old))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"not json",
        b'{"models": {}}',
        b'{"schema": 2, "models": {}}',
        b'{"schema": 1, "models": {"bert": "latest"}}',
        b'{"schema": 1, "models": {"bert": 7}}',
        b'{"schema": 1, "models": ["bert"]}',
        b'{"schema": 1, "models": {}, "commits": 7}',
    ],
)
def test_what_is_no_release_set_is_refused_with_its_place(world: Any, body: bytes) -> None:
    properties = world.properties({"bert": A})
    world.aws.objects["staging", properties["ReleaseSetKey"]] = body
    with pytest.raises(custom_resource.NotDoneError, match=r"s3://staging/.*is no release set"):
        world.send("Create", properties)


def test_every_missing_property_is_named(world: Any) -> None:
    with pytest.raises(custom_resource.NotDoneError, match="ReleaseSetKey, RecordPath"):
        world.send("Create", {"ReleaseSetBucket": "b", "ArchiveBucket": "a", "ArchivePrefix": "p"})


def test_a_long_list_of_models_is_cut_in_messages() -> None:
    assert custom_resource.name_list(f"m{number}" for number in range(12)).endswith("m9 and 2 more")


DIGESTS = st.sampled_from([A, B, C])
SETS = st.dictionaries(st.sampled_from(["bert", "bert-large", "resnet", "t5"]), DIGESTS)


@given(old=SETS, new=SETS, moved=SETS)
def test_after_any_update_changed_models_are_new_and_the_others_as_they_were(
    old: dict[str, str], new: dict[str, str], moved: dict[str, str]
) -> None:
    world = World()
    world.create(old)
    by_hand = {model: digest for model, digest in moved.items() if model in old}
    for model, digest in by_hand.items():
        world.aws.move_by_hand(RECORDS + model, digest)
    before = world.records
    world.update(old, new)
    assert world.records == {model: before[model] if old.get(model) == new[model] else new[model] for model in new}


class CloudFormation:
    """A server that takes answers on a presigned URL."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Take(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.answers.append(json.loads(body))
                outer.headers.append(dict(self.headers))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Take)
        self.url = f"http://127.0.0.1:{self.server.server_port}/answer?signature=x"


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    running = CloudFormation()
    thread = threading.Thread(target=running.server.serve_forever)
    thread.start()
    yield running
    running.server.shutdown()
    thread.join()
    running.server.server_close()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, world: Any, cloudformation: CloudFormation) -> Any:
    """Calls the function as Lambda does, with the world's clients behind boto3."""
    monkeypatch.setattr(worlds.clients, "connect", world.aws.client)

    def call_handler(request: str, properties: dict[str, str]) -> dict[str, Any]:
        event = {
            "RequestType": request,
            "ResourceType": RECORDS_TYPE,
            "ResponseURL": cloudformation.url,
            "StackId": STACK,
            "RequestId": "request",
            "LogicalResourceId": "Records",
            "ResourceProperties": properties,
            "OldResourceProperties": properties,
        }
        handler.handler(event, calling.context())
        return cloudformation.answers[-1]

    return call_handler


def test_cloudformation_hears_of_success(call: Any, world: Any) -> None:
    world.publish({"bert": A})
    answer = call("Create", world.properties({"bert": A}))
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"] == {"Written": "bert", "Deleted": ""}
    assert {name: answer[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
        "StackId": STACK,
        "RequestId": "request",
        "LogicalResourceId": "Records",
    }


def test_the_answer_has_no_content_type_for_it_would_break_the_signature(
    call: Any, world: Any, cloudformation: CloudFormation
) -> None:
    call("Delete", world.properties({}))
    assert cloudformation.headers[-1].get("Content-Type", "") == ""


def test_cloudformation_hears_the_reason_of_a_failure(call: Any, world: Any) -> None:
    answer = call("Create", world.properties({"bert": A}))
    assert answer["Status"] == "FAILED"
    assert "Build and publish the environment" in answer["Reason"]
    assert "log stream" in answer["Reason"]


def test_cloudformation_hears_of_an_error_of_the_service_too(call: Any, world: Any) -> None:
    world.publish({"bert": A})
    world.aws.refused["PutParameter"] = "AccessDeniedException"
    answer = call("Create", world.properties({"bert": A}))
    assert answer["Status"] == "FAILED"
    assert "AccessDeniedException" in answer["Reason"]


def test_an_answer_stays_below_what_cloudformation_takes(call: Any, world: Any) -> None:
    models = {f"{'long' * 50}-{number}": A for number in range(40)}
    answer = call("Create", world.properties(models))
    assert answer["Status"] == "FAILED"
    assert len(json.dumps(answer)) < 4096


def test_the_physical_id_never_changes_or_cloudformation_would_delete_the_records(call: Any, world: Any) -> None:
    world.publish({"bert": A})
    events = [("Create", {"bert": B}), ("Create", {"bert": A}), ("Update", {"bert": A}), ("Delete", {})]
    ids = {call(request, world.properties(models))["PhysicalResourceId"] for request, models in events}
    assert ids == {f"Custom::ReleaseRecords:{RECORDS}"}


def test_a_deletion_of_what_never_had_its_properties_is_no_failure(call: Any, world: Any) -> None:
    """CloudFormation deletes what it failed to create."""
    answer = call("Delete", {**world.properties({}), "ReleaseSetKey": ""})
    assert answer["Status"] == "SUCCESS"
