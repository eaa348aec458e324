"""Services added to MiniStack, and calls of MiniStack's own services."""

from __future__ import annotations

import json
import re
import sys
import types
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import botocore.awsrequest
import botocore.parsers
import botocore.serialize
import ministack.app
import ministack.core.router
from ministack.core.responses import error_response_json, get_account_id, json_response

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.iam.authorization import (
    AccessDeniedError,
    check_trust,
    decide,
    enforced,
    service_principal,
)
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.request_validation import RefusedError

# --- Calls of MiniStack's services ---
# A request is serialised with botocore, handed to the service's own handler on MiniStack's event loop, and the response
# parsed. For worker threads only: MiniStack refuses it on the loop.

_SECONDS = 60.0


def call(service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Call ``operation``; raises ``RefusedError`` with the model's problems or the service's own error.

    Args:
        service: botocore's name (``s3``, ``cloudwatch``), which is also MiniStack's module.
        operation: the API operation.
        request: its parameters; strings where a template may spell numbers so.
    """
    request = request_validation.coerce(service, operation, request)
    request_validation.validate(service, operation, request)
    model = request_validation.service_model(service)
    shape = model.operation_model(operation)
    spoken = model.metadata.get("protocols", ())
    protocol = next((name for name in ("json", "query") if name in spoken), model.metadata["protocol"])
    method, path, query, headers, body = _serialised(service, shape, protocol, request)
    handler = ministack.app._get_module(service).handle_request
    status, answer_headers, answer_body = ministack.app.call_service_handler_sync(
        handler, method, path, headers, body, query, timeout=_SECONDS
    )
    parsed: dict[str, Any] = botocore.parsers.create_parser(protocol).parse(
        {
            "status_code": status,
            "headers": botocore.awsrequest.HeadersDict(answer_headers),
            "body": answer_body if isinstance(answer_body, bytes) else (answer_body or "").encode(),
        },
        shape.output_shape,
    )
    if status >= 300:
        error = parsed["Error"]
        raise RefusedError(error["Code"], error["Message"], source=f"MiniStack's {service} {operation}", status=status)
    return parsed


def role_trusts(arn: str, service: str) -> bool:
    """Whether a role exists in the request's account and its trust policy lets ``service`` assume it."""
    parts = arn.split(":")
    if len(parts) != 6 or parts[4] != get_account_id():
        return False
    try:
        check_trust(arn, service=service)
    except AccessDeniedError:
        return False
    # The trust policy counts also where permissions are not enforced.
    need = Need(action="sts:AssumeRole", resource=arn, context={"aws:SourceAccount": parts[4]})
    return enforced() or decide(service_principal(service), need)[1].allowed


def _serialised(
    service: str, shape: Any, protocol: str, request: dict[str, Any]
) -> tuple[str, str, dict[str, list[str]], dict[str, str], bytes]:
    made = botocore.serialize.create_serializer(protocol).serialize_to_request(request, shape)
    path, _, flags = made["url_path"].partition("?")
    if service == "s3":  # the bucket travels in the endpoint, not in the serialised path
        path = "/" + request["Bucket"] + path.removeprefix("/" + request["Bucket"])
    query = {k: v if isinstance(v, list) else [str(v)] for k, v in (made.get("query_string") or {}).items()}
    query |= {name: [""] for name in flags.split("&") if name}
    body = made["body"]
    if isinstance(body, dict):
        body = urllib.parse.urlencode(body)
    headers = {name.lower(): value for name, value in made["headers"].items()}
    return made["method"], path, query, headers, body.encode() if isinstance(body, str) else body


Request = dict[str, Any]
Operation = Callable[[Request], dict[str, Any] | None]

_CONTENT_TYPE = "application/x-amz-json-1.1"


class JsonService:
    """Operations by name, each called with a request that satisfies botocore's model."""

    def __init__(
        self,
        *,
        service: str,
        target_prefix: str = "",
        operations: Mapping[str, Operation],
        forget: Callable[[], None] = lambda: None,
        invalid: str = "ValidationException",
    ) -> None:
        """``target_prefix`` begins the ``X-Amz-Target`` header; ``forget`` empties the service's stores.

        ``invalid``: the service's error code of a request that botocore's model does not allow.
        """
        self.service = service
        self._target_prefix = target_prefix
        self._operations = operations
        self._forget = forget
        self._invalid = invalid
        self.before: Callable[[str], None] = lambda _operation: None
        """Called with each operation's name; what it raises is the answer (``faults``)."""

    def call(self, operation: str, request: Request) -> dict[str, Any]:
        """One operation, checked; raises ``RefusedError``."""
        if operation not in self._operations:
            raise RefusedError(
                "UnknownOperationException",
                f"{self.service}:{operation} is not in the local AWS; it has {', '.join(sorted(self._operations))}",
                source="tritonstack_local.emulator",
            )
        request_validation.validate(self.service, operation, request)
        self.before(operation)
        return self._operations[operation](request) or {}

    def call_from_template(self, operation: str, request: Request) -> dict[str, Any]:
        """As ``call``, for properties of a template, where numbers and booleans may be strings."""
        return self.call(operation, request_validation.coerce(self.service, operation, request))

    async def handle(self, _method: str, _path: str, headers: Mapping[str, str], body: bytes, _query: Any) -> Any:
        """MiniStack's handler interface: status, headers, body."""
        operation = headers.get("x-amz-target", "").rpartition(".")[2]
        try:
            request = _parsed(body)
            return json_response(self.call(operation, request), content_type=_CONTENT_TYPE)
        except RefusedError as refusal:
            code = self._invalid if refusal.code == "ValidationException" else refusal.code
            return error_response_json(code, str(refusal), refusal.status, content_type=_CONTENT_TYPE)

    def install(self) -> None:
        """Register with MiniStack: routing by target and credential scope, reset, no persistence."""
        name = "tritonstack_" + self.service.replace("-", "_")
        module: Any = types.ModuleType(f"ministack.services.{name}")
        module.handle_request = self.handle
        module.reset = self._forget
        module.get_state = dict
        module.restore_state = lambda _data: None
        sys.modules[module.__name__] = module
        ministack.app.SERVICE_REGISTRY[self.service] = {"module": name}
        ministack.app.SERVICE_HANDLERS[self.service] = self.handle
        ministack.app._loaded_modules[name] = module
        ministack.core.router.SERVICE_PATTERNS[self.service] = {
            "target_prefixes": [self._target_prefix + "."],
            "host_patterns": [rf"{re.escape(self.service)}\."],
            "credential_scope": self.service,
        }


def _parsed(body: bytes) -> Request:
    try:
        request = json.loads(body or b"{}")
    except ValueError as error:
        raise RefusedError("SerializationException", f"no JSON: {error}", source="AWS JSON 1.1 protocol") from error
    if not isinstance(request, dict):
        raise RefusedError("SerializationException", "no JSON object", source="AWS JSON 1.1 protocol")
    return request
