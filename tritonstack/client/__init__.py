"""Calls models by their names over SageMaker's InvokeEndpoint: NumPy arrays in, NumPy arrays out.

from tritonstack.client import ModelClient

client = ModelClient(environment="prod")
answer = client.invoke("digits-onnx", {"image": pixels})
answer.outputs["probabilities"]
"""

from tritonstack.client.answer import Answer
from tritonstack.client.body import PayloadFormat
from tritonstack.client.calls import Wait
from tritonstack.client.errors import (
    AmbiguousModelError,
    EndpointUnavailableError,
    InvokeError,
    MalformedAnswerError,
    ModelFailedError,
    ModelNotReadyError,
    ReleaseLookupError,
    RequestRefusedError,
    UnknownModelError,
)
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import Release
from tritonstack.client.retry import NO_RETRIES, Clock, RetryPolicy
from tritonstack.client.tables import TensorSpec, TensorTable

__all__ = [
    "NO_RETRIES",
    "AmbiguousModelError",
    "Answer",
    "Clock",
    "EndpointUnavailableError",
    "InvokeError",
    "MalformedAnswerError",
    "ModelClient",
    "ModelFailedError",
    "ModelNotReadyError",
    "PayloadFormat",
    "Release",
    "ReleaseLookupError",
    "RequestRefusedError",
    "RetryPolicy",
    "TensorSpec",
    "TensorTable",
    "UnknownModelError",
    "Wait",
]
