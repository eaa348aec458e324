"""A caller with the rights of a policy and no other: every other request is refused before it is sent, as IAM would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tests.client.examples import blocks
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate

ROLE = "arn:aws:iam::123456789012:role/caller"
ARN = "arn:aws:{service}:us-east-1:123456789012:{resource}"


def documented(*, endpoint: str = "digits", without: str = "") -> list[dict[str, Any]]:
    """The statements of ``docs/clients.md`` for an endpoint of environment ``local``, but for the one ``without``."""
    [block] = [each.text for each in blocks() if each.language == "json" and each.heading == "Permissions of a client"]
    statements = json.loads(block.replace("digits", endpoint))["Statement"]
    return [each for each in statements if each["Sid"] != without]


@dataclass
class Caller:
    """Guards a session.

    Attributes:
        statements: what is allowed.
        allowed: the operations that were let through, in their order.
        denied: those that were not.
    """

    statements: Sequence[Mapping[str, Any]]
    allowed: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)

    def guard(self, session: boto3.Session) -> boto3.Session:
        """Allow the clients that the session makes from now on only the requests of the statements."""
        session.events.register("before-parameter-build", self._check)
        return session

    def _check(self, *, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        request = request_of(model.name, params, service=model.service_model.signing_name)
        allowed = evaluate(request, Policies(identity=self.statements)).allowed
        (self.allowed if allowed else self.denied).append(model.name)
        if not allowed:
            message = f"User: {ROLE} is not authorized to perform: {request.action} on resource: {request.resource}"
            raise ClientError(
                {"Error": {"Code": "AccessDeniedException", "Message": message},
                 "ResponseMetadata": {"HTTPStatusCode": 400}},  # type: ignore[typeddict-item]
                model.name,
            )  # fmt: skip


def request_of(operation: str, params: Mapping[str, Any], *, service: str) -> Request:
    """What IAM checks: action and resource by the service authorization reference; others have no resource here."""
    resource, context = "*", {}
    if operation == "InvokeEndpoint":
        resource = ARN.format(service=service, resource=f"endpoint/{params['EndpointName']}")
        context = {"sagemaker:TargetModel": params["TargetModel"]} if "TargetModel" in params else {}
    elif operation == "GetParameter":
        resource = ARN.format(service=service, resource=f"parameter{params['Name']}")
    elif operation == "GetParametersByPath":
        resource = ARN.format(service=service, resource=f"parameter{params['Path']}")
    return Request(principal=ROLE, action=f"{service}:{operation}", resource=resource, context=context)
