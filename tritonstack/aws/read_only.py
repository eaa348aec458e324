"""Read-only requests to AWS: a fixed list of operations, bounded in time, with errors as NotKnownError."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError as NoAnswerError

from tritonstack.aws.session import CREDENTIAL_CODES, DENIED_CODES, THROTTLING_CODES, Session, code_of

BOUNDED = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4})
"""A service that is down costs a minute per call at most, less than the runner's own limit."""

_OPERATIONS = {
    "cloudformation": "DescribeStacks GetTemplate ListStackResources",
    "ec2": "DescribeSecurityGroups DescribeSubnets",
    "ecr": "BatchGetImage",
    "iam": "GetRole SimulatePrincipalPolicy",
    "kms": "DescribeKey GetKeyPolicy",
    "pricing": "GetProducts",
    "s3": "HeadBucket",
    "sagemaker": "DescribeEndpoint DescribeEndpointConfig DescribeModel DescribeTrainingPlan ListEndpoints ListTags",
    "service-quotas": "ListAWSDefaultServiceQuotas ListServiceQuotas",
    "ssm": "GetParameter",
    "sts": "GetCallerIdentity",
}
ACTIONS: dict[tuple[str, str], str] = {
    (service, operation): f"{service.replace('service-quotas', 'servicequotas')}:{operation}"
    for service, operations in _OPERATIONS.items()
    for operation in operations.split()
} | {("s3", "HeadBucket"): "s3:ListBucket"}
"""(botocore's service, operation) → IAM action (Service Authorization Reference)."""


class NotKnownError(Exception):
    """AWS did not give the information: access denied, throttled, or no response."""

    def __init__(self, found: str, *, advice: str, permission: str | None = None) -> None:
        """``found``: the reason, one sentence. ``advice``: what to do. ``permission``: the missing IAM action."""
        super().__init__(found)
        self.found = found
        self.advice = advice
        self.permission = permission


class MutatingCallError(Exception):
    """A request for an operation that is not in ``ACTIONS``: a fault of this project, never of the user."""


class ReadOnlyCalls:
    """Clients that refuse operations outside ``ACTIONS`` before sending them. A session itself. Thread safe."""

    def __init__(self, session: Session) -> None:
        """``session``: makes the clients."""
        self._session = session
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str | None], Any] = {}
        self._over = threading.Event()

    def give_up(self) -> None:
        """Refuse every further request, so that abandoned threads end soon."""
        self._over.set()

    def client(self, service_name: Any, *, region: str | None = None, config: Config | None = None) -> Any:
        """A boto3 client that can only read; ``region``: another than the session's. ``config`` is ignored."""
        with self._lock:
            key = (service_name, region)
            if key not in self._clients:
                config = BOUNDED if region is None else BOUNDED.merge(Config(region_name=region))
                client = self._session.client(service_name, config=config)
                client.meta.events.register("provide-client-params.*.*", self._watch(service_name))
                self._clients[key] = client
            return self._clients[key]

    def ask(
        self, service: str, operation: str, *, absent: tuple[str, ...] = (), region: str | None = None, **request: Any
    ) -> dict[str, Any] | None:
        """The response of an operation; None where the service's error code is in ``absent``.

        Args:
            service: botocore's name of the service (``service-quotas``).
            operation: the client's method (``list_service_quotas``).
            absent: error codes for a resource that does not exist.
            region: another one than the session's.
            request: the request's parameters.

        Raises:
            NotKnownError: any other error, or no response.
        """
        client = self.client(service, region=region)
        try:
            answer: dict[str, Any] = getattr(client, operation)(**request)
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and code_of(error) in absent:
                return None
            raise not_known(error, service, _api_name(client, operation)) from error
        return answer

    def must(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Same as ``ask``, for operations without an error code for an absent resource."""
        return self.ask(service, operation, **request) or {}

    def pages(
        self, service: str, operation: str, rows: str, *, region: str | None = None, **request: Any
    ) -> Iterator[Any]:
        """The rows of every page; ``rows`` is their member in the response, ``region`` another than the session's.

        Raises:
            NotKnownError: as ``ask``, also after some pages.
        """
        client = self.client(service, region=region)
        try:
            for page in client.get_paginator(operation).paginate(**request):
                yield from page.get(rows, ())
        except (BotoCoreError, ClientError) as error:
            raise not_known(error, service, _api_name(client, operation)) from error

    def _watch(self, service: str) -> Any:
        def watch(model: Any, **_more: Any) -> None:
            if (service, model.name) not in ACTIONS:
                raise MutatingCallError(
                    f"these calls only read, and {service} {model.name} is not among its operations"
                )
            if self._over.is_set():
                raise NotKnownError("there is no time left", advice="Run it again.")

        return watch


def not_known(error: Exception, service: str, operation: str) -> NotKnownError:
    """The NotKnownError of a failed request, with the missing permission where that is the reason."""
    action = ACTIONS.get((service, operation), f"{service}:{operation}")
    code = code_of(error)
    if code in DENIED_CODES:
        return NotKnownError(
            f"AWS denies {action}: {_message(error)}", advice=f"Allow {action}, then run it again.", permission=action
        )
    if code in THROTTLING_CODES:
        return NotKnownError(
            f"{service} {operation} was throttled to the last attempt ({code})", advice="Run it again a little later."
        )
    if code in CREDENTIAL_CODES or isinstance(error, NoCredentialsError | PartialCredentialsError):
        return NotKnownError(f"the AWS credentials do not work: {_message(error)}", advice="Renew them (AWS_PROFILE).")
    if isinstance(error, NoConnectionError | NoAnswerError):
        return NotKnownError(
            f"{service} {operation} did not respond: {error}", advice="Check network, proxy and region; run it again."
        )
    return NotKnownError(f"{service} {operation} failed: {_message(error)}", advice="Run it again.")


def _message(error: Exception) -> str:
    if isinstance(error, ClientError):
        message = error.response.get("Error", {}).get("Message") or ""
        return f"{code_of(error)}: {message}" if message and code_of(error) not in message else message or str(error)
    return str(error)


def _api_name(client: Any, operation: str) -> str:
    name: str = client.meta.method_to_api_mapping[operation]
    return name
