"""Custom resources and wait conditions: their limits on a clock that the tests move, and cancelled updates."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from typing import Any

import pytest

from tests.tritonstack_local.emulator.running import Emulator, make_function, parameter, wait_until

HOUR = 3600.0
# Records every request; responds unless the properties forbid it; signals a wait condition's handle if it gets one.
FUNCTION = """
    import json
    import time
    import urllib.request

    import boto3


    def put(url, body):
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": ""}, method="PUT")
        urllib.request.urlopen(request).read()


    def handler(event, context):
        properties = event["ResourceProperties"]
        noted = {name: event.get(name) for name in ("RequestType", "PhysicalResourceId", "ResourceProperties")}
        name = f"/requests/{event['StackId'].split('/')[1]}/{time.time_ns()}"
        boto3.client("ssm").put_parameter(Name=name, Value=json.dumps(noted), Type="String")
        if properties.get("Crashing") == event["RequestType"]:
            if boto3.client("ssm").get_parameters_by_path(Path=name.rpartition("/")[0])["Parameters"][1:] == []:
                raise RuntimeError("the first time")
        if properties.get("Signal"):
            signal = {"Status": "SUCCESS", "UniqueId": "1", "Reason": "built", "Data": "from a function"}
            put(properties["Handle"], signal)
        if properties.get("Silent") == event["RequestType"]:
            return
        answer = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
        failing = properties.get("Failing") == event["RequestType"]
        answer["Status"] = "FAILED" if failing else "SUCCESS"
        answer["Reason"] = "no such thing"
        answer["PhysicalResourceId"] = event.get("PhysicalResourceId", "of-the-function")
        if event["RequestType"] == "Create":
            answer["Data"] = {"Text": "x" * int(properties.get("Length", 0))}
        put(event["ResponseURL"], answer)
"""


@pytest.fixture(scope="module")
def function(aws: Emulator) -> str:
    """The ARN of a function that backs custom resources."""
    return make_function(aws, "custom-resources", FUNCTION)


def _custom(function: str, **properties: Any) -> dict[str, Any]:
    return {"Type": "Custom::Thing", "Properties": {"ServiceToken": function, **properties}}


def _waiting(*, timeout: float = 43200, suffix: str = "", **properties: Any) -> dict[str, Any]:
    """A wait condition and its handle; both carry ``suffix``."""
    handle = "Handle" + suffix
    return {
        handle: {"Type": "AWS::CloudFormation::WaitConditionHandle"},
        "Wait" + suffix: {
            "Type": "AWS::CloudFormation::WaitCondition",
            "Properties": {"Handle": {"Ref": handle}, "Timeout": str(timeout), **properties},
        },
    }


def _requests(emulator: Emulator, stack: str) -> list[dict[str, Any]]:
    """What the function was called with, in order."""
    found = emulator.client("ssm").get_parameters_by_path(Path=f"/requests/{stack}")["Parameters"]
    return [json.loads(one["Value"]) for one in sorted(found, key=lambda one: one["Name"])]


def _begun(emulator: Emulator, stack: str, logical_id: str) -> str:
    """Wait until a resource is in progress; its newest event's status."""

    def newest() -> str:
        events = emulator.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        return next((str(e["ResourceStatus"]) for e in events if e["LogicalResourceId"] == logical_id), "")

    return str(wait_until(newest, lambda status: status.endswith("IN_PROGRESS")))


def _wait_for_requests(emulator: Emulator, stack: str, count: int) -> None:
    wait_until(lambda: _requests(emulator, stack), lambda requests: len(requests) == count)


def _status(emulator: Emulator, stack: str) -> str:
    return str(emulator.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])


def _events(emulator: Emulator, stack: str) -> list[tuple[str, str, str]]:
    """Logical id, status, reason; oldest first."""
    events = emulator.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return [(e["LogicalResourceId"], e["ResourceStatus"], e.get("ResourceStatusReason", "")) for e in reversed(events)]


def _signal(url: str, status: str, *, reason: str = "", content_type: str = "") -> int:
    """PUT a signal; the HTTP status."""
    body = json.dumps({"Status": status, "UniqueId": "build", "Reason": reason, "Data": ""}).encode()
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("PUT", parts.path, body, {"Content-Type": content_type})
        return connection.getresponse().status
    finally:
        connection.close()


def test_custom_resource_without_a_response_fails_after_its_service_timeout(
    aws: Emulator, function: str, name: str
) -> None:
    aws.create_stack(name, {"Thing": _custom(function, Silent="Create", ServiceTimeout=120)})
    _wait_for_requests(aws, name, 1)
    aws.advance(60)
    assert _status(aws, name) == "CREATE_IN_PROGRESS"
    aws.advance(60)
    assert aws.settled(name)["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "CloudFormation did not receive a response from your Custom Resource." in aws.failures(name)


def test_rollback_deletes_what_a_failed_creation_may_have_left(aws: Emulator, function: str, name: str) -> None:
    assert aws.deploy(name, {"Thing": _custom(function, Failing="Create")}) == "ROLLBACK_COMPLETE"
    assert "Received response status [FAILED] from custom resource. Message returned: no such thing (RequestId: " in (
        aws.failures(name)
    )
    requests = _requests(aws, name)
    assert [request["RequestType"] for request in requests] == ["Create", "Delete"]
    assert requests[1]["PhysicalResourceId"] == "of-the-function"


def test_an_update_with_another_service_token_is_refused_as_cloudformation_refuses_it(
    aws: Emulator, function: str, name: str
) -> None:
    other = make_function(aws, name, FUNCTION)
    assert aws.deploy(name, {"Thing": _custom(function, Value="old")}) == "CREATE_COMPLETE"
    aws.update_stack(name, {"Thing": _custom(other, Value="new")})
    assert aws.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert ("Thing", "UPDATE_FAILED", "Modifying service token is not allowed.") in _events(aws, name)
    assert "new" not in [one["ResourceProperties"]["Value"] for one in _requests(aws, name)]
    aws.update_stack(name, {"Another": _custom(other, Value="new")})
    assert aws.settled(name)["StackStatus"] == "UPDATE_COMPLETE", "another logical id is another resource"


def test_function_that_crashes_is_called_again_by_lambda(aws: Emulator, function: str, name: str) -> None:
    aws.create_stack(name, {"Thing": _custom(function, Crashing="Create")})
    _wait_for_requests(aws, name, 1)

    def later() -> str:
        aws.advance(60)  # it waits a minute from when the crash is detected
        return _status(aws, name)

    wait_until(later, lambda status: status == "CREATE_COMPLETE")
    assert [request["RequestType"] for request in _requests(aws, name)] == ["Create", "Create"]


def test_build_of_two_hours_is_outlived_by_a_wait_condition_and_not_by_a_custom_resource(
    aws: Emulator, function: str, name: str
) -> None:
    aws.create_stack(name, _waiting())
    _begun(aws, name, "Wait")
    aws.create_stack(name + "-custom", {"Thing": _custom(function, Silent="Create")})
    _wait_for_requests(aws, name + "-custom", 1)
    aws.advance(2 * HOUR)
    assert aws.settled(name + "-custom")["StackStatus"] == "ROLLBACK_COMPLETE"
    assert _status(aws, name) == "CREATE_IN_PROGRESS"
    assert _signal(aws.physical(name, "Handle"), "SUCCESS") == 200
    assert aws.settled(name)["StackStatus"] == "CREATE_COMPLETE"


def test_wait_condition_times_out_by_the_clock_after_twelve_hours_at_most(aws: Emulator, name: str) -> None:
    assert aws.deploy(f"{name}-long", _waiting(timeout=43201)) == "ROLLBACK_COMPLETE"
    assert "43200" in aws.failures(f"{name}-long")
    aws.create_stack(name, _waiting(timeout=43200))
    _begun(aws, name, "Wait")
    aws.advance(43000)
    assert _status(aws, name) == "CREATE_IN_PROGRESS"
    aws.advance(200)
    assert aws.settled(name)["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "WaitCondition timed out. Received 0 conditions when expecting 1" in aws.failures(name)


def test_failure_signal_ends_the_stack_with_its_reason(aws: Emulator, name: str) -> None:
    aws.create_stack(name, _waiting())
    _begun(aws, name, "Wait")
    reason = "FAILED in phase engine of digits: no kernel image"
    assert _signal(aws.physical(name, "Handle"), "FAILURE", reason=reason) == 200
    assert aws.settled(name)["StackStatus"] == "ROLLBACK_COMPLETE"
    assert f"WaitCondition received failed message: '{reason}' for uniqueId: build" in aws.failures(name)


def test_signal_of_a_function_and_one_without_a_content_type_end_the_wait(
    aws: Emulator, function: str, name: str
) -> None:
    aws.create_stack(name, _waiting())
    _begun(aws, name, "Wait")
    url = aws.physical(name, "Handle")
    assert _signal(url, "SUCCESS", content_type="application/json") == 403, "as the presigned URL refuses it"
    assert _signal(url, "SUCCESS") == 200
    assert aws.settled(name)["StackStatus"] == "CREATE_COMPLETE"
    resources = {"Thing": _custom(function, Signal="yes", Handle={"Ref": "Handle"}), **_waiting()}
    outputs = {"Data": {"Value": {"Fn::GetAtt": ["Wait", "Data"]}}}
    assert aws.deploy(f"{name}-2", resources, outputs=outputs) == "CREATE_COMPLETE"
    assert json.loads(aws.settled(f"{name}-2")["Outputs"][0]["OutputValue"]) == {"1": "from a function"}


def test_failed_update_takes_its_wait_away_and_a_retry_waits_on_a_new_url(aws: Emulator, name: str) -> None:
    before = {"Parameter": parameter()}
    assert aws.deploy(name, before) == "CREATE_COMPLETE"
    urls = []
    for status, ending in (("FAILURE", "UPDATE_ROLLBACK_COMPLETE"), ("SUCCESS", "UPDATE_COMPLETE")):
        aws.update_stack(name, {**before, **_waiting(suffix="Of1234")})
        _begun(aws, name, "WaitOf1234")
        urls.append(aws.physical(name, "HandleOf1234"))
        assert _signal(urls[-1], status) == 200
        assert aws.settled(name)["StackStatus"] == ending
    assert urls[0] != urls[1]
    assert _signal(urls[0], "SUCCESS") == 404


def test_cancelled_update_ends_the_wait_and_rolls_back(aws: Emulator, name: str) -> None:
    assert aws.deploy(name, {"Parameter": parameter()}) == "CREATE_COMPLETE"
    aws.update_stack(name, {"Parameter": parameter(), **_waiting()})
    _begun(aws, name, "Wait")
    aws.client("cloudformation").cancel_update_stack(StackName=name, ClientRequestToken="cancelling")
    assert aws.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    events = _events(aws, name)
    assert ("Wait", "CREATE_FAILED", "Resource creation cancelled") in events
    assert (name, "UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated") in events
    assert events[-1][:2] == (name, "UPDATE_ROLLBACK_COMPLETE")
    newest = aws.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"][0]
    assert newest["ClientRequestToken"] == "cancelling"


def test_cancelled_update_sends_a_waiting_custom_resource_back(aws: Emulator, function: str, name: str) -> None:
    assert aws.deploy(name, {"Thing": _custom(function, Value="old")}) == "CREATE_COMPLETE"
    aws.update_stack(name, {"Thing": _custom(function, Value="new", Silent="Update")})
    _wait_for_requests(aws, name, 2)
    aws.client("cloudformation").cancel_update_stack(StackName=name)
    assert aws.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert ("Thing", "UPDATE_FAILED", "Resource update cancelled") in _events(aws, name)
    values = [(one["RequestType"], one["ResourceProperties"]["Value"]) for one in _requests(aws, name)]
    assert values == [("Create", "old"), ("Update", "new"), ("Update", "old")]


def test_events_of_a_custom_resource_have_the_properties_of_its_operation(
    aws: Emulator, function: str, name: str
) -> None:
    """The newest event of the resource, when its function is called, is the beginning of what it is called for."""
    assert aws.deploy(name, {"Thing": _custom(function, Value="old & <1>")}) == "CREATE_COMPLETE"
    failing = {"Thing": _custom(function, Value="new", Failing="Update")}
    assert aws.deploy(name, failing) == "UPDATE_ROLLBACK_COMPLETE"
    stack = aws.settled(name)["StackId"]
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    events = aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    begun = [
        (each["ResourceStatus"], json.loads(each["ResourceProperties"])["Value"])
        for each in reversed(events)
        if each["LogicalResourceId"] == "Thing" and each["ResourceStatus"].endswith("_IN_PROGRESS")
    ]
    old = "old & <1>"
    assert begun == [
        ("CREATE_IN_PROGRESS", old),
        ("UPDATE_IN_PROGRESS", "new"),
        ("UPDATE_IN_PROGRESS", old),
        ("DELETE_IN_PROGRESS", old),
    ]


def test_stack_that_waits_in_its_making_can_be_deleted(aws: Emulator, name: str) -> None:
    waiting = _waiting()
    waiting["Wait"]["DependsOn"] = "Parameter"
    aws.create_stack(name, {"Parameter": parameter(Name="/" + name), **waiting})
    _begun(aws, name, "Wait")
    url = aws.physical(name, "Handle")
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    assert aws.client("ssm").get_parameters(Names=["/" + name])["Parameters"] == []
    assert _signal(url, "SUCCESS") == 404
