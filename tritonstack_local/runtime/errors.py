"""InvokeEndpoint's errors: the codes, statuses and bodies from which an AWS SDK builds its exceptions.

Codes and statuses: botocore's service model of sagemaker-runtime, InvokeEndpoint. The sentences are those that
SageMaker users report: amazon-sagemaker-examples issues 290 (no signature), 293 (not found), 799 (timed out), 1026
(target model not supported), 2815 (no response); sagemaker-tensorflow-serving-container 166 (target model missing).
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack.loopback.http_server import InvokeError
from tritonstack_local import ACCOUNT, REGION

NO_STATUS = 0
"""The OriginalStatusCode of a container that sent no HTTP response."""

ECHOED_CHARACTERS = 200
"""How much of a name or path that a caller sent is repeated in an error."""


def shortened(text: str) -> str:
    """A client's text, shortened for an error message."""
    return text if len(text) <= ECHOED_CHARACTERS else text[:ECHOED_CHARACTERS] + "…"


def validation_error(message: str, *, error_code: str | None = None) -> InvokeError:
    """The request itself is wrong: 400."""
    members = {"ErrorCode": error_code} if error_code else {}
    return InvokeError("ValidationError", 400, message, members)


def endpoint_not_found(*, endpoint: str) -> InvokeError:
    """There is no such endpoint, or it is not in service."""
    return validation_error(f"Endpoint {shortened(endpoint)} of account {ACCOUNT} not found.")


class ModelDataNotFoundError(InvokeError):
    """The archive is not there, or the execution role may not read it."""


def model_data_not_found(*, bucket: str, key: str) -> ModelDataNotFoundError:
    """The archive of a multi-model endpoint is not there, or may not be read."""
    return ModelDataNotFoundError(
        "ValidationError",
        400,
        f"Failed to download model data(bucket: {bucket}, key: {key}). Please ensure that there is an object located "
        "at the URL and that the role passed to CreateModel has permissions to download the model.",
    )


def model_data_unusable(*, bucket: str, key: str, reason: str) -> InvokeError:
    """The archive is there, but cannot be unpacked safely."""
    return validation_error(f"Failed to extract model data archive(bucket: {bucket}, key: {key}): {reason}")


def model_not_ready(*, target_model: str) -> InvokeError:
    """The model is still being downloaded or loaded."""
    return InvokeError("ModelNotReadyException", 429, f"Model {target_model} is not ready for inference. Retry.")


def service_unavailable(message: str) -> InvokeError:
    """No container can take the request."""
    return InvokeError("ServiceUnavailable", 503, message)


def dependency_failure(message: str) -> InvokeError:
    """The service that holds the model data failed."""
    return InvokeError("InternalDependencyException", 530, message)


@dataclass(frozen=True, kw_only=True)
class ContainerAddress:
    """Address of a container's log, for errors that name it."""

    endpoint: str
    log_group: str
    log_stream: str

    @property
    def log_stream_arn(self) -> str:
        """ModelError's LogStreamArn."""
        return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{self.log_group}:log-stream:{self.log_stream}"

    def model_error(self, *, status: int, message: str) -> InvokeError:
        """The container responded with an error, or not at all (status 0)."""
        kind = "client" if 400 <= status < 500 else "server"
        console = f"https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}"
        text = (
            f'Received {kind} error ({status}) from primary with message "{message}". See {console}'
            f"#logEventViewer:group={self.log_group} in account {ACCOUNT} for more information."
        )
        members = {"OriginalStatusCode": status, "OriginalMessage": message, "LogStreamArn": self.log_stream_arn}
        return InvokeError("ModelError", 424, text, members)

    def timed_out(self) -> InvokeError:
        """The container did not respond in time."""
        return self.model_error(
            status=NO_STATUS,
            message="Your invocation timed out while waiting for a response from container primary. Review the latency "
            "metrics for each container in Amazon CloudWatch, resolve the issue, and try again.",
        )

    def stream_timed_out(self, *, seconds: float) -> InvokeError:
        """A stream took longer than SageMaker allows. The sentence is not AWS's: no source has it."""
        message = f"The model did not finish the response within {seconds:.0f} seconds."
        return _model_stream_error(message, error_code="ModelInvocationTimeExceeded")

    def stream_broken(self) -> InvokeError:
        """The container closed the connection within a stream, as it does when it ends."""
        message = f"The connection to the container of endpoint {self.endpoint} was closed before the response ended."
        return _model_stream_error(message, error_code="StreamBroken")

    def no_answer(self) -> InvokeError:
        """The container closed the connection, as it does when it ends."""
        return self.model_error(
            status=NO_STATUS,
            message=f"Amazon SageMaker could not get a response from the {self.endpoint} endpoint. This can occur when "
            "CPU or memory utilization is high. To check your utilization, see Amazon CloudWatch.",
        )


def _model_stream_error(message: str, *, error_code: str) -> InvokeError:
    """An error within a stream; 424 is counted as ModelError's, whose container gave no status."""
    members = {"ErrorCode": error_code, "OriginalStatusCode": NO_STATUS}
    return InvokeError("ModelStreamError", 424, message, members)
