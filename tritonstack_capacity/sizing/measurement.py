"""One measured row: a configuration of a model on an instance type, and what one instance answered."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What a load test found.

    Attributes:
        configuration: the name of the model's configuration (``trt-db``: TensorRT with dynamic batching).
        instance_type: where it ran (``ml.g4dn.2xlarge``).
        invocations_per_minute: what one instance answered in a minute.
        latency_ms: the model's latency at that rate, milliseconds, as the test states it (its percentile with it).
        usd_per_hour: of one instance, where the file says it; None where it does not.
        gpus: of one instance, where the file says it; None where it does not.
        line: of the file, counted from 1; the header is line 1.
    """

    configuration: str
    instance_type: str
    invocations_per_minute: Decimal
    latency_ms: Decimal
    usd_per_hour: Decimal | None = None
    gpus: int | None = None
    line: int = 0

    @property
    def name(self) -> str:
        """How messages call the row."""
        return f"{self.configuration} on {self.instance_type}"


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """A file of measurements, in its own order; at least one row."""

    file: Path
    rows: tuple[Measurement, ...]
