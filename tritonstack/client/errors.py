"""What a call to a model can end with. Each keeps botocore's own error as its cause.

The codes are those of InvokeEndpoint in botocore's ``sagemaker-runtime`` service model.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack.errors import InputError, WorkFailedError


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """Where a call went: the endpoint's SageMaker name, the archive (None for a single-model endpoint), how often."""

    endpoint_name: str
    target_model: str | None
    attempts: int

    def __str__(self) -> str:
        target = f" ({self.target_model})" if self.target_model else ""
        tries = f" after {self.attempts} attempts" if self.attempts > 1 else ""
        return f"{self.endpoint_name}{target}{tries}"


class InvokeError(WorkFailedError):
    """A call that gave no answer.

    Attributes:
        place: which endpoint and archive were called, and how often.
    """

    def __init__(self, message: str, *, place: CallPlace) -> None:
        """Takes what happened, in a sentence, and where."""
        self.place = place
        super().__init__(f"{place}: {message}")


class ModelFailedError(InvokeError):
    """The container answered with an error (SageMaker's ModelError, HTTP 424).

    Attributes:
        status: the container's own HTTP status (``OriginalStatusCode``), 0 where it gave none.
        container_message: the container's own words (``OriginalMessage``).
        log_stream_arn: where its log is, or an empty string.
    """

    def __init__(self, *, place: CallPlace, status: int, container_message: str, log_stream_arn: str) -> None:
        """Takes the members of SageMaker's ModelError."""
        self.status = status
        self.container_message = container_message
        self.log_stream_arn = log_stream_arn
        log = f"; its log: {log_stream_arn}" if log_stream_arn else ""
        super().__init__(f"the container answered {status}: {container_message}{log}", place=place)


class ModelNotReadyError(InvokeError):
    """The model was still being downloaded or loaded when the waiting time was over (HTTP 429)."""


class EndpointUnavailableError(InvokeError):
    """No usable answer in spite of every retry: no connection, no answer in time, or HTTP 429, 500, 503, 530."""


class RequestRefusedError(InvokeError):
    """SageMaker refused the request itself (ValidationError, AccessDenied, …); trying again would not help.

    Attributes:
        code: SageMaker's error code.
        message: SageMaker's own words.
    """

    def __init__(self, message: str, *, code: str, place: CallPlace) -> None:
        """Takes SageMaker's own code and message."""
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}", place=place)


class MalformedAnswerError(WorkFailedError):
    """An answer that is no KServe-v2 inference response, or whose binary part does not fit its header."""


class ReleaseLookupError(WorkFailedError):
    """The release records could not be read (no permission, no connection)."""


class ClientFileError(WorkFailedError):
    """A tokenizer or a labels file that a model's manifest names cannot be fetched, or is not the one published."""


class UnknownModelError(InputError):
    """No release record has this name, or no archive."""


class AmbiguousModelError(InputError):
    """Several endpoints serve a model of this name."""
