"""A JSON 1.1 service of ours behind MiniStack's gateway."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import ministack.app
import ministack.core.router
from ministack.core.responses import error_response_json, json_response

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.refusal import RefusedError

Request = dict[str, Any]
Operation = Callable[[Request], dict[str, Any] | None]

_CONTENT_TYPE = "application/x-amz-json-1.1"


class JsonService:
    """Operations by name, each called with a request that satisfies botocore's model."""

    def __init__(
        self, *, service: str, target_prefix: str, operations: Mapping[str, Operation], forget: Callable[[], None]
    ) -> None:
        """``target_prefix`` begins the ``X-Amz-Target`` header; ``forget`` empties the service's stores."""
        self.service = service
        self._target_prefix = target_prefix
        self._operations = operations
        self._forget = forget
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
            return error_response_json(refusal.code, str(refusal), refusal.status, content_type=_CONTENT_TYPE)

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
