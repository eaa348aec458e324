"""The response to an event, whatever happens to the function."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import cases

# `lambda` is a keyword: an import statement cannot name the folder.
worlds: Any = importlib.import_module("tests.lambda.builds_world")
calling: Any = importlib.import_module("tests.lambda.calling")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
MOST = 4096
"""Bytes of an answer (user guide: custom resource response objects)."""


@pytest.fixture
def listener() -> Iterator[Any]:
    with worlds.listening() as running:
        yield running


@pytest.fixture
def responses(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    document: list[dict[str, Any]] = calling.record_responses(monkeypatch)
    return document


def event(request: str = "Create", **more: Any) -> dict[str, Any]:
    return {"RequestType": request, "ResourceType": "Custom::Thing", "ResourceProperties": {}, **calling.IDS, **more}


def respond(act: Any, *, request: str = "Create", seconds: float = 900, **more: Any) -> None:
    custom_resource.respond(event(request, **more), calling.context(seconds=seconds), act, physical_id="thing")


def fail(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return act


def test_a_result_is_sent_once_with_its_attributes(responses: list[dict[str, Any]]) -> None:
    respond(lambda: {"Written": "bert"})
    [response] = responses
    assert response == {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": "thing",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Resource",
        "Data": {"Written": "bert"},
    }


def test_a_reason_that_can_be_fixed_is_reported_as_it_is_and_another_error_by_its_name(
    responses: list[dict[str, Any]],
) -> None:
    respond(fail(custom_resource.NotDoneError("publish it first")))
    respond(fail(KeyError("name")))
    assert [each["Status"] for each in responses] == ["FAILED", "FAILED"]
    assert responses[0]["Reason"] == "publish it first (log stream stream)"
    assert responses[1]["Reason"] == "KeyError: 'name' (log stream stream)"


@pytest.mark.parametrize("letter", ["x", '"', "…", "\n", "\x07", "𝄞"])
@pytest.mark.parametrize("names", [1, 2, 5])
def test_a_response_has_at_most_4096_bytes_whatever_its_letters(
    listener: Any, letter: str, names: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    monkeypatch.setattr(custom_resource, "put_document", lambda _url, document: lengths.append(len(document)))
    ids: dict[str, Any] = {
        "StackId": "arn:aws:cloudformation:us-gov-east-1:123456789012:stack/" + "s" * 128 + "/" + "0" * 36,
        "RequestId": "0" * 36,
        "LogicalResourceId": "L" * 255,
    }
    respond(fail(custom_resource.NotDoneError(letter * 9000)), **ids)
    respond(lambda: {f"Name{number}": letter * 9000 for number in range(names)}, **ids)
    assert all(2000 < length < MOST for length in lengths), lengths
    assert len(lengths) == 2


def test_a_delete_keeps_the_id_that_it_came_with(responses: list[dict[str, Any]]) -> None:
    """After a Create without a response it is an id that CloudFormation generated."""
    respond(dict, request="Delete", PhysicalResourceId="stack-Thing-1ABC")
    assert responses[0]["PhysicalResourceId"] == "stack-Thing-1ABC"


def test_an_id_comes_from_a_property_and_stays_where_there_is_none() -> None:
    made = event(ResourceProperties={"Of": "local/digits"})
    assert custom_resource.identity(made, "Of") == "Custom::Thing:local/digits"
    assert custom_resource.identity(event(PhysicalResourceId="before"), "Of") == "before"
    assert custom_resource.identity(event(), "Of") == "Custom::Thing:unknown"


# What is cut off, and what is lost.


def test_a_run_that_would_be_cut_off_fails_before_even_if_a_client_catches_every_error(
    responses: list[dict[str, Any]],
) -> None:
    def act() -> dict[str, str]:
        for _ in range(3):  # as a client that takes every error for a lost connection
            with contextlib.suppress(Exception):
                threading.Event().wait(60)
        return {}

    began = time.monotonic()
    respond(act, seconds=custom_resource.SPARE_SECONDS + 0.05)
    assert time.monotonic() - began < 30
    [response] = responses
    assert response["Status"] == "FAILED"
    assert "not done within the 0 seconds that this run had" in response["Reason"]


def test_a_response_that_is_not_delivered_is_sent_again_unchanged(
    listener: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            listener.statuses.clear()

    monkeypatch.setattr(custom_resource.time, "sleep", sleep)
    listener.statuses["/answer"] = 503
    respond(dict, ResponseURL=f"{listener.url}/answer")
    [document] = listener.documents["/answer"]
    assert (document["Status"], document["type"], len(pauses)) == ("SUCCESS", "", 2)


def test_a_response_that_cloudformation_no_longer_waits_for_is_no_error(listener: Any) -> None:
    listener.statuses["/answer"] = 403
    respond(dict, ResponseURL=f"{listener.url}/answer")


@cases("name, module")
def test_a_module_that_cannot_be_imported_is_reported_to_cloudformation(
    responses: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    handler: Any = importlib.import_module(f"lambda.{name}.handler")
    monkeypatch.setitem(sys.modules, module, None)
    request = "Delete" if name == "bucket_emptying" else "Create"
    handler.handler(event(request, ResourceProperties={"Bucket": "a", "LogGroupName": "b"}), calling.context())
    [response] = responses
    assert response["Status"] == "FAILED"
    assert module in response["Reason"]


# What is logged.


def test_a_presigned_url_is_in_no_log(
    listener: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(custom_resource, "PAUSES", (0,))
    properties = {
        "WaitHandle": "https://bucket.s3/handle?X-Amz-Signature=5ec2e7",
        "Nested": {"Urls": "http://a/?5ec2e7"},
    }
    url = f"{listener.url}/answer?X-Amz-Signature=5ec2e7"
    respond(dict, ResponseURL=url, ResourceProperties=properties)
    listener.statuses["/answer?X-Amz-Signature=5ec2e7"] = 500
    with pytest.raises(OSError, match="500"):
        respond(fail(KeyError("name")), ResponseURL=url, ResourceProperties=properties)
    printed = capsys.readouterr()
    assert "https://bucket.s3/handle?…" in json.loads(printed.out.splitlines()[0])["ResourceProperties"]["WaitHandle"]
    assert "5ec2e7" not in printed.out + printed.err
