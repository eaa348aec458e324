"""The gate in front of the services: reads a request, finds its caller, and asks ``authorize``.

Also the routes that the runtime and ``tritonstack local`` use: decisions on InvokeEndpoint, credentials of a role, and
what was used and denied.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

from ministack.core.responses import set_request_region

from tritonstack_local import ACCOUNT
from tritonstack_local.emulator.iam.authorization import (
    authorize,
    check_trust,
    current_principal,
    enforced,
    set_current,
    usage,
)
from tritonstack_local.emulator.iam.needs import Need, UnmappedOperationError, needs_of
from tritonstack_local.emulator.iam.principals import CredentialsError, principal_of, register_session, role_record
from tritonstack_local.emulator.iam.refusals import Answer, error_code, refusal_answer
from tritonstack_local.emulator.iam.request import read_request, reads_body
from tritonstack_local.emulator.iam.service_calls import names, needs_of_encryption
from tritonstack_local.emulator.request_validation import RefusedError

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
_OPEN = "/_ministack/"
"""MiniStack's own routes, which no client of AWS's calls: answers of custom resources, signals of wait conditions."""


async def authorised(scope: Scope, receive: Receive) -> tuple[Receive, Answer | None]:
    """Whether a request may go on: what its body is read from then, and the refusal, or None.

    The request's caller is ``current_principal()`` from then on.
    """
    path: str = scope["path"]
    if path.startswith(_OPEN):
        return receive, None
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = urllib.parse.parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    body = b""
    if reads_body(scope["method"], headers, query):
        body, receive = await _buffered(receive)
    raw_path = scope.get("raw_path", b"").decode("ascii") or urllib.parse.quote(path)
    has_target = "x-amz-target" in headers
    service = "sts"  # whose form a request has that names no service
    try:
        request = read_request(scope["method"], raw_path, query, headers, body)
        service = request.service
        set_request_region(request.region)
        if not enforced():
            return receive, None
        if not request.access_key:
            raise CredentialsError(
                "MissingAuthenticationToken", "Request is missing Authentication Token", source="STS", status=403
            )
        principal = principal_of(request.access_key)
        set_current(principal)
        needs = (*needs_of(request, account=ACCOUNT, names=names), *needs_of_encryption(request))
        authorize(principal, needs, by=f"{service} {request.operation}")
    except RefusedError as refused:
        return receive, refusal_answer(service, refused, has_target=has_target)
    except (UnmappedOperationError, ValueError) as unknown:  # also a request or a policy that cannot be evaluated
        if not enforced():
            return receive, None
        refusal = RefusedError("AccessDenied", str(unknown), source="tritonstack_local.emulator.iam", status=403)
        return receive, refusal_answer(service, refusal, has_target=has_target)
    return receive, None


async def _buffered(receive: Receive) -> tuple[bytes, Receive]:
    """The whole body, and what gives it again, once."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            break
    body = b"".join(parts)
    given = False

    async def again() -> dict[str, Any]:
        nonlocal given
        if given or message["type"] != "http.request":
            return message if message["type"] != "http.request" else await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return body, again


# --- Routes of the runtime and the command line ---


def decision(body: bytes | None) -> tuple[int, dict[str, Any]]:
    """Whether a caller may do one thing: status and document.

    ``body``: JSON with access_key, action, resource and context; 400 for what is none.
    """
    if not enforced():
        return 200, {"allowed": True, "enforced": False, "code": "", "message": ""}
    try:
        asked = json.loads(body or b"")
        need = Need(action=asked["action"], resource=asked["resource"], context=asked.get("context") or {})
        access_key = asked["access_key"]
    except (ValueError, TypeError, KeyError) as error:
        return 400, {"message": f"no request for a decision: {error!r}"}
    try:
        authorize(principal_of(access_key), [need], by=need.action)
    except RefusedError as refused:
        code = error_code("sagemaker-runtime", refused.code, protocol="rest-json")
        return 200, {"allowed": False, "enforced": True, "code": code, "message": str(refused)}
    return 200, {"allowed": True, "enforced": True, "code": "", "message": ""}


def credentials(query: str) -> tuple[int, dict[str, Any]]:
    """Credentials of a role: of a session that ``service`` begins, or for a person without one.

    ``query``: role (an ARN or a name), session, service. 403 where the role's trust policy does not let the service in.
    """
    given = dict(urllib.parse.parse_qsl(query))
    role, service = given.get("role", ""), given.get("service")
    record = role_record(role.rpartition("/")[2])
    if record is None or (role.startswith("arn:") and record["Arn"] != role):
        return 404, {"message": f"there is no role {role}"}
    try:
        if service is not None:
            check_trust(record["Arn"], service=service)
    except RefusedError as refused:
        return 403, {"message": str(refused)}
    return 200, {"RoleArn": record["Arn"], **register_session(record["Arn"], given.get("session", "local"))}


__all__ = ["authorised", "credentials", "current_principal", "decision", "usage"]
