"""Errors of a call to a model, each with botocore's own error as its cause.

The codes are those of InvokeEndpoint in botocore's ``sagemaker-runtime`` service model.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack.errors import InputError, WorkFailedError


@dataclass(frozen=True, kw_only=True)
class InvokeTarget:
    """An endpoint's SageMaker name, in multi-model mode an archive, and the requested production variant, if any."""

    endpoint_name: str
    target_model: str | None
    variant: str | None = None

    def __str__(self) -> str:
        named = ", ".join(name for name in (self.target_model, self.variant) if name)
        return f"{self.endpoint_name} ({named})" if named else self.endpoint_name


class InvokeError(WorkFailedError):
    """A call without a response. ``place``: endpoint, archive and attempts."""

    def __init__(self, message: str, *, place: str) -> None:
        """``message``: one sentence."""
        self.place = place
        super().__init__(f"{place}: {message}")


class ModelFailedError(InvokeError):
    """The container responded with an error (SageMaker's ModelError, HTTP 424).

    Attributes:
        status: the container's own HTTP status (``OriginalStatusCode``), 0 where it gave none.
        container_message: the container's response (``OriginalMessage``).
        log_stream_arn: of its log, or an empty string.
    """

    def __init__(self, *, place: str, status: int, container_message: str, log_stream_arn: str) -> None:
        """Takes the members of SageMaker's ModelError."""
        self.status = status
        self.container_message = container_message
        self.log_stream_arn = log_stream_arn
        log = f"; its log: {log_stream_arn}" if log_stream_arn else ""
        super().__init__(f"the container responded {status}: {container_message}{log}", place=place)


class ModelNotReadyError(InvokeError):
    """The model was still being downloaded or loaded when the retries ended (HTTP 429)."""


class EndpointUnavailableError(InvokeError):
    """No response after every retry: no connection, a timeout, or HTTP 429, 500, 503, 530."""


class StreamBrokenError(InvokeError):
    """A stream ended with an error after its first event, so it was not retried.

    Attributes:
        code: ``ModelStreamError`` or ``InternalStreamFailure`` of SageMaker; empty where the connection was lost.
    """

    def __init__(self, message: str, *, code: str, place: str) -> None:
        """Takes SageMaker's own code and message."""
        self.code = code
        super().__init__(f"{code}: {message}" if code else f"the connection was lost: {message}", place=place)


class RequestRefusedError(InvokeError):
    """SageMaker refused the request itself (ValidationError, AccessDenied, …); a retry would not help."""

    def __init__(self, message: str, *, code: str, place: str) -> None:
        """Takes SageMaker's own code and message."""
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}", place=place)


class MalformedResponseError(WorkFailedError):
    """A response that is no KServe v2 inference response, or whose binary part does not fit its header."""


class ReleaseLookupError(WorkFailedError):
    """The release records could not be read (no permission, no connection)."""


class ClientFileError(WorkFailedError):
    """A tokenizer or labels file of a manifest cannot be fetched, or differs from the published one."""


class UnknownModelError(InputError):
    """No release record has this name, or no archive."""


class AmbiguousModelError(InputError):
    """Several endpoints serve a model of this name."""
