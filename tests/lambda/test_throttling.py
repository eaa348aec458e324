"""Requests that are throttled, or in the way of another change: repeated until they succeed, or until the attempts end.

Every function makes its clients by ``lambda.shared.clients``; what is repeated, and for how long, is decided there.
"""

from __future__ import annotations

import importlib
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError
from botocore.retries.bucket import TokenBucket
from botocore.retries.standard import ExponentialBackoff

# `lambda` is a keyword: an import statement cannot name the folder.
clients: Any = importlib.import_module("lambda.shared.clients")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")

RUN_SECONDS = 900
SCALABLE = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/e/variant/v",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
THROTTLED = [("ThrottlingException", 400), ("TooManyRequestsException", 429)]
SLOWED = [("SlowDown", 503), ("TooManyRequests", 429)]
CONFLICT = ("ConditionalRequestConflict", 409)
TAGS = {"ResourceType": "Parameter", "ResourceId": "/a"}
REQUESTS: dict[tuple[str, str], tuple[dict[str, Any], list[tuple[str, int]]]] = {
    ("application-autoscaling", "deregister_scalable_target"): (
        SCALABLE,
        [*THROTTLED, ("ConcurrentUpdateException", 400)],
    ),
    ("cloudformation", "describe_stacks"): ({"StackName": "s"}, [("Throttling", 400)]),
    ("codebuild", "batch_get_builds"): ({"ids": ["b"]}, THROTTLED),
    ("lambda", "invoke"): ({"FunctionName": "f"}, THROTTLED),
    ("logs", "delete_log_group"): ({"logGroupName": "g"}, [*THROTTLED, ("OperationAbortedException", 400)]),
    ("s3", "list_objects_v2"): ({"Bucket": "b"}, SLOWED),
    ("s3", "put_object"): (
        {"Bucket": "b", "Key": "k", "Body": b"", "IfNoneMatch": "*"},
        [*SLOWED, CONFLICT],
    ),
    ("sagemaker", "describe_endpoint"): ({"EndpointName": "e"}, THROTTLED),
    ("ssm", "add_tags_to_resource"): ({**TAGS, "Tags": [{"Key": "k", "Value": "v"}]}, [("TooManyUpdates", 400)]),
    ("ssm", "put_parameter"): ({"Name": "/a", "Value": "v"}, [*THROTTLED, ("TooManyUpdates", 400)]),
}
"""Service and operation → a request, and what the service answers where it is throttled or another change is under way
(the operations' API references, "Errors")."""


class Raw(io.BytesIO):
    """The body of an HTTP response, as botocore reads it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


@dataclass
class ThrottledAws:
    """AWS behind every client: it throttles the given number of requests and fulfils those that follow; no sleep."""

    code: str
    status: int
    times: float
    slept: float = 0.0
    message: str = "Rate exceeded"

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
        """A maker of clients that talk to it. Every pause is as long as it may be."""
        for name, value in {"DEFAULT_REGION": "us-east-1", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setattr(time, "sleep", self.sleep)
        monkeypatch.setattr(TokenBucket, "acquire", lambda *_, **__: True)  # would wait for true seconds
        monkeypatch.setattr(ExponentialBackoff.__init__, "__defaults__", (20, lambda: 1.0, None, None))
        monkeypatch.setattr(clients, "random", SimpleNamespace(random=lambda: 1.0))

        def connect(service: str) -> Any:
            client = clients.connect(service)
            client.meta.events.register_first("before-send", self._wire(client.meta.service_model.resolved_protocol))
            return client

        return connect

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def _wire(self, protocol: str) -> Callable[..., AWSResponse]:
        def send(request: Any, event_name: str, **_: Any) -> AWSResponse:
            refused, self.times = self.times > 0, self.times - 1
            body = (
                refusal(protocol, self.code, self.message)
                if refused
                else success(protocol, event_name.rpartition(".")[2])
            )
            return AWSResponse(request.url, self.status if refused else 200, HTTPHeaders(), Raw(body))

        return send


def refusal(protocol: str, code: str, message: str) -> bytes:
    """The body of a refusal, as a protocol has it."""
    if protocol in ("rest-xml", "query"):
        error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        return (error if protocol == "rest-xml" else f"<ErrorResponse>{error}</ErrorResponse>").encode()
    return json.dumps({"__type": code, "message": message}).encode()


def success(protocol: str, operation: str) -> bytes:
    """The body of a response without members."""
    if protocol == "query":
        return f"<{operation}Response><{operation}Result/></{operation}Response>".encode()
    return b"" if protocol == "rest-xml" else b"{}"


ROWS = [
    pytest.param(*named, code, status, id=f"{named[1]}-{code}")
    for named, (_, refusals) in REQUESTS.items()
    for code, status in refusals
]


@pytest.mark.parametrize(("service", "operation", "code", "status"), ROWS)
def test_a_throttled_request_is_repeated_until_it_succeeds_and_one_without_end_fails_in_time(
    service: str, operation: str, code: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, _ = REQUESTS[service, operation]
    for_a_time = ThrottledAws(code, status, times=clients.ATTEMPTS - 1)
    getattr(for_a_time.install(monkeypatch)(service), operation)(**request)
    assert for_a_time.times == -1, "refused as often as it can be, and fulfilled"

    for_ever = ThrottledAws(code, status, times=float("inf"))
    with pytest.raises(ClientError, match=code):
        getattr(for_ever.install(monkeypatch)(service), operation)(**request)
    assert 0 < for_ever.slept < RUN_SECONDS - custom_resource.SPARE_SECONDS, "Lambda would have ended the run"


def test_another_refusal_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ThrottledAws("ValidationException", 400, times=1)
    with pytest.raises(ClientError, match="ValidationException"):
        refused.install(monkeypatch)("ssm").put_parameter(Name="/a", Value="v")
    assert refused.slept == 0


KEY = "The specified KMS key does not exist or is not allowed to be used with LogGroup 'arn:aws:logs:r:a:log-group:g'"
DENIED: dict[str, tuple[str, str, dict[str, Any], str, str]] = {
    "SSM": ("ssm", "put_parameter", {"Name": "/a", "Value": "v"}, "AccessDeniedException", "is not authorized"),
    "S3": ("s3", "list_objects_v2", {"Bucket": "b"}, "AccessDenied", "is not authorized to perform: s3:ListBucket"),
    "an object": ("s3", "get_object", {"Bucket": "b", "Key": "k"}, "AccessDenied", "not authorized to: kms:Decrypt"),
    "CloudFormation": ("cloudformation", "describe_stacks", {"StackName": "s"}, "AccessDenied", "is not authorized"),
    "an invocation": (
        "sagemaker-runtime", "invoke_endpoint", {"EndpointName": "e", "Body": b""}, "AccessDeniedException", "",
    ),
    "a log group's key": (
        "logs", "associate_kms_key", {"logGroupName": "g", "kmsKeyId": "k"}, "InvalidParameterException", KEY,
    ),
}  # fmt: skip
"""Service, operation, request, error code and message, where a policy is not in force yet."""


@pytest.mark.parametrize("case", DENIED.values(), ids=DENIED)
def test_a_new_permission_may_take_a_minute_and_a_missing_one_fails_after_it(
    case: tuple[str, str, dict[str, Any], str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, operation, request, code, message = case
    late = ThrottledAws(code, 400, times=10, message=message)
    getattr(late.install(monkeypatch)(service), operation)(**request)
    assert late.times == -1

    never = ThrottledAws(code, 400, times=float("inf"), message=message)
    client = never.install(monkeypatch)(service)
    for _ in range(3):  # a minute for all requests of a client, so that many of them do not use the run up
        with pytest.raises(ClientError, match=code):
            getattr(client, operation)(**request)
    assert never.slept == clients.DENIED_SECONDS


def test_an_object_that_is_missing_where_no_right_lists_it_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    message = 'User: u is not authorized to perform: s3:ListBucket on resource: "arn:aws:s3:::b"'
    missing = ThrottledAws("AccessDenied", 403, times=1, message=message)
    with pytest.raises(ClientError, match="AccessDenied"):
        missing.install(monkeypatch)("s3").get_object(Bucket="b", Key="k")
    assert missing.slept == 0


def test_a_request_for_inference_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verification repeats it, and counts."""
    throttled = ThrottledAws("ThrottlingException", 400, times=1)
    with pytest.raises(ClientError, match="Throttling"):
        throttled.install(monkeypatch)("sagemaker-runtime").invoke_endpoint(EndpointName="e", Body=b"")


def test_no_function_makes_a_client_of_its_own() -> None:
    folder = Path(clients.__file__).parents[1]
    makers = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if "boto3.client" in path.read_text()
    }
    assert makers == {"shared/clients.py"}
