"""What a call to a model gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonstack.client.answers import Meaning
from tritonstack.client.body import Array


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One model's answer to one request.

    Attributes:
        outputs: output name → array, with the batch dimension where the model has one. BYTES are objects of ``bytes``.
        model_name: the model's name at Triton; in multi-model mode the archive's.
        model_version: Triton's model version.
        endpoint_name: the endpoint's name at SageMaker.
        target_model: the archive that was asked for; None for a single-model endpoint.
        variant: the production variant that answered.
        milliseconds: from sending the request that was answered to having the whole answer.
        total_milliseconds: the whole call: reading release records, failed tries and pauses included.
        attempts: how often InvokeEndpoint was called.
        bytes_sent: the request body's length.
        bytes_received: the response body's length.
        content_type: of the request body (JSON, or Triton's binary type).
        meanings: what the outputs mean, one for each member of the batch, where that was asked for and the model's
            recipe says it; else empty.
    """

    outputs: Mapping[str, Array]
    model_name: str
    model_version: str
    endpoint_name: str
    target_model: str | None
    variant: str
    milliseconds: float
    total_milliseconds: float
    attempts: int
    bytes_sent: int
    bytes_received: int
    content_type: str
    meanings: tuple[Meaning, ...] = ()

    @property
    def meaning(self) -> Meaning | None:
        """What the first member of the batch means; None where nothing is known."""
        return self.meanings[0] if self.meanings else None
