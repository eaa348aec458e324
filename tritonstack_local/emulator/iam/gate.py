"""The gate in front of the services: reads a request, finds its caller, and calls ``authorize``.

Also the routes that the runtime and ``tritonstack local`` use: decisions on InvokeEndpoint, credentials of a role, and
what was used and denied.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tritonstack_local import ACCOUNT
from tritonstack_local.emulator.iam.authorization import (
    authorize,
    check_trust,
    enforced,
    set_current,
)
from tritonstack_local.emulator.iam.needs import Need, UnmappedOperationError, needs_of
from tritonstack_local.emulator.iam.one_reading import (
    NO_PERMISSIONS,
    plain_body,
    received,
    require_one_reading,
    require_same_objects,
)
from tritonstack_local.emulator.iam.principals import principal_of, register_session, role_record
from tritonstack_local.emulator.iam.request import LARGEST_BODY, read_request, reads_body, signer
from tritonstack_local.emulator.iam.service_calls import (
    check_bucket_owner,
    check_key_states,
    names,
    needs_of_encryption,
)
from tritonstack_local.emulator.ministack_adapter import iam
from tritonstack_local.emulator.ministack_adapter.core import new_uuid, set_request_region
from tritonstack_local.emulator.request_validation import OWN_TOKEN, RefusedError

GatewayResponse = tuple[int, list[tuple[str, str]], bytes]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]


_TOO_LARGE: GatewayResponse = (
    413,
    [("Content-Type", "application/json")],
    json.dumps({"Message": f"The body is larger than {LARGEST_BODY} bytes."}).encode(),
)


async def authorised(scope: Scope, receive: Receive) -> tuple[Receive, GatewayResponse | None]:
    """Whether a request may go on: what its body is read from then, and the refusal, or None.

    The request's caller is ``current_principal()`` from then on.
    """
    service, headers = "sts", {}  # whose form a refusal has that names no service
    try:
        asked = received(scope)
        headers = dict(asked.headers)
        if headers.get("x-amz-security-token") == OWN_TOKEN:
            return receive, None
        access_key, service, signed_for = signer(headers, asked.query)
        principal = principal_of(access_key)  # looked at without IAM, too: a stranger has none
        body = b""
        if reads_body(asked.method, headers, asked.query):
            whole = await read_body(receive)
            if whole is None:
                return receive, _TOO_LARGE
            body, receive = plain_body(asked, whole), replayed(whole, receive)
        require_one_reading(asked, service=service, scope=signed_for, body=body)
        request = read_request(asked.method, asked.path, asked.query, headers, body)
        require_same_objects(request, body)
        service = request.service
        set_request_region(request.region)
        check_bucket_owner(request)
        of_keys = needs_of_encryption(request)
        if enforced():
            set_current(principal)
            needs = (*needs_of(request, account=ACCOUNT, names=names), *of_keys)
            authorize(principal, needs, by=f"{service} {request.operation}")
        check_key_states(of_keys)
    except RefusedError as refused:
        return receive, _refusal_answer(service, refused, headers)
    except (UnmappedOperationError, ValueError) as unknown:  # also a request or a policy that cannot be evaluated
        if not enforced():
            return receive, None
        refusal = RefusedError("AccessDenied", str(unknown), source="tritonstack_local.emulator.iam", status=403)
        return receive, _refusal_answer(service, refusal, headers)
    return receive, None


async def read_body(receive: Receive, *, largest: int = LARGEST_BODY) -> bytes | None:
    """A request's body; None where it is larger, and then no more of it is read."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > largest:
            return None
        more = message.get("more_body", False)
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was read, once, and then what comes after it."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> dict[str, Any]:
        return left.pop() if left else await receive()

    return again


def _refusal_answer(service: str, refused: RefusedError, headers: Mapping[str, str]) -> GatewayResponse:
    """MiniStack's error response, in the form of ``service``, of botocore's name."""
    code = iam.denied_codes().get(service, refused.code) if refused.code == "AccessDenied" else refused.code
    status, answered, body = iam.access_denied_response(
        "monitoring" if service == "cloudwatch" else service,
        "",
        "",
        new_uuid(),
        error_code=code,
        message=str(refused),
        headers=headers,
    )
    if refused.code.startswith("KMS.") or refused.code in NO_PERMISSIONS:
        status = refused.status  # S3 passes on KMS's
    if "x-amz-target" in headers:
        status = 400  # AWS JSON's, which MiniStack has for two services alone ("Common Errors" of each API reference)
    return status, list(answered.items()), body


# --- Routes of the runtime and the command line ---


def decision(body: bytes | None) -> tuple[int, dict[str, Any]]:
    """Whether a caller may do one thing: status and document.

    ``body``: JSON with access_key, action, resource and context; 400 for what is none.
    """
    try:
        asked = json.loads(body or b"")
        need = Need(action=asked["action"], resource=asked["resource"], context=asked.get("context") or {})
        access_key = asked["access_key"]
    except (ValueError, TypeError, KeyError) as error:
        return 400, {"message": f"no request for a decision: {error!r}"}
    try:
        principal = principal_of(access_key)
        if enforced():
            authorize(principal, [need], by=need.action)
    except RefusedError as refused:
        known = iam.auth_failures().get(refused.code)
        code = known[2] if known is not None else f"{refused.code}Exception"
        return 200, {"allowed": False, "enforced": enforced(), "code": code, "message": str(refused)}
    return 200, {"allowed": True, "enforced": enforced(), "code": "", "message": ""}


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
    session = register_session(record["Arn"], given.get("session", "local"), lasts=service is not None)
    return 200, {"RoleArn": record["Arn"], **session}
