"""At what latency or rate a test stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tritonstack_capacity.bench.figures import Figures


class Calls(Protocol):
    """How many calls some time of load had: right answers, and calls without one."""

    @property
    def answered(self) -> int:
        """Right answers."""

    @property
    def failed(self) -> int:
        """Calls without one."""


@dataclass(frozen=True, kw_only=True)
class StopConditions:
    """As Inference Recommender's stopping conditions: more load is not put on what is over one of them.

    Attributes:
        latency_ms: of ``percentile``; None for none.
        percentile: whose latency counts.
        per_minute: right answers; None for none.
        failed_share: of calls without a right answer, above which figures mean nothing.
    """

    latency_ms: float | None = None
    percentile: float = 95.0
    per_minute: float | None = None
    failed_share: float = 0.1

    def reason(self, found: Figures) -> str | None:
        """Why no more load follows; None where it does."""
        if self.too_many_failed(found):
            return f"{found.failed} of {found.answered + found.failed} calls failed"
        latency = found.percentiles_ms.get(self.percentile)
        if self.latency_ms is not None and latency is not None and latency > self.latency_ms:
            return f"p{self.percentile:g} {latency:.4g} ms is above {self.latency_ms:g} ms"
        if self.per_minute is not None and found.per_minute >= self.per_minute:
            return f"{found.per_minute:.0f} a minute reach {self.per_minute:g}"
        return None

    def too_many_failed(self, found: Calls) -> bool:
        """Whether more than ``failed_share`` of the calls failed, so that their figures mean nothing."""
        made = found.answered + found.failed
        return made > 0 and found.failed / made > self.failed_share
