"""The way from a request of boto3 to its response, without a network.

Each request is checked against botocore's model of the service: by botocore itself, and by lengths, values and patterns
as AWS does. Each response is checked against the same model, and reaches the caller as botocore parses one: timestamps
are datetimes, streams are streams.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import boto3
import boto3.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError
from botocore.response import StreamingBody
from botocore.utils import parse_to_aware_datetime
from botocore.validate import ParamValidator

from tritonstack_local.emulator.request_validation import RefusedError, validate

Response = Mapping[str, Any] | Exception | Callable[[dict[str, Any]], Any]
"""A response's members, an error, or a function of the request's members that returns either."""

STATUSES = {
    "AccessDenied": 403,
    "NoSuchBucket": 404,
    "NoSuchKey": 404,
    "NoSuchVersion": 404,
    "BucketNotEmpty": 409,
    "ConditionalRequestConflict": 409,
    "PreconditionFailed": 412,
    "SlowDown": 503,
}
"""HTTP statuses of error codes (S3 API reference, "List of error codes"); 400 of all others."""


class AwsError(Exception):
    """An error response of a service."""

    def __init__(self, code: str, message: str = "refused", *, status: int | None = None, **members: Any) -> None:
        """``members``: further ones of the response."""
        super().__init__(code, message)
        self.code, self.message, self.members = code, message, members
        self.status = STATUSES.get(code, 400) if status is None else status


def client_error(code: str, message: str = "refused", *, status: int = 400, **members: Any) -> ClientError:
    """An error response as botocore raises it."""
    metadata = {"HTTPStatusCode": status}
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata, **members}
    return ClientError(response, "Operation")


SILENCE = ReadTimeoutError(endpoint_url="https://aws.invalid")
DENIED = AwsError("AccessDeniedException", "User is not authorized")
EXPIRED = {"rest-xml": "ExpiredToken", "query": "ExpiredToken"}
"""Codes of expired credentials by protocol; ExpiredTokenException of all others."""


@dataclass
class Responding:
    """Makes boto3 clients, keeps a journal of their requests, and responds.

    Attributes:
        responses: ``service.Operation`` → its response; before the fake's own.
        refused: operation, or service → the error code of its response, or the error, also one of botocore's.
        urls: service → URL that its requests are sent to instead, over HTTP.
        region: of the clients, unless their configuration has another.
        calls: (``service.Operation``, request) in order.
        clients: (service, region) of each client, in order.
        endpoint_urls: those that requests were for.
        responses_left: until the caller's credentials expire; None: they do not.
    """

    responses: Mapping[str, Response] = field(default_factory=dict)
    refused: dict[str, str | Exception] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    region: str = "us-east-1"
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    clients: list[tuple[str, str]] = field(default_factory=list)
    endpoint_urls: set[str] = field(default_factory=set)
    responses_left: int | None = None

    def client(self, service_name: str, *, config: Any = None) -> Any:
        """A boto3 client of a service."""
        region = getattr(config, "region_name", None) or self.region
        client = boto3.client(
            service_name,
            region_name=region,
            endpoint_url=self.urls.get(service_name),
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=config,
        )
        if service_name in self.urls:
            self.clients.append((service_name, region))
            return client
        return self.respond_to(client, service_name)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Respond to the clients of all sessions, which have settings and credentials of their own."""
        make = boto3.session.Session.client

        def client(session: boto3.session.Session, service_name: Any, *args: Any, **kwargs: Any) -> Any:
            return self.respond_to(make(session, service_name, *args, **kwargs), str(service_name))

        monkeypatch.setattr(boto3.session.Session, "client", client)

    def respond_to(self, client: Any, service: str) -> Any:
        """The client, with its requests responded to here."""
        self.clients.append((service, client.meta.region_name))

        def remember(params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
            context["request"] = dict(params)
            context["sent"] = params  # which botocore's own handlers complete after this one
            self.calls.append((f"{service}.{model.name}", dict(params)))

        def respond(model: Any, context: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
            if client._request_signer._credentials is None:
                raise NoCredentialsError
            self.endpoint_urls.add(client.meta.endpoint_url)
            try:
                self._check_credentials(client.meta.service_model.resolved_protocol)
                _check(service, model.name, context["sent"])
                members = self.respond(model.name, context["request"], service=service)
            except AwsError as error:
                return _refusal(error, without_body=model.http.get("method") == "HEAD")
            return _http(200), {**_as_parsed(members, model), "ResponseMetadata": {"HTTPStatusCode": 200}}

        client.meta.events.register("before-parameter-build.*.*", remember)
        client.meta.events.register("before-call.*.*", respond)
        return client

    def _check_credentials(self, protocol: str) -> None:
        if self.responses_left is None:
            return
        self.responses_left -= 1
        if self.responses_left < 0:
            raise AwsError(EXPIRED.get(protocol, "ExpiredTokenException"), "The security token is expired")

    def respond(self, operation: str, request: dict[str, Any], *, service: str) -> Mapping[str, Any]:
        """The members of a response. Raises :class:`AwsError`; subclasses put theirs before it."""
        refused = self.refused.get(operation) or self.refused.get(service)
        if refused is not None:
            raise AwsError(refused) if isinstance(refused, str) else refused
        response: Any = self.responses.get(f"{service}.{operation}")
        if response is None:
            own = getattr(self, f"_{operation}", None)
            assert own is not None, f"the test has no response for {service}.{operation}"
            response = own(**request)
        elif callable(response):
            response = response(request)
        if isinstance(response, Exception):
            raise response
        return dict(response or {})

    @property
    def services(self) -> list[str]:
        """The services that clients were made of, in order."""
        return [service for service, _ in self.clients]

    @property
    def operations(self) -> list[str]:
        """The operations that were requested, in order."""
        return [name.partition(".")[2] for name, _ in self.calls]

    def requests(self, operation: str) -> list[dict[str, Any]]:
        """The members of every request for an operation, in order."""
        return [request for name, request in self.calls if name.partition(".")[2] == operation]


def _check(service: str, operation: str, request: dict[str, Any]) -> None:
    """A request that AWS refuses whatever the account holds is an error of what sent it."""
    try:
        validate(service, operation, _as_json(request))
    except RefusedError as error:
        raise AssertionError(str(error)) from error


def _as_json(value: Any) -> Any:
    """A request as JSON has it; the content of a blob has no constraints."""
    if isinstance(value, Mapping):
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    if isinstance(value, dt.datetime):
        return value.timestamp()
    return "" if isinstance(value, bytes | bytearray) or hasattr(value, "read") else value


def _http(status: int) -> AWSResponse:
    return AWSResponse("https://aws.invalid", status, HTTPHeaders(), None)


def _refusal(error: AwsError, *, without_body: bool) -> tuple[AWSResponse, dict[str, Any]]:
    code, message = error.code, error.message
    if without_body and not code.isdigit():  # botocore has the status alone then
        code, message = str(error.status), HTTPStatus(error.status).phrase
    members = {"Error": {"Code": code, "Message": message}, **error.members}
    return _http(error.status), {**members, "ResponseMetadata": {"HTTPStatusCode": error.status}}


def _as_parsed(members: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """A response as botocore parses it. Members that the operation's model does not have are an error of the fake."""
    if model.output_shape is None:
        assert not members, f"{model.name} responds with nothing"
        return {}
    events, streamed = None, ""
    if model.has_event_stream_output:
        shapes = model.output_shape.members.items()
        [streamed] = [name for name, shape in shapes if shape.serialization.get("eventstream")]
        events = EventList(members[streamed])
        members = {name: value for name, value in members.items() if name != streamed}
    report = ParamValidator().validate(members, model.output_shape).generate_report()
    wrong = [line for line in report.splitlines() if not line.startswith("Missing")]
    assert not wrong, f"{model.name} never responds so: {wrong}"
    parsed: dict[str, Any] = _parsed(members, model.output_shape)
    stream = model.get_streaming_output()
    for name, shape in model.output_shape.members.items():
        if stream is not None and shape is stream and isinstance(parsed.get(name), bytes):
            parsed[name] = StreamingBody(io.BytesIO(parsed[name]), len(parsed[name]))
    return parsed if events is None else {**parsed, streamed: events}


class EventList(list[Any]):
    """The events of a stream; an exception among them is raised at its turn."""

    def __iter__(self) -> Iterator[Any]:
        """Each event."""
        for event in super().__iter__():
            if isinstance(event, Exception):
                raise event
            yield event

    def close(self) -> None:
        """Nothing is open."""


def _parsed(value: Any, shape: Any) -> Any:
    if shape.type_name == "structure":
        return {name: _parsed(each, shape.members[name]) for name, each in value.items()}
    if shape.type_name == "list":
        return [_parsed(each, shape.member) for each in value]
    if shape.type_name == "map":
        return {name: _parsed(each, shape.value) for name, each in value.items()}
    return parse_to_aware_datetime(value) if shape.type_name == "timestamp" else value


def pages(rows: str, *parts: list[Any], following: str = "NextToken") -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A response in pages: ``rows`` is the member that holds a part, ``following`` the name of the token."""

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        number = int(request.get(following) or 0)
        more = {following: str(number + 1)} if number + 1 < len(parts) else {}
        return {rows: parts[number], **more}

    return respond
