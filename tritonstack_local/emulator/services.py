"""Services added to MiniStack, and requests to MiniStack's own services."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.iam.authorization import (
    AccessDeniedError,
    check_trust,
    decide,
    enforced,
    service_principal,
)
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.ministack_adapter import application
from tritonstack_local.emulator.ministack_adapter.core import (
    error_response_json,
    get_account_id,
    get_region,
    json_response,
)
from tritonstack_local.emulator.ministack_adapter.private_names import Replaceable
from tritonstack_local.emulator.request_validation import OWN_TOKEN, RefusedError

# --- Calls of MiniStack's services ---


def call(service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Call ``operation`` past the gate, as the account's administrator. For worker threads only.

    Raises ``RefusedError`` with the model's problems or the service's own error.

    Args:
        service: botocore's name (``s3``, ``cloudwatch``).
        operation: the API operation.
        request: its parameters; strings where a template may spell numbers so.
    """
    request = request_validation.coerce(service, operation, request)
    request_validation.validate(service, operation, request)
    keys = {"AWS_ACCESS_KEY_ID": get_account_id(), "AWS_SECRET_ACCESS_KEY": "own", "AWS_SESSION_TOKEN": OWN_TOKEN}
    try:
        own = request_validation.client(service, get_region(), keys, attempts=1)
        answer: dict[str, Any] = getattr(own, xform_name(operation))(**request)
    except ClientError as refusal:
        error, status = refusal.response["Error"], refusal.response["ResponseMetadata"]["HTTPStatusCode"]
        source = f"MiniStack's {service} {operation}"
        raise RefusedError(error["Code"], error["Message"], source=source, status=status) from refusal
    return answer


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


def as_response(operation: Callable[..., Any], *, invalid: str = "ValidationException") -> Callable[..., Any]:
    """A JSON operation of MiniStack's; a RefusedError that it raises becomes the response.

    ``invalid``: the service's error code of a request that botocore's model does not allow.
    """

    def answered(*given: Any) -> Any:
        try:
            return operation(*given)
        except RefusedError as refusal:
            code = invalid if refusal.code == "ValidationException" else refusal.code
            return error_response_json(code, str(refusal), refusal.status)

    return answered


Request = dict[str, Any]
Operation = Callable[[Request], dict[str, Any] | None]

_CONTENT_TYPE = "application/x-amz-json-1.1"


class JsonService:
    """Operations by name, each called with a request that satisfies botocore's model."""

    def __init__(
        self,
        *owners: object,
        service: str,
        target_prefix: str = "",
        invalid: str = "ValidationException",
    ) -> None:
        """``owners`` have the operations, as functions with boto3's names (``create_model``).

        Args:
            owners: objects or modules.
            service: botocore's name.
            target_prefix: begins the ``X-Amz-Target`` header.
            invalid: the service's error code of a request that botocore's model does not allow.
        """
        self.service = service
        names = [(name, xform_name(name)) for name in request_validation.service_model(service).operation_names]
        self.operations: dict[str, Operation] = {
            name: getattr(owner, method) for name, method in names for owner in owners if hasattr(owner, method)
        }
        self._target_prefix = target_prefix
        self._invalid = invalid
        self.before: Callable[[str], None] = lambda _operation: None
        """Called with each operation's name; what it raises is the response (``gateway.Faults``)."""

    def call(self, operation: str, request: Request) -> dict[str, Any]:
        """One operation, checked; raises ``RefusedError``."""
        if operation not in self.operations:
            raise RefusedError(
                "UnknownOperationException",
                f"{self.service}:{operation} is not in the local AWS; it has {', '.join(sorted(self.operations))}",
                source="tritonstack_local.emulator",
            )
        request_validation.validate(self.service, operation, request)
        self.before(operation)
        return self.operations[operation](request) or {}

    def call_from_template(self, operation: str, request: Request) -> dict[str, Any]:
        """Same as ``call``, for properties of a template, where numbers and booleans may be strings."""
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

    def serve_first(self, handler: Replaceable) -> None:
        """Serve its operations in the place of a service of MiniStack, which goes on serving the others.

        ``handler``: the service's ``handle_request``.
        """
        theirs = handler.current

        async def handle(method: str, path: str, headers: Mapping[str, str], body: bytes, query: Any) -> Any:
            operation = headers.get("x-amz-target", "").rpartition(".")[2]
            served = self.handle if operation in self.operations else theirs
            return await served(method, path, headers, body, query)

        handler.replace(handle)

    def install(self) -> None:
        """Add the service to MiniStack."""
        application.register_service(self.service, handle=self.handle, target_prefix=self._target_prefix)


def _parsed(body: bytes) -> Request:
    try:
        request = json.loads(body or b"{}")
    except ValueError as error:
        raise RefusedError("SerializationException", f"no JSON: {error}", source="AWS JSON 1.1 protocol") from error
    if not isinstance(request, dict):
        raise RefusedError("SerializationException", "no JSON object", source="AWS JSON 1.1 protocol")
    return request
