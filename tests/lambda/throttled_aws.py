"""AWS as it comes over the wire, for the clients that the functions make themselves: retries, pauses, error bodies.

Every request of a client of ``lambda.shared.clients`` is answered here: with a refusal as often as a test asked for it,
then with what the test's table has for the operation. Nobody sleeps: the pauses add up on a clock that also ends a run.
"""

from __future__ import annotations

import importlib
import io
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.retries.bucket import TokenBucket
from botocore.retries.standard import ExponentialBackoff

work: Any = importlib.import_module("lambda.verification.work")  # `lambda` is a word of the language
steps: Any = importlib.import_module("lambda.load_test.steps")
clients: Any = importlib.import_module("lambda.shared.clients")
EPOCH = 1e9
"""Seconds since the epoch at the beginning of the clock."""
Answer = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


class Refused(Exception):  # noqa: N818 - an answer
    """What an operation's answer raises to be a refusal for good: code and HTTP status."""


class Raw(io.BytesIO):
    """The body of an HTTP answer, as botocore reads it."""

    def stream(self) -> Iterator[bytes]:
        """All of it."""
        yield self.read()


@dataclass
class Throttle:
    """Refusals of one operation that are still to come."""

    operation: str
    code: str
    status: int
    times: float


@dataclass
class ThrottledAws:
    """Answers by operation, and a clock.

    Attributes:
        answers: operation → its answer, or a function of the request that makes it.
        throttle: what is refused.
        operations: what was asked, in order, once for each call.
        now: seconds since the beginning of the run.
        run_seconds: when the run that is under way is out of time, on this clock.
    """

    answers: dict[str, Answer]
    throttle: Throttle | None = None
    operations: list[str] = field(default_factory=list)
    now: float = 0.0
    run_seconds: float = float("inf")

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand behind every client that is made from now on, and in the place of time."""
        make = boto3.client

        def client(service: str, **settings: Any) -> Any:
            made = make(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b", **settings)
            made.meta.events.register_first("before-send", self._wire(made.meta.service_model.resolved_protocol))
            made.meta.events.register("before-parameter-build", self._remember)
            made.meta.events.register("after-call", self._fill)
            return made

        monkeypatch.setattr(boto3, "client", client)
        monkeypatch.setattr(time, "sleep", self.sleep)
        monkeypatch.setattr(TokenBucket, "acquire", lambda *_, **__: True)  # would wait for true seconds
        longest = (20, lambda: 1.0, None, None)  # no pause is shorter than the longest that it may be
        monkeypatch.setattr(ExponentialBackoff.__init__, "__defaults__", longest)
        monkeypatch.setattr(clients, "random", SimpleNamespace(random=lambda: 1.0))
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(work, "time", SimpleNamespace(time=lambda: EPOCH + self.now, sleep=self.sleep))
        for function in (steps.run, steps.clean_up):
            monkeypatch.setattr(function, "__kwdefaults__", {"wait": self.sleep})

    def sleep(self, seconds: float) -> None:
        """Let time pass; a run whose time is over hears of it as it does from the system's clock."""
        self.now += seconds
        if self.now > self.run_seconds:
            signal.raise_signal(signal.SIGALRM)

    def _remember(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        context["given"] = dict(params)
        self.operations.append(model.name)

    def _wire(self, protocol: str) -> Callable[..., AWSResponse]:
        def send(request: Any, event_name: str, **_: Any) -> AWSResponse:
            operation = event_name.rpartition(".")[2]
            if self.throttle is not None and self.throttle.operation == operation and self.throttle.times > 0:
                self.throttle.times -= 1
                status, body = self.throttle.status, refusal(protocol, self.throttle.code)
            else:
                status, body = 200, success(protocol, operation)
            return AWSResponse(request.url, status, HTTPHeaders(), Raw(body))

        return send

    def _fill(self, http_response: Any, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if http_response.status_code >= 300:
            return
        answer = self.answers[model.name]
        try:
            parsed.update(answer(context["given"]) if callable(answer) else answer)
        except Refused as refused:
            code, http_response.status_code = refused.args
            parsed["Error"] = {"Code": code, "Message": "refused"}


def refusal(protocol: str, code: str) -> bytes:
    """The body of a refusal, as a protocol has it."""
    message = "Rate exceeded"
    if protocol == "rest-xml":
        return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    if protocol == "query":
        return f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>".encode()
    return json.dumps({"__type": code, "message": message}).encode()


def success(protocol: str, operation: str) -> bytes:
    """The body of an answer without members: they are filled in where it has been read."""
    if protocol == "query":
        return f"<{operation}Response><{operation}Result/></{operation}Response>".encode()
    return b"" if protocol == "rest-xml" else b"{}"
