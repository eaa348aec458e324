"""Invokes models by name over SageMaker's InvokeEndpoint: NumPy arrays in, NumPy arrays out.

from tritonstack.client import ModelClient

client = ModelClient(environment="prod")
response = client.invoke("digits-onnx", {"image": pixels})
response.outputs["probabilities"]

client.ask("resnet50-onnx", image="dog.jpg").meaning.best
"""

from tritonstack.client.body import PayloadFormat
from tritonstack.client.errors import (
    AmbiguousModelError,
    ClientFileError,
    EndpointUnavailableError,
    InvokeError,
    MalformedResponseError,
    ModelFailedError,
    ModelNotReadyError,
    ReleaseLookupError,
    RequestRefusedError,
    StreamBrokenError,
    UnknownModelError,
)
from tritonstack.client.manifest import TensorSpec, TensorTable
from tritonstack.client.model_client import ModelClient, ModelResponse
from tritonstack.client.postprocessing import Classes, Embedding, Label, Meaning, Text
from tritonstack.client.releases import ModelRelease
from tritonstack.client.streaming import StreamEvent

__all__ = [
    "AmbiguousModelError",
    "Classes",
    "ClientFileError",
    "Embedding",
    "EndpointUnavailableError",
    "InvokeError",
    "Label",
    "MalformedResponseError",
    "Meaning",
    "ModelClient",
    "ModelFailedError",
    "ModelNotReadyError",
    "ModelRelease",
    "ModelResponse",
    "PayloadFormat",
    "ReleaseLookupError",
    "RequestRefusedError",
    "StreamBrokenError",
    "StreamEvent",
    "TensorSpec",
    "TensorTable",
    "Text",
    "UnknownModelError",
]
