"""The one port: routes of our own, InvokeEndpoint handed to the runtime, everything else authorised and to MiniStack.

Nothing of a page in a browser passes (``tritonstack.loopback.guard``).

Tests may set faults: requests that AWS refuses or delays, updates that are rolled back without a reason, no instances.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import urllib.parse
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from tritonstack.loopback.guard import refusal
from tritonstack_local.emulator.clock import MOST_SECONDS, clock
from tritonstack_local.emulator.iam import gate
from tritonstack_local.emulator.iam.authorization import usage
from tritonstack_local.emulator.iam.one_reading import chunks_joined, parameters_of_routing
from tritonstack_local.emulator.iam.request import expanded
from tritonstack_local.emulator.ministack_adapter import application, s3
from tritonstack_local.emulator.ministack_adapter.core import run_reentrant
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.components import Components
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.settings import EmulatorSettings
from tritonstack_local.keys import OWN_ROUTES, TOKEN_HEADER

_CODES = {403: "AccessDenied", 409: "ConditionalRequestConflict", 500: "InternalError", 503: "SlowDown"}
_OPERATION_CODES = {403: "AccessDeniedException", 500: "InternalFailure", 503: "ServiceUnavailable"}
_SOURCE = "a fault that was asked for at /_tritonstack/faults"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of requests, of an endpoint's update, or of new instances.

    Exactly one of ``path``, ``operation``, ``endpoint`` and ``instance_type`` selects them.
    """

    method: str = ""  # of the request (``PUT``)
    path: str = ""  # a part of its path (``/endpoints/``); the response is S3's error
    # of a JSON service (``PutParameter``), called by a program or, of our own services, by CloudFormation
    operation: str = ""
    # its next update ends InService with the old config and without a FailureReason, once the new fleet is up:
    # SageMaker has rolled it back silently
    endpoint: str = ""
    instance_type: str = ""  # endpoints get no further instances of it (``ml.g5.xlarge``), ``short_of`` is the reason
    # ``limit``: the account's quota is used up, and the request is refused. ``capacity``: AWS has no instances, which
    # shows after the request
    short_of: str = ""
    # the response, one of 403, 409 (of S3), 500, 503, or with a ``code`` 400 and any 409; None lets the request through
    # after the delay
    status: int | None = None
    # the error's code, where another than the status's own is meant: ``BucketNotEmpty``; ``ExpiredToken`` (S3) or
    # ``ExpiredTokenException`` (others) where the caller's credentials have ended
    code: str = ""
    times: int  # how many further requests it applies to
    delay_seconds: float = 0.0  # how long the response takes

    def answer(self) -> tuple[int, bytes] | None:
        """The error response of S3's REST interface or of a JSON service; None where the request goes through."""
        if self.status is None:
            return None
        message = f"{_SOURCE}: {self.method} {self.path}{self.operation}"
        if self.operation:
            code = self.code or _OPERATION_CODES[self.status]
            return self.status, json.dumps({"__type": code, "message": message}).encode()
        code = self.code or _CODES[self.status]
        return self.status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


class Faults:
    """Faults that are still to come. Services read them in threads, the gateway on its loop."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = Lock()

    def add(self, body: bytes) -> None:
        """Add a fault from its fields as JSON; raises ValueError for an invalid one."""
        try:
            fields: Mapping[str, Any] = json.loads(body)
            fault = Fault(**fields)
        except TypeError as error:
            raise ValueError(str(error)) from error
        codes = _OPERATION_CODES if fault.operation else _CODES
        if fault.status is not None and fault.status not in codes and not fault.code:
            raise ValueError(f"status {fault.status} without a code: null or one of {', '.join(map(str, codes))}")
        if len([each for each in (fault.path, fault.operation, fault.endpoint, fault.instance_type) if each]) != 1:
            raise ValueError("one of path, operation, endpoint and instance_type")
        if fault.times < 1:
            raise ValueError("times from 1")
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Remove the faults that were not used."""
        with self._lock:
            self._waiting.clear()

    def shown(self) -> list[dict[str, Any]]:
        """The faults that were not used yet."""
        with self._lock:
            return [dict(vars(fault)) for fault in self._waiting]

    async def next_fault(self, method: str, path: str, operation: str = "") -> tuple[int, bytes] | None:
        """The response of the next fault for this request, after its delay; None lets the request through."""
        fault = self._next(
            lambda one: (
                (one.path != "" and one.method == method and one.path in path)
                or (one.operation != "" and one.operation == operation)
            )
        )
        if fault is None:
            return None
        await asyncio.sleep(fault.delay_seconds)
        return fault.answer()

    def refuse(self, operation: str) -> None:
        """Raise RefusedError where a call of this operation inside the local AWS is to fail."""
        fault = self._next(lambda one: one.operation == operation and one.status is not None)
        if fault is not None and fault.status is not None:
            message = f"{_SOURCE}: {operation}"
            code = fault.code or _OPERATION_CODES[fault.status]
            raise RefusedError(code, message, source="tritonstack_local.emulator.gateway")

    def silently_back(self, endpoint: str) -> bool:
        """Whether an update of this endpoint is to roll back silently."""
        return self._next(lambda one: one.endpoint == endpoint) is not None

    def short_of(self, instance_type: str, what: str) -> bool:
        """Whether new instances of a type are to be refused for lack of ``what``."""
        return self._next(lambda one: (one.instance_type, one.short_of) == (instance_type, what)) is not None

    def _next(self, matches: Callable[[Fault], bool]) -> Fault | None:
        """The first waiting fault that matches; counts it as used once."""
        with self._lock:
            for place, fault in enumerate(self._waiting):
                if matches(fault):
                    left = replace(fault, times=fault.times - 1)
                    self._waiting[place : place + 1] = [left] if left.times else []
                    return fault
        return None


# So a client can invoke with ``AWS_ENDPOINT_URL`` alone; the direct connection is the runtime's own
# URL.
STREAM = "invocations-response-stream"
INVOCATION = re.compile(rf"^/endpoints/[^/]+/(invocations|{STREAM}|async-invocations)$")
"""The paths of SageMaker Runtime's operations."""

_SECONDS = 90.0  # SageMaker gives a container 60 s; the runtime responds itself when those are over
_STREAM_SECONDS = 510.0  # of a stream, 8 minutes
_STREAM_PART = 1 << 16
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length"})
GatewayResponse = tuple[int, list[tuple[str, str]], bytes]
Said = tuple[int, dict[str, Any]]


def forward(url: str | None, path: str, headers: list[tuple[str, str]], body: bytes) -> GatewayResponse:
    """The runtime's response: status, headers, body. Without a runtime the response of a SageMaker that is down."""
    if url is None:
        return _unavailable("the local AWS was started without a runtime (TRITONSTACK_RUNTIME_URL)")
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=_SECONDS)
    try:
        connection.request("POST", path, body, dict(_end_to_end(headers)))
        response = connection.getresponse()
        return response.status, _end_to_end(response.getheaders()), response.read()
    except (OSError, http.client.HTTPException) as error:
        return _unavailable(f"the local runtime does not respond ({error}); see `tritonstack local status`")
    finally:
        connection.close()


async def pass_stream(
    url: str | None, path: str, headers: list[tuple[str, str]], body: bytes, send: Send
) -> GatewayResponse | None:
    """Send the runtime's streamed response as it comes, and return None; else the response without a runtime."""
    if url is None:
        return forward(None, path, headers, body)
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=_STREAM_SECONDS)

    def begin() -> http.client.HTTPResponse:
        connection.request("POST", path, body, dict(_end_to_end(headers)))
        return connection.getresponse()

    try:
        try:
            response = await asyncio.to_thread(begin)
        except (OSError, http.client.HTTPException) as error:
            return _unavailable(f"the local runtime does not respond ({error}); see `tritonstack local status`")
        given = [(name.lower().encode(), value.encode("latin-1")) for name, value in _end_to_end(response.getheaders())]
        await send({"type": "http.response.start", "status": response.status, "headers": given})
        while part := await asyncio.to_thread(response.read1, _STREAM_PART):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return None
    finally:
        connection.close()


def _end_to_end(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


def _unavailable(reason: str) -> GatewayResponse:
    """SageMaker Runtime's ``ServiceUnavailable`` (503)."""
    body = json.dumps({"Message": f"The service is unavailable: {reason}."}).encode()
    return 503, [("Content-Type", "application/json"), ("x-amzn-ErrorType", "ServiceUnavailable")], body


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_MINISTACK = re.compile(r"/_(ministack|localstack)/")
_ANSWERS = re.compile(r"/_ministack/cfn-(response|signal)/[0-9a-f-]{36}")
"""URLs that a custom resource's function or a wait condition's handle was given, each with a random id of its own: of
MiniStack's own routes the only open ones, for the others change its state unsigned."""
INSTANCE = uuid.uuid4().hex
"""Differs at each start of the emulator: what an earlier one issued, such as sessions of roles, is void."""
_REPORT = re.compile(r"^/_tritonstack/(endpoints|components)/([^/]+)/report$")
_LARGEST_ANSWER = 1024 * 1024  # CloudFormation takes 4 KB (user guide, "Custom resource response objects")
_LARGEST_BODY = 32 * 1024 * 1024  # SageMaker's own limit is 25 MiB and checked by the runtime


def virtual_host(host: str, *, method: str, path: str) -> bool:
    """Whether a Host is a bucket's name below localhost (S3 user guide, "Virtual hosting of general purpose buckets").

    The bucket exists, or the request creates it. Browsers resolve such names to this machine alone (RFC 6761).
    """
    name = host.lower().rpartition(":")[0] if re.search(r":\d+$", host) else host.lower()
    bucket = name.removesuffix(".localhost").removesuffix(".s3") if name.endswith(".localhost") else ""
    return bool(bucket) and (bucket in s3.buckets() or (method == "PUT" and path == "/"))


class Gateway:
    """The ASGI application."""

    def __init__(
        self, settings: EmulatorSettings, endpoints: Endpoints, components: Components, faults: Faults
    ) -> None:
        """``endpoints`` and ``components`` take the runtime's reports; ``faults`` are those that tests set."""
        self._runtime_url = settings.runtime_url
        self._keys = settings.keys
        application.decompress_request_body.replace(expanded)
        application.decode_aws_chunked_body.replace(chunks_joined)
        application.routing_params.replace(parameters_of_routing)
        self._endpoints = endpoints
        self._components = components
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or the server's life cycle."""
        answer: GatewayResponse | None = None
        if scope["type"] == "websocket":  # no service here has any, and a browser sends no preflight for one
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            receive, send = _body_before_answer(receive, _without_cors(send))
            method, path = scope["method"], scope["path"]
            reason = _foreign(scope)
            if reason is not None:
                answer = _json(403, {"message": f"The request is refused: {reason}."})
            elif path.startswith(OWN_ROUTES):
                answer = await self._own(scope, receive)
            elif _MINISTACK.match(path):
                receive, answer = await _of_ministack(scope, receive)
            elif method == "POST" and (invocation := INVOCATION.match(path)):
                answer = await self._invoke(scope, receive, send if invocation[1] == STREAM else None)
                if answer is None:
                    return
            else:
                target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")  # AmazonSSM.PutParameter
                fault = await self._faults.next_fault(method, path, target.rpartition(".")[2])
                if fault is None:
                    receive, answer = await gate.authorised(scope, receive)
                else:
                    await _body(receive)
                    kind = "application/xml" if fault[1].startswith(b"<") else "application/x-amz-json-1.1"
                    answer = fault[0], [("Content-Type", kind)], fault[1]
        if answer is None:
            await application.serve(scope, receive, send)
        else:
            await _answer(send, answer)

    async def _own(self, scope: Scope, receive: Receive) -> GatewayResponse:
        fault = self._keys.token_fault(_header(scope, TOKEN_HEADER))
        if fault is not None:
            return _json(403, {"message": f"The request is refused: {fault}."})
        method, path, body = scope["method"], scope["path"], await _body(receive)
        report = _REPORT.match(path)
        said: Said
        match method, path.removeprefix(OWN_ROUTES):
            case "GET", "health":
                said = 200, {"status": "ok"}
            case "GET", "mark":
                said = 200, {"mark": self._endpoints.mark(), "instance": INSTANCE}
            case "GET", "components":
                said = 200, {"components": self._components.documents()}
            case "GET", "clock":
                said = 200, {"now": clock.now()}
            case "POST", "clock":
                said = _move_clock(body)
            case _, "faults":
                said = self._fault(method, body)
            case "POST", "iam/decisions":  # for the runtime, as the next
                said = gate.decision(body)
            case "GET", "iam/credentials":
                said = gate.credentials(scope.get("query_string", b"").decode("latin-1"))
            case "GET", "iam":  # what was used and denied, for the command line
                said = 200, usage()
            case "POST", _ if report:
                of = self._component_report if report[1] == "components" else self._report
                said = of(urllib.parse.unquote(report[2]), body)
            case _:
                said = 404, {"message": f"{method} {path} is no route of the local AWS"}
        return _json(*said)

    def _fault(self, method: str, body: bytes | None) -> Said:
        """POST adds a fault, DELETE removes all, GET returns them; 400 for an invalid one."""
        try:
            if method == "POST":
                self._faults.add(body or b"")
            elif method == "DELETE":
                self._faults.clear()
        except ValueError as error:
            return 400, {"message": f"no fault: {error}"}
        return 200, {"faults": self._faults.shown()}

    def _report(self, endpoint: str, body: bytes | None) -> Said:
        """200 with the deployment's state, 400 for a malformed report, 409 for one that no deployment waits for."""
        try:
            report = json.loads(body or b"")
            config, outcome, instances = report["endpoint_config_name"], report["outcome"], report.get("instances", 0)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return 400, {"message": f"no report: {error!r}"}
        if outcome not in ("in_service", "shifted", "failed"):
            return 400, {"message": f"outcome {outcome!r}: 'in_service', 'shifted' or 'failed'"}
        reason = str(report.get("reason") or "the runtime gave no reason")
        reported = self._endpoints.report(
            endpoint=endpoint, config=config, outcome=outcome, reason=reason, instances=instances
        )
        if reported is not None:
            return 200, {"deployment": reported}
        return 409, {"message": f"{outcome} of {config} is not awaited of an endpoint {endpoint}"}

    def _component_report(self, component: str, body: bytes | None) -> Said:
        """As of endpoints: 200, 400, 409."""
        try:
            report = json.loads(body or b"")
            generation, outcome, reason = report["generation"], report["outcome"], report.get("reason")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return 400, {"message": f"no report: {error!r}"}
        if outcome not in ("in_service", "failed"):
            return 400, {"message": f"outcome {outcome!r}: 'in_service' or 'failed'"}
        reason = str(reason or "the runtime gave no reason")
        if self._components.report(component=component, generation=generation, outcome=outcome, reason=reason):
            return 200, {}
        return 409, {"message": f"{outcome} of change {generation} is not awaited of a component {component}"}

    async def _invoke(self, scope: Scope, receive: Receive, send: Send | None) -> GatewayResponse | None:
        """The runtime's response; None where it was sent by ``send``, part by part."""
        body = await _body(receive)
        if body is None:
            return _json(413, {"Message": f"The body is larger than {_LARGEST_BODY} bytes."})
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        path = scope.get("raw_path", b"").decode("ascii") or urllib.parse.quote(scope["path"])
        if scope.get("query_string"):  # a presigned request is signed there
            path += f"?{scope['query_string'].decode('latin-1')}"
        if send is not None:
            return await pass_stream(self._runtime_url, path, headers, body, send)
        answer: GatewayResponse = await run_reentrant(forward, self._runtime_url, path, headers, body)
        return answer


def _move_clock(body: bytes | None) -> Said:
    """``{"advance_seconds": N}``; 200 with the time, 400 for any other request."""
    try:
        return 200, {"now": clock.advance(json.loads(body or b"")["advance_seconds"])}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        wanted = f'{{"advance_seconds": N}} with N from 0 to {MOST_SECONDS}'
        return 400, {"message": f"the clock is not moved: {str(error)[:200] or 'too deep'}; allowed: {wanted}"}


async def _body(receive: Receive) -> bytes | None:
    """The request's body; None where it is too large."""
    return await gate.read_body(receive, largest=_LARGEST_BODY)


def _header(scope: Scope, name: str) -> str | None:
    """A request's header; several of one name in one, as HTTP reads them. None where there is none."""
    found = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.encode()]
    return ", ".join(found) if found else None


def _foreign(scope: Scope) -> str | None:
    host = _header(scope, "host")
    return refusal(
        host=host,
        origin=_header(scope, "origin"),
        fetch_site=_header(scope, "sec-fetch-site"),
        virtual_host=host is not None and virtual_host(host, method=scope["method"], path=scope["path"]),
    )


async def _of_ministack(scope: Scope, receive: Receive) -> tuple[Receive, GatewayResponse | None]:
    """The body of a custom resource's response or of a signal; the refusal of MiniStack's other routes."""
    method, path = scope["method"], scope["path"]
    if method != "PUT" or not _ANSWERS.fullmatch(path):
        return receive, _json(404, {"message": f"{method} {path} is no route of the local AWS"})
    body = await gate.read_body(receive, largest=_LARGEST_ANSWER)
    if body is None:
        return receive, _json(413, {"message": f"The response is larger than {_LARGEST_ANSWER} bytes."})
    return gate.replayed(body, receive), None


def _body_before_answer(receive: Receive, send: Send) -> tuple[Receive, Send]:
    """``receive``, and a ``send`` that responds once the request's body was read, or that this connection ends.

    A client whose request is refused by its head may still write the body. The server closes such a connection, and a
    client without that notice sends its next request into nothing.
    """
    size, more = 0, True

    async def receiving() -> dict[str, Any]:
        nonlocal size, more
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        return message

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            while more and size <= _LARGEST_BODY:
                await receiving()
            if more:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        await send(message)

    return receiving, sending


def _without_cors(send: Send) -> Send:
    """``send`` without the headers by which MiniStack would let a page of any site read its responses."""

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message["headers"] if not bytes(pair[0]).lower().startswith(b"access-control-")]
            message = {**message, "headers": kept}
        await send(message)

    return sending


def _json(status: int, content: dict[str, Any]) -> GatewayResponse:
    return status, [("Content-Type", "application/json")], json.dumps(content).encode()


async def _answer(send: Send, answer: GatewayResponse) -> None:
    status, headers, body = answer
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
