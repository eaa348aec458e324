"""The one port: internal routes, InvokeEndpoint handed to the runtime, everything else authorised and to MiniStack."""

from __future__ import annotations

import http.client
import json
import re
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

import ministack.app
from ministack.core.concurrency import run_reentrant

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.faults import Faults
from tritonstack_local.emulator.iam import gate
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints

# So a client that knows nothing but ``AWS_ENDPOINT_URL`` can invoke; who wants the short way gives the runtime's own
# URL.
INVOCATION = re.compile(r"^/endpoints/[^/]+/(invocations|invocations-response-stream|async-invocations)$")
"""The paths of SageMaker Runtime's operations."""

_SECONDS = 90.0  # SageMaker gives a container 60 s; the runtime answers itself when those are over
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length"})
Answer = tuple[int, list[tuple[str, str]], bytes]


def forward(url: str | None, path: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
    """The runtime's answer: status, headers, body. Without a runtime the answer that SageMaker gives when down."""
    if url is None:
        return _unavailable("the local AWS was started without a runtime (TRITONSTACK_RUNTIME_URL)")
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=_SECONDS)
    try:
        connection.request("POST", path, body, dict(_end_to_end(headers)))
        response = connection.getresponse()
        return response.status, _end_to_end(response.getheaders()), response.read()
    except (OSError, http.client.HTTPException) as error:
        return _unavailable(f"the local runtime does not answer ({error}); see `tritonstack local status`")
    finally:
        connection.close()


def _end_to_end(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


def _unavailable(reason: str) -> Answer:
    """SageMaker Runtime's ``ServiceUnavailable`` (503)."""
    body = json.dumps({"Message": f"The service is unavailable: {reason}."}).encode()
    return 503, [("Content-Type", "application/json"), ("x-amzn-ErrorType", "ServiceUnavailable")], body


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_REPORT = re.compile(r"^/_tritonstack/endpoints/([^/]+)/report$")
_LARGEST_BODY = 32 * 1024 * 1024  # SageMaker's own limit is 25 MiB and the runtime's to tell


class Gateway:
    """The ASGI application."""

    def __init__(self, runtime_url: str | None, endpoints: Endpoints, faults: Faults) -> None:
        """``endpoints`` take the runtime's reports; ``faults`` are those that were asked for."""
        self._runtime_url = runtime_url
        self._endpoints = endpoints
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or the server's life cycle."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path.startswith("/_tritonstack/iam"):
            await _answer(send, _json(*await _iam(scope, receive)))
        elif scope["type"] == "http" and path.startswith("/_tritonstack/"):
            await _answer(send, await self._internal(scope["method"], path, receive))
        elif scope["type"] == "http" and scope["method"] == "POST" and INVOCATION.match(path):
            await _answer(send, await self._invoke(scope, receive))
        else:
            fault = None
            if scope["type"] == "http":
                target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")  # AmazonSSM.PutParameter
                fault = await self._faults.befall(scope["method"], path, target.rpartition(".")[2])
            refused = None
            if fault is None and scope["type"] == "http":
                receive, refused = await gate.authorised(scope, receive)
            if refused is not None:
                await _answer(send, refused)
            elif fault is None:
                await ministack.app.app(scope, receive, send)
            else:
                await _body(receive)
                kind = "application/xml" if fault[1].startswith(b"<") else "application/x-amz-json-1.1"
                await _answer(send, (fault[0], [("Content-Type", kind)], fault[1]))

    async def _internal(self, method: str, path: str, receive: Receive) -> Answer:
        if path == "/_tritonstack/health" and method == "GET":
            return _json(200, {"status": "ok"})
        if path == "/_tritonstack/mark" and method == "GET":
            return _json(200, {"mark": self._endpoints.mark()})
        if path == "/_tritonstack/clock" and method in ("GET", "POST"):
            return _json(200, {"now": clock.now()}) if method == "GET" else _move_clock(await _body(receive))
        if path == "/_tritonstack/faults":
            return self._fault(method, await _body(receive))
        report = _REPORT.match(path)
        if report and method == "POST":
            return self._report(urllib.parse.unquote(report[1]), await _body(receive))
        return _json(404, {"message": f"{method} {path} is no route of the local AWS"})

    def _fault(self, method: str, body: bytes | None) -> Answer:
        """POST adds a fault, DELETE forgets all, GET shows them; 400 for what is none."""
        try:
            if method == "POST":
                self._faults.add(body or b"")
            elif method == "DELETE":
                self._faults.clear()
        except ValueError as error:
            return _json(400, {"message": f"no fault: {error}"})
        return _json(200, {"faults": self._faults.shown()})

    def _report(self, endpoint: str, body: bytes | None) -> Answer:
        """200 with what the deployment is now, 400 for a malformed report, 409 for one that no deployment awaits."""
        try:
            report = json.loads(body or b"")
            config, outcome, instances = report["endpoint_config_name"], report["outcome"], report.get("instances", 0)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return _json(400, {"message": f"no report: {error!r}"})
        if outcome not in ("in_service", "shifted", "failed"):
            return _json(400, {"message": f"outcome {outcome!r}: 'in_service', 'shifted' or 'failed'"})
        reason = str(report.get("reason") or "the runtime gave no reason")
        reported = self._endpoints.report(
            endpoint=endpoint, config=config, outcome=outcome, reason=reason, instances=instances
        )
        if reported is not None:
            return _json(200, {"deployment": reported})
        return _json(409, {"message": f"{outcome} of {config} is not awaited of an endpoint {endpoint}"})

    async def _invoke(self, scope: Scope, receive: Receive) -> Answer:
        body = await _body(receive)
        if body is None:
            return _json(413, {"Message": f"The body is larger than {_LARGEST_BODY} bytes."})
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        path = scope.get("raw_path", b"").decode("ascii") or urllib.parse.quote(scope["path"])
        if scope.get("query_string"):  # a presigned request is signed there
            path += f"?{scope['query_string'].decode('latin-1')}"
        answer: Answer = await run_reentrant(forward, self._runtime_url, path, headers, body)
        return answer


async def _iam(scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
    """Decisions and credentials for the runtime; what was used and denied for the command line."""
    method, path = scope["method"], scope["path"]
    if (method, path) == ("POST", "/_tritonstack/iam/decisions"):
        return gate.decision(await _body(receive))
    if (method, path) == ("GET", "/_tritonstack/iam/credentials"):
        return gate.credentials(scope.get("query_string", b"").decode("latin-1"))
    if (method, path) == ("GET", "/_tritonstack/iam"):
        return 200, gate.usage()
    return 404, {"message": f"{method} {path} is no route of the local AWS"}


def _move_clock(body: bytes | None) -> Answer:
    """``{"advance_seconds": N}``; 200 with the time, 400 for what is no such request."""
    try:
        return _json(200, {"now": clock.advance(float(json.loads(body or b"")["advance_seconds"]))})
    except (ValueError, TypeError, KeyError) as error:
        return _json(400, {"message": f'not {{"advance_seconds": N}}: {error!r}'})


async def _body(receive: Receive) -> bytes | None:
    """The request's body; None where it is too large."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size <= _LARGEST_BODY:
            parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts) if size <= _LARGEST_BODY else None


def _json(status: int, content: dict[str, Any]) -> Answer:
    return status, [("Content-Type", "application/json")], json.dumps(content).encode()


async def _answer(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
