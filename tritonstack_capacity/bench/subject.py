"""What is measured: one configuration of a model, in one payload format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonstack_capacity.bench.payload import Format, Payload
from tritonstack_capacity.bench.target import BenchTarget


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One row of the tables, for each load.

    Attributes:
        configuration: how tables call it.
        target: who is called.
        payload: with what.
        payload_format: in which format.
        manifest: of the archive; None where this caller cannot read it.
    """

    configuration: str
    target: BenchTarget
    payload: Payload
    payload_format: Format
    manifest: Any

    @property
    def title(self) -> str:
        """In words, for a person."""
        return f"{self.configuration} ({self.payload_format})"
